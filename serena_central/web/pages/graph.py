"""The graph of a project: what references what, its cycles and hot spots, as it was analyzed last.

A button starts an analysis run in the background; meanwhile the last one is shown, with its age.
"""

from collections.abc import Sequence

import msgspec

from serena_central.analysis.graph import Edge as GraphEdge
from serena_central.analysis.graph import Ranked
from serena_central.analysis.report import GraphReport
from serena_central.core.event_kinds import AnalysisEnded
from serena_central.web.pages.analysis_status import GRAPH, WORK, root_of, told
from serena_central.web.pages.graph_drawing import COLOURS, Drawing, drawing
from serena_central.web.pages.graph_view import (
    GRANULARITIES,
    View,
    address,
    folded,
    look_of,
    references_url,
    view_of,
)
from serena_central.web.pages.listing import Column, Columns, Heading, Option, options
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.projects import ONE, known
from serena_central.web.pages.references import project_named

LIST_BYTES = 6000
"""Of the list of cycles, about."""

CYCLE_EDGES = 5
"""Shown of one cycle, the weakest first: where it is cut most easily."""

SPOTS = 8

OPEN_FOLDERS = 12
"""Folders that can be shut by a link below the drawing, the outermost first."""

NOTES = 5


class Step(msgspec.Struct, frozen=True):
    """A folder and where it leads."""

    name: str
    url: str


class Looking(msgspec.Struct, frozen=True):
    """What is looked at, and ways to look at something else. `around`: from the root to the folder that is shown."""

    name: str
    root: str
    folder: str
    project_url: str
    granularities: list[Option]
    around: list[Step]


class Shown(msgspec.Struct, frozen=True):
    """The drawing, None where there is none. `nodes` and `references` are the whole graph's; `open_folders` lead to
    them shut, `reset` to what is shown without a choice of folders."""

    analyzed: bool
    drawing: Drawing | None
    references_url: str
    nodes: int
    references: int
    open_folders: list[Step]
    reset: str
    notes: list[str]


class EdgeLink(msgspec.Struct, frozen=True):
    """What one node references of another; `sample` is one such place, its line 1-based."""

    source: str
    target: str
    count: int
    url: str
    sample: str


class CycleRow(msgspec.Struct, frozen=True):
    """A cycle with its weakest edges. `colour` is that in the drawing, 0 where folding hides it."""

    name: str
    nodes: int
    colour: int
    edges: list[EdgeLink]
    more: int


class Cycles(msgspec.Struct, frozen=True):
    analyzed: bool
    cycles: list[CycleRow]
    more: int


class Spot(msgspec.Struct, frozen=True):
    """A node, with how many others, and by how many references."""

    node: str
    url: str
    nodes: int
    references: int


class Ranking(msgspec.Struct, frozen=True):
    title: str
    columns: list[Heading]
    spots: list[Spot]


class Spots(msgspec.Struct, frozen=True):
    """What most depends on, and what has the most dependencies; nothing where there are none."""

    analyzed: bool
    rankings: list[Ranking]


async def looking(visit: Visit) -> Looking:
    root, look = str(root_of(visit)), look_of(visit)
    parts = look.folder.split("/") if look.folder else []
    folders = ["/".join(parts[:length]) for length in range(len(parts) + 1)]
    anew = look._replace(opened=(), shut=())
    return Looking(
        name=known(visit, root).name,
        root=root,
        folder=look.folder,
        project_url=link(ONE, root=root),
        granularities=options(list(GRANULARITIES), look.granularity)[1:],
        around=[Step(folder.rpartition("/")[2], address(root, anew._replace(folder=folder))) for folder in folders],
    )


async def shown(visit: Visit) -> Shown:
    view = await view_of(visit)
    if view is None:
        return Shown(False, None, "", 0, 0, [], "", [])
    report, look = view.report, look_of(visit)
    notes = told(report.notes, NOTES, "serena-central graph")
    return Shown(
        analyzed=True,
        drawing=drawing(report, view.links) if report.nodes else None,
        references_url=references_url(view.root),
        nodes=report.nodes,
        references=report.uses,
        open_folders=[Step(one, address(view.root, folded(look, one))) for one in _open_folders(report, look.folder)],
        reset=address(view.root, look._replace(opened=(), shut=())) if look.opened or look.shut else "",
        notes=notes,
    )


def _open_folders(report: GraphReport, around: str) -> list[str]:
    """Folders inside of the one that is shown of which something is seen, the outermost first."""
    if report.drawn.granularity == "module":
        return []
    found: set[str] = set()
    for node in report.drawn.files:
        parts = node.split("/")[:-1]
        found.update("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    inside = [one for one in found if not around or one.startswith(f"{around}/")]
    return sorted(inside, key=lambda one: (one.count("/"), one))[:OPEN_FOLDERS]


async def cycles(visit: Visit) -> Cycles:
    view = await view_of(visit)
    if view is None:
        return Cycles(False, [], 0)
    found, room = view.report.analysis.cycles, LIST_BYTES
    rows: list[CycleRow] = []
    for cycle in found:
        weakest = sorted(cycle.edges, key=lambda edge: (edge.count, edge.source, edge.target))[:CYCLE_EDGES]
        row = CycleRow(
            cycle.name,
            len(cycle.nodes),
            _colour(view.report, cycle.nodes),
            [_edge_link(view, edge) for edge in weakest],
            len(cycle.edges) - len(weakest),
        )
        room -= len(msgspec.json.encode(row))
        if room < 0:
            break
        rows.append(row)
    return Cycles(True, rows, len(found) - len(rows))


def _colour(report: GraphReport, nodes: Sequence[str]) -> int:
    """The colour that a cycle of the whole graph has in the drawing."""
    places = {node: place for place, cycle in enumerate(report.drawn_analysis.cycles) for node in cycle.nodes}
    found = {places.get(node) for node in nodes}
    place = found.pop() if len(found) == 1 else None
    return 0 if place is None else place % COLOURS + 1


def _edge_link(view: View, edge: GraphEdge) -> EdgeLink:
    url = references_url(view.root, source=view.reach(edge.source), target=view.reach(edge.target))
    sample = edge.samples[0]
    return EdgeLink(edge.source, edge.target, edge.count, url, f"{sample.path}:{sample.line + 1}")


def _ranking(parameter: str, of: str) -> Columns[Ranked]:
    columns: dict[str, Column[Ranked]] = {
        "node": Column("Node", lambda one: one.node),
        "nodes": Column(of, lambda one: one.nodes, "number"),
        "references": Column("References", lambda one: one.uses, "number"),
    }
    return Columns(columns, parameter=parameter)


USED_COLUMNS, USING_COLUMNS = _ranking("used", "Referenced by"), _ranking("using", "References")


async def spots(visit: Visit) -> Spots:
    view = await view_of(visit)
    if view is None:
        return Spots(False, [])
    found = view.report.analysis
    rankings = [
        Ranking(
            title,
            columns.headings(visit, GRAPH),
            [_spot(view, one) for one in columns.arranged(ranked[:SPOTS], visit)],
        )
        for title, columns, ranked in (
            ("Most referenced", USED_COLUMNS, found.most_used),
            ("Most dependencies", USING_COLUMNS, found.most_using),
        )
    ]
    return Spots(True, rankings if found.most_used else [])


def _spot(view: View, one: Ranked) -> Spot:
    return Spot(one.node, references_url(view.root, of=view.reach(one.node)), one.nodes, one.uses)


PAGE = Page(
    path=GRAPH,
    title="Graph",
    template="graph.html",
    sections={
        "looking": Section("graph/_looking.html", looking, every_s=3600),
        "work": WORK,
        "shown": Section("graph/_shown.html", shown, (AnalysisEnded,), every_s=3600),
        "cycles": Section("graph/_cycles.html", cycles, (AnalysisEnded,), every_s=3600),
        "spots": Section("graph/_spots.html", spots, (AnalysisEnded,), every_s=3600),
    },
    in_navigation=False,
    names=project_named,
)
