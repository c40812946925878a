"""People restart a language server, and filter and keep events, in a real browser."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart: ...\n")
    async with running_central(tmp_path, patience_s=120) as running, running.http() as http:
        wanted = {"arguments": {"name_path_pattern": "Cart", "project": str(root)}}
        assert (await http.post("/api/v1/tools/find_symbol", json=wanted)).status_code == 200
        yield running


async def test_a_server_is_restarted_and_the_page_shows_the_new_run_by_itself(
    central: RunningCentral, person: OpenPage
) -> None:
    async with person(central) as page:
        await page.get_by_role("link", name="Servers", exact=True).click()
        await page.get_by_role("link", name="ty", exact=True).click()
        state = page.locator("#state")
        await expect(state).to_contain_text("1, 0 restarts")
        await page.get_by_text("Restart…").click()
        await page.get_by_role("button", name="Restart").click()
        await expect(page.locator("#said")).to_contain_text("ty was restarted in shop")
        await expect(state).to_contain_text("2, 1 restart")
        await expect(page.locator("#history")).to_contain_text("requested in the dashboard")


async def test_the_plot_of_a_servers_memory_goes_on_by_itself(central: RunningCentral, person: OpenPage) -> None:
    async with person(central) as page:
        await page.locator("#servers").get_by_role("link", name="ty", exact=True).click()
        measured = page.locator("#load figure", has_text="Memory").locator(".marks rect")
        before = await measured.count()
        await expect(measured.nth(before)).to_be_attached(timeout=60_000)


async def test_events_are_filtered_and_those_that_match_are_kept(central: RunningCentral, person: OpenPage) -> None:
    async with person(central) as page:
        await page.get_by_role("link", name="Events", exact=True).click()
        await expect(page.locator("#table")).to_contain_text("call.finished")
        await page.get_by_label("Kind").select_option("server")
        await page.wait_for_url("**/events?kind=server*")
        await expect(page.locator("#table")).not_to_contain_text("call.finished")
        async with page.expect_download() as kept:
            await page.get_by_role("link", name="Export as JSON lines").click()
        lines = (await (await kept.value).path()).read_text().splitlines()
        assert {json.loads(line)["kind"] for line in lines} == {"server.moved"}
        await page.go_back()
        await expect(page.locator("#table")).to_contain_text("call.finished")
