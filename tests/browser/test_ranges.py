"""People choose a range of time, narrow it by dragging over a plot, and look at one tool in one project."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import SHOTS, OpenPage
from tests.browser.life import busy_server
from tests.browser.test_looks import violations

pytestmark = pytest.mark.anyio


async def test_a_range_is_chosen_and_narrowed_by_dragging_over_a_plot(tmp_path: Path, person: OpenPage) -> None:
    async with busy_server(tmp_path) as life, person(life.central, bypass_csp=True) as page:
        await page.goto(f"{life.central.url}/dashboard/statistics")
        await page.get_by_role("link", name="Last day").click()
        await page.wait_for_url("**/statistics?range=day")
        await page.locator("select[name=tool]").select_option("find_symbol")
        await page.get_by_role("button", name="Show").last.click()
        await page.wait_for_url("**range=day**tool=find_symbol**")
        await expect(page.locator("#tools tbody tr")).to_have_count(1)
        SHOTS.mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=SHOTS / "statistics-day.png", full_page=True)
        assert await violations(page) == []
        box = await page.locator("#plots svg").first.bounding_box()
        assert box
        y = box["y"] + box["height"] / 2
        await page.mouse.move(box["x"] + box["width"] / 2, y)
        await page.mouse.down()
        await page.mouse.move(box["x"] + box["width"], y, steps=4)
        await page.mouse.up()
        await page.wait_for_url("**since=*until=**")
        assert "range=" not in page.url
        assert "tool=find_symbol" in page.url
        await expect(page.locator("#plots .marks rect").first).to_be_attached()
        await expect(page.get_by_label("From (UTC)")).not_to_have_value("")
