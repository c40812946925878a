"""How every page looks: on a desk and a phone, light and dark, and to who does not see it (axe-core)."""

from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Page, ViewportSize

from serena_central.web.pages.table import PAGES
from tests.browser.conftest import BUILD, SHOTS, OpenPage
from tests.browser.life import Life, busy_server

pytestmark = pytest.mark.anyio

AXE = BUILD / "browser" / "node_modules" / "axe-core" / "axe.min.js"
DESK = ViewportSize(width=1280, height=900)
WIDTHS = {"desk": DESK, "tablet": ViewportSize(width=820, height=1180), "phone": ViewportSize(width=390, height=844)}
BETWEEN = ("tablet",)
"""Where axe finds nothing of its own: what is shown there is shown on a desk, and the rules of style are a phone's."""


@pytest.fixture(scope="module")
async def life(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Life]:
    async with busy_server(tmp_path_factory.mktemp("life")) as busy:
        yield busy


EVERYTHING = "axe.run({resultTypes: ['violations']})"
"""What is right is not told node by node, which takes most of axe's time."""
COLOURS = "axe.run({runOnly: ['color-contrast', 'link-in-text-block'], resultTypes: ['violations']})"
"""All that is not the same in light and dark."""

PARTS = 4
"""In which all pages are looked at: together they take more than one test's time on a busy machine."""


@pytest.mark.parametrize("part", range(PARTS))
async def test_every_page_is_readable_by_everybody_and_nothing_is_cut_off(
    life: Life, person: OpenPage, part: int
) -> None:
    found: dict[str, list[str]] = {}
    async with person(life.central, viewport=DESK, bypass_csp=True) as page:
        for name, url in list(_pages(life).items())[part::PARTS]:
            await page.goto(url)
            found |= await unreadable(page, name)
    assert found == {}


async def test_names_without_an_end_break_and_ordinary_words_do_not(
    life: Life, person: OpenPage, tmp_path: Path
) -> None:
    root = tmp_path / ("x" * 200)
    root.mkdir()
    async with life.central.http() as http, person(life.central) as page:
        facts = {"client_name": "x" * 10_000, "client_version": "y" * 10_000, "working_folder": "/" + "z" * 2000}
        long = (await http.post("/api/v1/sessions", json=facts)).json()["session_id"]
        activated = {"session": long, "arguments": {"project": str(root)}}
        assert (await http.post("/api/v1/tools/activate_project", json=activated)).status_code == 200
        project = f"/projects/one?root={quote(str(root))}"
        pages = ("", "/sessions", "/events", "/statistics", "/projects", "/tools", project, f"/sessions/{long}")
        of_project = (
            f"/{page}?root={quote(str(root))}" for page in ("hooks", "configuration", "projects/one/findings")
        )
        for path in (*pages, *of_project):
            await page.goto(f"{life.central.url}/dashboard{path}")
            shown = path.strip("/").partition("?")[0].partition("/")[0]
            for width in (320, 390, 820, 1280):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
                await page.screenshot(path=SHOTS / f"long-names-{shown}-{width}.png")
                broken = await page.evaluate(BROKEN_WORDS)
                assert not broken, (path, width, broken)
                assert not await page.evaluate(HIDDEN_QUESTIONS), (path, width)
        await http.delete(f"/api/v1/sessions/{long}")


BROKEN_WORDS = """() => {
    const broken = [];
    const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!text.parentElement.checkVisibility()) continue;
        if (text.parentElement.closest(".unseen, svg, option, title, pre")) continue;
        for (const word of text.textContent.matchAll(/[A-Za-z]{2,20}/g)) {
            if (/^[xyz]+$/.test(word[0]) || word.input.slice(word.index + word[0].length).match(/^[A-Za-z]/)) continue;
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
        }
    }
    return broken;
}"""
"""Words that are on more than one line; lines of code and of protocols are broken where they must be."""

CUT_OFF = """() => [...document.querySelectorAll("main *")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 160)).slice(0, 4)
"""
"""What is partly right of the screen; what scrolls by itself, too."""

HIDDEN_QUESTIONS = """() => {
    const hidden = [];
    for (const details of document.querySelectorAll("details.confirm")) {
        if (!details.checkVisibility()) continue;
        details.open = true;
        const box = details.querySelector(".sure").getBoundingClientRect();
        if (box.left < 0 || box.right > innerWidth || box.top + scrollY < 0) hidden.push(details.id);
        details.open = false;
    }
    return hidden;
}"""
"""Questions before an action that nobody could scroll to."""


async def test_who_is_outside_is_told_readably(life: Life, person: OpenPage) -> None:
    async with person(life.central, bypass_csp=True) as page:
        await page.goto("about:blank")  # a page that is open leaves by itself once its cookie is gone
        await page.context.clear_cookies()
        await page.goto(f"{life.central.url}/dashboard")
        await page.screenshot(path=SHOTS / "outside-light.png")
        assert await violations(page) == []


def _pages(life: Life) -> dict[str, str]:
    return {
        page.path.strip("/").partition("{")[0].replace("/", "-") + ("one" if "{" in page.path else "")
        or "overview": life.address(page)
        for page in PAGES
    }


async def unreadable(page: Page, name: str) -> dict[str, list[str]]:
    """What is wrong with the page that is open, by its name, colours and width. It leaves a picture of each width in
    light, and of one in dark, where nothing but the colours differs."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[str]] = {}
    await page.locator("h1").first.wait_for(state="attached")
    for width, size in WIDTHS.items():
        picture = f"{name}-light-{width}"
        await page.set_viewport_size(size)
        await page.screenshot(path=SHOTS / f"{picture}.png", full_page=True)
        found[picture] = [] if width in BETWEEN else await violations(page)
        if await page.evaluate("document.documentElement.scrollWidth") > size["width"]:
            found[picture].append(f"something is cut off: {await page.evaluate(CUT_OFF)}")
        found[picture] += [f"a word is broken: {word}" for word in await page.evaluate(BROKEN_WORDS)]
        found[picture] += [f"a question is out of sight: {name}" for name in await page.evaluate(HIDDEN_QUESTIONS)]
    await page.emulate_media(color_scheme="dark")
    for width in ("phone", "desk"):
        await page.set_viewport_size(WIDTHS[width])
        found[f"{name}-dark-{width}"] = await violations(page, COLOURS)
    await page.screenshot(path=SHOTS / f"{name}-dark-desk.png", full_page=True)
    await page.emulate_media(color_scheme="light")
    return {picture: wrong for picture, wrong in found.items() if wrong}


async def violations(page: Page, rules: str = EVERYTHING) -> list[str]:
    """What is wrong by rules of axe-core, for people and programs that read the page that is open."""
    if not await page.evaluate("'axe' in window"):
        await page.add_script_tag(path=AXE)
    found = await page.evaluate(rules)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]
