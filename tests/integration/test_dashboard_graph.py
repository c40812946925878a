"""The graph of a project in the dashboard: asked of real language servers, looked at, cancelled, kept."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from serena_central.analysis.analysis_run import GraphRun, Kind
from serena_central.analysis.collection import Definition
from serena_central.core.errors import PathRefused
from serena_central.core.progress import report
from serena_central.web.pages import analysis_status, findings, graph, graph_references
from serena_central.web.pages.graph_drawing import Drawing, Edge, Node
from serena_central.web.pages.listing import Option, Pager
from serena_central.web.pages.page import Visit, link
from tests.support.browser import Visitor, visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

FILES = {
    "main.py": "from shop.cart import Cart\n\nprint(Cart().total(), nowhere)\n",
    "shop/__init__.py": "",
    "shop/cart.py": "from shop.line import Line\n\n\nclass Cart:\n    line: Line\n\n"
    "    def total(self) -> int:\n        return 1\n",
    "shop/line.py": "from __future__ import annotations\n\nimport shop.cart\n\n\n"
    "class Line:\n    cart: shop.cart.Cart\n\n\ndef forgotten() -> None: ...\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "src" / "till"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
async def central(tmp_path: Path, root: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"projects": [str(root)]}, patience_s=120) as running:
        yield running


@pytest.fixture
async def visitor(central: RunningCentral) -> AsyncGenerator[Visitor]:
    async with visiting(central) as browser:
        yield browser


def visit(central: RunningCentral, root: Path, **query: str) -> Visit:
    return Visit(central.central.dashboard.parts, {}, {"root": str(root), **query}, 0.0)


async def analysis_run(central: RunningCentral, visitor: Visitor, root: Path, kind: Kind) -> None:
    """Presses the button, and waits for the end."""
    with central.central.bus.subscribe() as news, anyio.fail_after(60):
        said = await visitor.act("/projects/one/analysis", {"root": str(root), "kind": kind}, {"hx-request": "true"})
        assert "running. Other callers" in said.text, said.text
        async for event in news:
            if event.kind == "analysis.ended":
                assert event.message == ""
                return


async def task(central: RunningCentral, root: Path, number: int = 0) -> analysis_status.Task:
    return (await analysis_status.work(visit(central, root))).tasks[number]


async def test_the_page_says_that_nobody_has_looked_yet(central: RunningCentral, root: Path) -> None:
    asked = visit(central, root)
    unknown: dict[str, Any] = {"found": "", "at": None, "changed": None, "running": False, "began": None}
    rest: dict[str, Any] = {"says": "", "share": None, "failure": ""}
    assert await analysis_status.work(asked) == analysis_status.Work(
        str(root),
        [
            analysis_status.Task(
                kind="graph", title="Graph", url=link("/projects/one/graph", root=root), **unknown, **rest
            ),
            analysis_status.Task(
                kind="findings", title="Findings", url=link("/projects/one/findings", root=root), **unknown, **rest
            ),
        ],
    )
    assert await graph.shown(asked) == graph.Shown(False, None, "", 0, 0, [], "", [])
    assert await graph.cycles(asked) == graph.Cycles(False, [], 0)
    assert await graph.spots(asked) == graph.Spots(False, [])
    empty = Pager(0, 0, 0, "", "")
    found = await findings.table(asked)
    assert found == findings.FindingsTable(False, found.columns, [], empty, 0, 0, 0, 0, [])


async def test_what_references_what_is_shown_exactly(central: RunningCentral, visitor: Visitor, root: Path) -> None:
    await analysis_run(central, visitor, root, "graph")
    asked = visit(central, root)

    def of(node: str) -> str:
        return link("/projects/one/references", root=root, of=node)

    def nodes(*places: tuple[str, int, int, int]) -> list[Node]:
        return [
            Node(path, path, of(path), "", 0 if path in ("main.py", "shop/__init__.py") else 1, x, y, width)
            for path, x, y, width in places
        ]

    assert await graph.shown(asked) == graph.Shown(
        analyzed=True,
        drawing=Drawing(
            width=323,
            height=142,
            box=24,
            nodes=nodes(
                ("shop/__init__.py", 20, 20, 128),
                ("shop/cart.py", 20, 54, 128),
                ("shop/line.py", 20, 88, 128),
                ("main.py", 238, 20, 65),
            ),
            edges=[
                Edge(3, 1, 2, "M238 32C193 32 193 66 148 66", 4.0, 0),
                Edge(1, 2, 2, "M148 66C193 66 193 100 148 100", 4.0, 1),
                Edge(2, 1, 1, "M148 100C193 100 193 66 148 66", 2.5, 1),
            ],
            left_out=0,
            says="Dependency graph: 4 nodes, 3 edges, 1 cycle",
        ),
        references_url=link("/projects/one/references", root=root),
        nodes=4,
        references=5,
        open_folders=[graph.Step("shop", link("/projects/one/graph", root=root, shut="shop"))],
        reset="",
        notes=[],
    )

    def edge(source: str, target: str, count: int, sample: str) -> graph.EdgeLink:
        url = link("/projects/one/references", root=root, source=source, target=target)
        return graph.EdgeLink(source, target, count, url, sample)

    assert await graph.cycles(asked) == graph.Cycles(
        True,
        [
            graph.CycleRow(
                "shop/cart.py ↔ shop/line.py",
                2,
                1,
                [
                    edge("shop/line.py", "shop/cart.py", 1, "shop/line.py:7"),
                    edge("shop/cart.py", "shop/line.py", 2, "shop/cart.py:1"),
                ],
                0,
            )
        ],
        0,
    )
    cart, line, main = "shop/cart.py", "shop/line.py", "main.py"
    spots = await graph.spots(asked)
    assert [(one.title, one.spots) for one in spots.rankings] == [
        ("Most referenced", [graph.Spot(cart, of(cart), 2, 3), graph.Spot(line, of(line), 1, 2)]),
        (
            "Most dependencies",
            [graph.Spot(main, of(main), 1, 2), graph.Spot(cart, of(cart), 1, 2), graph.Spot(line, of(line), 1, 1)],
        ),
    ]
    by_name = await graph.spots(visit(central, root, used="-node"))
    assert [one.node for one in by_name.rankings[0].spots] == sorted((cart, line), reverse=True)


async def test_folders_are_folded_and_looked_at_by_the_address_alone(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    await analysis_run(central, visitor, root, "graph")
    shut = await graph.shown(visit(central, root, shut="shop"))
    assert shut.drawing
    assert [(node.id, node.label) for node in shut.drawing.nodes] == [("shop", "shop (3)"), ("main.py", "main.py")]
    assert shut.drawing.nodes[0].unfold == link("/projects/one/graph", root=root, opened="shop")
    assert shut.reset == link("/projects/one/graph", root=root)
    page = await visitor.see(f"/projects/one/graph?root={quote(str(root))}&folder=shop")
    assert "main.py" not in page
    assert 'id="graph"' in page
    assert await graph.looking(
        visit(central, root, folder="shop", granularity="folder", opened="x//y")
    ) == graph.Looking(
        name="till",
        root=str(root),
        folder="shop",
        project_url=link("/projects/one", root=root),
        granularities=[
            Option("file", "file", chosen=False),
            Option("folder", "folder", chosen=True),
            Option("module", "module", chosen=False),
        ],
        around=[
            graph.Step("", link("/projects/one/graph", root=root, granularity="folder")),
            graph.Step("shop", link("/projects/one/graph", root=root, granularity="folder", folder="shop")),
        ],
    )


async def test_an_edge_leads_to_its_references_with_their_lines(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    await analysis_run(central, visitor, root, "graph")
    graph_url = link("/projects/one/graph", root=root)
    around: dict[str, Any] = {"name": "till", "graph_url": graph_url, "analyzed": True, "changed": False}
    shown = await graph_references.graph_references(visit(central, root, source="main.py", target="shop"))
    assert shown == graph_references.GraphReferences(
        **around,
        of="",
        users=[],
        more_users=0,
        used=[],
        more_used=0,
        source="main.py",
        target="shop",
        users_columns=shown.users_columns,
        used_columns=shown.used_columns,
        columns=shown.columns,
        rows=[
            graph_references.GraphReference("main.py", 1, "from shop.cart import Cart", "Cart", "shop/cart.py"),
            graph_references.GraphReference("main.py", 3, "print(Cart().total(), nowhere)", "Cart", "shop/cart.py"),
        ],
        pager=Pager(1, 2, 2, "", ""),
        total=2,
    )
    around_cart = await graph_references.graph_references(visit(central, root, of="shop/cart.py"))
    assert [(one.path, one.count) for one in around_cart.users] == [("main.py", 2), ("shop/line.py", 1)]
    assert [(one.path, one.count) for one in around_cart.used] == [("shop/line.py", 2)]
    assert around_cart.used[0].url == link(
        "/projects/one/references", root=root, source="shop/cart.py", target="shop/line.py"
    )
    html = await visitor.see(f"/projects/one/references?root={quote(str(root))}&source=main.py&target=shop")
    assert "<code>from shop.cart import Cart</code>" in html


async def test_findings_are_listed_with_their_confidence(central: RunningCentral, visitor: Visitor, root: Path) -> None:
    await analysis_run(central, visitor, root, "findings")
    broken = findings.Finding(
        "broken reference", "main.py", 3, "undefined name", "Name `nowhere` used when not defined", "certain"
    )
    unused = findings.Finding(
        "unused symbol", "shop/line.py", 10, "function forgotten", "its name occurs nowhere else", "high"
    )
    pager = Pager(1, 2, 2, "", "")
    found = await findings.table(visit(central, root))
    assert found == findings.FindingsTable(True, found.columns, [broken, unused], pager, 1, 0, 1, 4, [])
    assert (await findings.table(visit(central, root, kind="unused symbol"))).rows == [unused]
    assert (await task(central, root, 1)).found == "1 broken reference, 1 unused symbol"


async def test_the_last_graph_is_there_after_a_restart_and_tells_when_code_has_changed(
    tmp_path: Path, root: Path
) -> None:
    settings = {"projects": [str(root)]}
    async with running_central(tmp_path, settings) as central, visiting(central) as visitor:
        await analysis_run(central, visitor, root, "graph")
        (root / "notes.txt").write_text("no code\n")
        assert (await task(central, root)).changed is False
        (root / "main.py").write_text("print(1)\n")
        assert (await task(central, root)).changed is True
        assert "The code has changed since" in await visitor.see(f"/projects/one/graph?root={quote(str(root))}")
    async with running_central(tmp_path, settings) as central:
        assert (await task(central, root)).changed is None
        assert (await graph.shown(visit(central, root))).nodes == 4
        await central.central.projects.open(root)
        assert (await task(central, root)).changed is True


async def test_an_analysis_run_is_watched_and_cancelled(
    central: RunningCentral, visitor: Visitor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, fields = anyio.Event(), {"root": str(root), "kind": "graph"}

    async def collect(*_: object, **__: object) -> None:
        report("asking", 0.25)
        reached.set()
        await anyio.sleep_forever()

    monkeypatch.setattr("serena_central.analysis.collector.Collector.collect", collect)
    await central.central.projects.open(root)
    await visitor.act("/projects/one/analysis", fields)
    with anyio.fail_after(60), central.central.bus.subscribe() as news:
        await reached.wait()
        running = await task(central, root)
        assert (running.running, running.says, running.share) == (True, "asking", 25.0)
        assert "Cancel graph" in await visitor.see(f"/projects/one/graph?root={quote(str(root))}")
        await visitor.act("/projects/one/analysis/cancel", fields)
        async for event in news:
            if event.kind == "analysis.ended":
                break
    assert (await task(central, root)).failure.startswith("It was cancelled")
    again = await visitor.act("/projects/one/analysis/cancel", fields, {"hx-request": "true"})
    assert "already ended" in again.text


async def test_why_an_analysis_run_failed_is_said(
    central: RunningCentral, visitor: Visitor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def collect(*_: object, **__: object) -> None:
        raise ExceptionGroup("tasks", [PathRefused("Not this one.")])

    monkeypatch.setattr("serena_central.analysis.collector.Collector.collect", collect)
    with anyio.fail_after(60), central.central.bus.subscribe() as news:
        await visitor.act("/projects/one/analysis", {"root": str(root), "kind": "graph"})
        async for event in news:
            if event.kind == "analysis.ended":
                break
    assert (await task(central, root)).failure == "Not this one."


@pytest.mark.parametrize("action", ["analysis", "analysis/cancel"])
async def test_analysis_runs_need_the_browsers_token_and_a_known_kind(
    visitor: Visitor, root: Path, action: str
) -> None:
    fields = {"root": str(root), "kind": "graph"}
    assert (await visitor.act(f"/projects/one/{action}", fields | {"csrf": "0" * 64})).status_code == 403
    assert (await visitor.act(f"/projects/one/{action}", fields | {"kind": "planet"})).status_code == 404
    assert (await visitor.act(f"/projects/one/{action}", fields | {"root": "/etc"})).status_code == 404


@pytest.mark.parametrize("flat", [True, False], ids=["in one folder", "in many folders"])
async def test_pages_stay_small_for_large_graphs_with_long_names(
    central: RunningCentral, visitor: Visitor, root: Path, flat: bool
) -> None:
    await central.central.dashboard.parts.analysis_runs.keep(root, large(flat=flat))
    for query in ("", "&granularity=folder", "&granularity=module", "&opened=a0/b0//a1/b1", "&folder=a0"):
        html = await visitor.see(f"/projects/one/graph?root={quote(str(root))}{query}")
        assert len(html.encode()) <= 50_000, query
        assert len(re.findall('class="node', html)) >= 1, query
        assert "further notes: serena-central graph shows all." in html, query


def large(*, flat: bool) -> Any:
    """A thousand files with names as long as they get, each of which references a dozen others."""
    names = [
        f"{'a0/all' if flat else f'a{number % 7}/b{number % 90}'}/a_rather_long_and_tedious_name_of_a_file_{number}.py"
        for number in range(1000)
    ]
    used = [
        Definition(name, f"Symbol{number}", 5, 0, {names[(number * 7 + step) % 1000]: [(1, 1)] for step in range(12)})
        for number, name in enumerate(names)
    ]
    return GraphRun(at=1.0, fingerprints={}, areas=[], notes=["x" * 5000] * 20, definitions=used, files=names)
