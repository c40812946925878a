"""People search the sessions of their clients and read one, in a real browser."""

from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.life import Life, busy_server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def life(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Life]:
    async with busy_server(tmp_path_factory.mktemp("life")) as busy:
        yield busy


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_transcript_is_found_by_what_was_said_and_read(life: Life, person: OpenPage, scripts: bool) -> None:
    async with person(life.central, java_script_enabled=scripts) as page:
        await page.goto(f"{life.central.url}/dashboard/usage")
        await page.get_by_role("link", name="Transcripts").click()
        rows = page.locator("#table tbody tr")
        await expect(rows).to_have_count(1)
        for text, count in (("nobody said this", 0), ("LINE 4", 1)):
            await page.get_by_label("Search").fill(text)
            await page.get_by_role("button", name="Search").click()
            await expect(rows).to_have_count(count)
        await expect(rows).to_contain_text("cart.py, line 4")
        await page.get_by_role("link", name="Where is the total?").click()
        result = page.get_by_label("Result")
        await expect(result).to_be_hidden()
        await page.locator("summary").click()
        await expect(result).to_have_text("cart.py, line 4")
        await expect(page.get_by_text("In cart.py, **line 4**.")).to_be_visible()
