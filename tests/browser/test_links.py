"""Links that change a page without loading it anew: one `main`, the page's own address, and the focus where it was."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from serena_central.web.pages.table import PAGES
from tests.browser.conftest import OpenPage
from tests.browser.life import busy_server

pytestmark = pytest.mark.anyio

BOOSTED = "a[hx-boost]"

OF_EACH_KIND = """links => links.map((link, number) => {
    const row = link.closest("tr");
    const alike = row ? [...row.querySelectorAll("a[hx-boost]")] : [link];
    return link === alike[0] ? number : -1;
}).filter((number) => number >= 0)"""
"""Numbers of links: of those in one row, a table's columns, which are made alike, the first."""


async def test_the_boosted_links_of_every_page_leave_one_main(tmp_path: Path, person: OpenPage) -> None:
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
            if number := await click_boosted(page):
                clicked[one.path] = number
        assert clicked["/sessions"] > 1  # a column and pages
        assert {"/sessions", "/events", "/sessions/{session}"} <= clicked.keys()


async def click_boosted(page: Page) -> int:
    """Clicks boosted links of each kind on the page that is open, checks what that leaves, and returns how many."""
    url = page.url
    numbers: list[int] = await page.locator(BOOSTED).evaluate_all(OF_EACH_KIND)
    for number in numbers:
        if page.url != url:
            await page.goto(url)
        await _click(page, number)
    return len(numbers)


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
