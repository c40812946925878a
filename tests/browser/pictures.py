"""Takes the pictures of the documentation: `python -m tests.browser.pictures FOLDER`. Needs Chromium."""

import sys
import tempfile
from pathlib import Path

import anyio
from playwright.async_api import async_playwright

from tests.browser.chromium import launch
from tests.browser.life import busy_server

PICTURES = {
    "overview": ("", "light"),
    "overview-dark": ("", "dark"),
    "sessions": ("/sessions", "light"),
    "session": ("/sessions/{session}", "light"),
    "edit": ("/edits/{edit}", "light"),
    "graph": ("/projects/one/graph", "light"),
}

MOST_BYTES = 200_000


async def take(folder: Path) -> None:
    """Writes the pictures. Raises SystemExit when one is too large."""
    folder.mkdir(parents=True, exist_ok=True)
    async with busy_server(Path(tempfile.mkdtemp())) as life, async_playwright() as playwright:
        browser = await launch(playwright)
        for name, (path, scheme) in PICTURES.items():
            context = await browser.new_context(
                viewport={"width": 1180, "height": 760}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page = await context.new_page()
            await page.goto(life.central.url + life.central.central.dashboard.one_time_link())
            await page.wait_for_url("**/dashboard")
            await page.goto(life.central.url + "/dashboard" + path.format_map(life.paths) + life.queries.get(path, ""))
            await page.locator("time").first.wait_for()
            size = len(await page.screenshot(path=folder / f"{name}.png"))
            print(f"{name}: {size} bytes")
            if size > MOST_BYTES:
                raise SystemExit(f"{name}.png has more than {MOST_BYTES} bytes")
            await context.close()
        await browser.close()


if __name__ == "__main__":
    anyio.run(take, Path(sys.argv[1]))
