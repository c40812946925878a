"""The browser of the tests and pictures: Chromium without a screen."""

import shutil

from playwright.async_api import Browser, Playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""In the order of `scripts/get-chromium`: the headless shell takes half of the CPU time of the others."""


async def launch(playwright: Playwright) -> Browser:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program, "`make browser` installs the browser"
    return await playwright.chromium.launch(
        executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
    )
