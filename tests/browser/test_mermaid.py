"""Graphs as Mermaid draws them: its own parser takes what we write, and every node and edge is in the picture."""

import pytest
from playwright.async_api import Browser

from serena_central.analysis.collection import Definition
from serena_central.analysis.graph import graph_of
from serena_central.analysis.render.formats import RENDERERS
from serena_central.analysis.report import report_of
from tests.browser.conftest import BUILD

pytestmark = pytest.mark.anyio

MERMAID = BUILD / "browser" / "node_modules" / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"

NAMES = [
    'a "b" <c>&|`\n\\.py',
    "end.py",
    "b[0]{x}(y).py",
    "größe 📏.py",
    "d; %% e --> f.py",
    "<script>alert(1)</script>",
]


async def test_a_graph_with_any_names_is_drawn_with_all_its_nodes_and_edges(chromium: Browser) -> None:
    files = dict(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
    definitions = [Definition(name, "x", 12, 0, {user: [(0, 0)]}) for name, user in files.items()]
    graph = graph_of(definitions, NAMES, "file", node_of=str)
    drawn = RENDERERS["mermaid"](report_of("shop", "", graph, max_nodes=50, notes=[]))
    page = await chromium.new_page()
    await page.set_content("<body></body>")
    await page.add_script_tag(path=MERMAID)
    picture = await page.evaluate(
        """async (text) => {
            mermaid.initialize({startOnLoad: false});
            await mermaid.parse(text);
            return (await mermaid.render("graph", text)).svg;
        }""",
        drawn,
    )
    await page.set_content(picture)
    assert await page.locator(".node").count() == len(NAMES)
    assert await page.locator(".edgePaths path").count() == len(NAMES)
    assert await page.locator(".node.cycle").count() == len(NAMES)
    assert "größe 📏.py" in (await page.locator(".nodes").text_content() or "")
    await page.close()
