"""A graph as a page draws it: the geometry of its nodes and edges, and where they lead, small enough for a page.

Does not know how analysis runs are made; `graph/_shown.html` draws what this computes.
"""

import msgspec

from serena_central.analysis.graph import confirmed
from serena_central.analysis.render.layout import BOX, Box, cycle_of, label, layout
from serena_central.analysis.report import GraphReport
from serena_central.core.words import counted

COLOURS = 6
"""Classes of cycles' colours, in turn."""

MOST_BYTES = 26_000
"""Of HTML, about, so that the whole page stays below 50 KB."""

MOST_EDGES = 110
"""Weaker strokes cannot be distinguished."""

NODE_BYTES, UNFOLD_BYTES, EDGE_BYTES = 150, 110, 115
"""Of a node, its sign for unfolding, and an edge in HTML, besides names and addresses, about."""


class Node(msgspec.Struct, frozen=True):
    """A box. `url` leads to its references, `unfold` to what lies in it ("" where nothing does). `cycle` is its
    colour's number, 0 for none."""

    id: str
    label: str
    url: str
    unfold: str
    cycle: int
    x: int
    y: int
    width: int


class Edge(msgspec.Struct, frozen=True):
    """A line from the referencing node to the referenced one, by their places in the list of nodes."""

    source: int
    target: int
    count: int
    path: str
    width: float
    cycle: int


class Drawing(msgspec.Struct, frozen=True):
    """Everything that is drawn. `left_out`: edges that are too weak to be shown."""

    width: int
    height: int
    box: int
    nodes: list[Node]
    edges: list[Edge]
    left_out: int
    says: str


class Links(msgspec.Struct, frozen=True):
    """Node → where clicks on it lead."""

    url: dict[str, str]
    unfold: dict[str, str]


def weight(report: GraphReport, links: Links) -> int:
    """Bytes of HTML that a drawing will need, about: ampersands and non-ASCII letters take several."""
    names = sum(NODE_BYTES + 3 * len(node.encode("utf-8", "replace")) for node in report.drawn.files)
    addresses = sum(map(len, links.url.values()))
    unfolding = sum(UNFOLD_BYTES + len(url) for url in links.unfold.values() if url)
    return names + addresses + unfolding + EDGE_BYTES * min(len(report.drawn.edges), MOST_EDGES)


def drawing(report: GraphReport, links: Links) -> Drawing:
    """The folded graph of a report."""
    # Where edges lead, confirmed references are listed: what is only possible stands in the notes.
    graph, analysis = confirmed(report.drawn), report.drawn_analysis
    drawn = layout(graph, analysis)
    cycles = {node: number % COLOURS + 1 for node, number in cycle_of(analysis).items()}
    places = {node: place for place, node in enumerate(drawn.boxes)}
    strongest = max((edge.count for edge in graph.edges), default=1)
    edges = [
        Edge(
            places[edge.source],
            places[edge.target],
            edge.count,
            drawn.line(edge),
            round(1 + 3 * edge.count / strongest, 1),
            cycles.get(edge.source, 0) if cycles.get(edge.source) == cycles.get(edge.target) else 0,
        )
        for edge in graph.edges[:MOST_EDGES]
    ]
    return Drawing(
        width=drawn.width,
        height=drawn.height,
        box=BOX,
        nodes=[_node(node, box, report, links, cycles) for node, box in drawn.boxes.items()],
        edges=edges,
        left_out=len(graph.edges) - len(edges),
        says=f"Dependency graph: {counted(len(graph.files), 'node')}, {counted(len(graph.edges), 'edge')}, "
        f"{counted(len(analysis.cycles), 'cycle')}",
    )


def _node(node: str, box: Box, report: GraphReport, links: Links, cycles: dict[str, int]) -> Node:
    return Node(
        id=node,
        label=label(node, report.drawn.files[node]),
        url=links.url[node],
        unfold=links.unfold[node],
        cycle=cycles.get(node, 0),
        x=box.x,
        y=box.y,
        width=box.width,
    )
