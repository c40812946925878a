"""Lists are filtered: what one chooses is in the address, which shows the same again, with and without a script."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from serena_central.web.pages.table import PAGES
from tests.browser.conftest import OpenPage
from tests.browser.life import busy_server

pytestmark = pytest.mark.anyio

FILTERS = "form.filters[hx-target='#table']"
NOTHING = "no-row-has-this"


async def test_every_filter_of_every_list_narrows_it_and_stays_in_the_address(tmp_path: Path, person: OpenPage) -> None:
    async with (
        busy_server(tmp_path) as life,
        person(life.central) as page,
        person(life.central, java_script_enabled=False) as plain,
    ):
        filtered: dict[str, list[str]] = {}
        for one in PAGES:
            url = life.address(one)
            await page.goto(url)
            for name in await page.locator(f"{FILTERS} select").evaluate_all("all => all.map(one => one.name)"):
                if page.url != url:
                    await page.goto(url)
                choice = page.locator(f"{FILTERS} select[name='{name}']")
                values = await choice.locator("option").evaluate_all("all => all.map(one => one.value)")
                if len(values) > 1:
                    await choice.select_option(index=1)
                    await page.wait_for_url(lambda now, name=name: f"{name}=" in now)
                    await _same(page, plain)
                    filtered.setdefault(one.path, []).append(name)
            for name in await page.locator(f"{FILTERS} input:not([type=hidden])").evaluate_all(
                "all => all.map(one => one.name)"
            ):
                if page.url != url:
                    await page.goto(url)
                await page.locator(f"{FILTERS} input[name='{name}']").fill(NOTHING)
                await page.wait_for_url(f"**{name}={NOTHING}**")
                await expect(page.locator("#table tbody tr")).to_have_count(0)
                await _same(page, plain)
                filtered.setdefault(one.path, []).append(name)
        assert set(filtered["/sessions"]) >= {"q", "state", "project"}
        assert set(filtered["/edits"]) == {"project", "session", "file", "symbol"}
        assert set(filtered["/events"]) == {"q", "kind", "severity", "session", "project"}
        assert {"/servers", "/projects", "/tools", "/upstreams", "/events/log", "/usage/transcripts"} <= filtered.keys()


async def _same(page: Page, plain: Page) -> None:
    """What the script fetched is what the address shows without one."""
    await page.wait_for_function("document.querySelector('.htmx-request') === null")
    await plain.goto(page.url)
    # Times are in words where a script runs.
    rows = """all => all.map((one) => one.id || [...one.cells].filter((cell) => !cell.querySelector("time"))
        .map((cell) => cell.textContent.trim()).join())"""
    wanted = await plain.locator("#table tbody tr").evaluate_all(rows)
    await expect(page.locator("#table tbody tr")).to_have_count(len(wanted))
    assert await page.locator("#table tbody tr").evaluate_all(rows) == wanted
