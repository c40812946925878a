"""A real Chromium, without a screen, for tests of the dashboard as people use it."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.browser.chromium import launch
from tests.support.central import RunningCentral

BUILD = Path(__file__).parents[2] / "build"
SHOTS = BUILD / "screenshots"

CLOSE_S = 20.0
"""How long closing a browser's pages may take."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
async def chromium() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await launch(playwright)
        yield browser
        await browser.close()


class OpenPage(Protocol):
    """Signs a new browser in and shows it the overview; whatever goes wrong on its pages fails the test in the end."""

    def __call__(self, central: RunningCentral, **options: Any) -> AbstractAsyncContextManager[Page]: ...


@pytest.fixture
def person(chromium: Browser) -> OpenPage:
    @asynccontextmanager
    async def signed_in(central: RunningCentral, **options: Any) -> AsyncGenerator[Page]:
        context = await chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        wrong: list[str] = []
        try:
            context.set_default_timeout(20_000)
            page = await context.new_page()
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
            await page.goto(central.url + central.central.dashboard.one_time_link())
            await page.wait_for_url("**/dashboard")
            yield page
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True):  # or the pages of a failed test stay open beside the next
                await context.close()
        assert wrong == []

    return signed_in
