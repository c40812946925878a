"""Links that change a page without loading it anew: one `main`, the page's own address, and the focus where it was."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from serena_central.web.pages.table import PAGES
from tests.browser.conftest import OpenPage
from tests.browser.life import busy_server

pytestmark = pytest.mark.anyio

BOOSTED = "a[hx-boost]"


async def test_every_boosted_link_of_every_page_leaves_one_main(tmp_path: Path, person: OpenPage) -> None:
    async with (
        busy_server(tmp_path) as life,
        life.central.http() as http,
        person(life.central, bypass_csp=True) as page,
    ):
        for number in range(60):
            await http.post("/api/v1/sessions", json={"client_name": f"client-{number}"})
        clicked: dict[str, int] = {}
        for one in PAGES:
            url = life.address(one)
            await page.goto(url)
            if number := await click_each_boosted(page):
                clicked[one.path] = number
        assert clicked["/sessions"] > 8  # its columns and pages
        assert {"/sessions", "/events", "/sessions/{session}"} <= clicked.keys()


async def click_each_boosted(page: Page) -> int:
    """Clicks each boosted link of the page that is open, checks what that leaves, and returns how many there are."""
    url = page.url
    count = await page.locator(BOOSTED).count()
    for number in range(count):
        await page.goto(url)
        await _click(page, number)
    return count


async def _click(page: Page, number: int) -> None:
    link = page.locator(BOOSTED).nth(number)
    wanted = await link.get_attribute("href")
    named = await link.get_attribute("id")
    await link.click()
    await page.wait_for_function("url => location.pathname + location.search === url", arg=wanted)
    await page.wait_for_function("document.querySelector('.htmx-request') === null")
    for element in ("main", "header.top", "body", "h1", "#said"):
        await expect(page.locator(element)).to_have_count(1)
    if await page.locator(f"#{named}").count():
        await expect(page.locator(f"#{named}")).to_be_focused()
