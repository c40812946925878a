"""The page of a project's settings: chosen by its link, with all its parts, and readable by everybody."""

from collections.abc import AsyncGenerator
from urllib.parse import quote

import pytest

from tests.browser.conftest import OpenPage
from tests.browser.life import Life, busy_server
from tests.browser.test_looks import violations

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def life(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Life]:
    async with busy_server(tmp_path_factory.mktemp("life")) as busy:
        yield busy


async def test_a_project_is_chosen_and_its_settings_are_shown(life: Life, person: OpenPage) -> None:
    async with person(life.central, bypass_csp=True) as page:
        await page.goto(f"{life.central.url}/dashboard/configuration")
        await page.get_by_role("navigation", name="Project").get_by_role("link", name="shop").click()
        await page.get_by_role("heading", name="Settings").wait_for()
        for title in ("Problems", "Settings", "MCP servers", "Memory"):
            assert await page.get_by_role("region", name=title).count() == 1, title
        settings = page.get_by_role("region", name="Settings")
        row = settings.get_by_role("row").filter(has=page.get_by_text("model", exact=True))
        assert "haiku" in await row.inner_text()
        assert "shadowed" in await row.inner_text()
        assert "Read(" in await page.get_by_role("region", name="Problems").inner_text()
        assert "${TOKEN:-none}" in await settings.inner_text()
        assert await violations(page) == []


async def test_a_project_that_does_not_exist_is_told(life: Life, person: OpenPage) -> None:
    async with person(life.central, bypass_csp=True) as page:
        answer = await page.goto(f"{life.central.url}/dashboard/configuration?root={quote('/no/where')}")
        assert answer is not None
        assert answer.status == 404
        assert await violations(page) == []
