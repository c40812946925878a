"""A dependency graph as a report: the analysis, the part that is drawn, and notes."""

from collections import Counter
from collections.abc import Collection

import msgspec

from serena_central.analysis.fold import folded
from serena_central.analysis.graph import Analysis, Graph, analyse
from serena_central.core.words import counted


class GraphReport(msgspec.Struct):
    """`analysis` is about the whole graph, `drawn` is the graph folded to what can be read; `folders` are those of its
    nodes that stand for all that lies in them. Plain data for any page."""

    project: str
    folder: str
    nodes: int
    uses: int
    possible: int
    analysis: Analysis
    drawn: Graph
    drawn_analysis: Analysis
    folders: frozenset[str] = frozenset()
    notes: list[str] = []

    @property
    def title(self) -> str:
        """What the graph is of."""
        return f"{self.project}/{self.folder}" if self.folder else self.project


def report_of(
    project: str,
    folder: str,
    graph: Graph,
    *,
    max_nodes: int,
    notes: list[str],
    analysis: Analysis | None = None,
    opened: Collection[str] = (),
    shut: Collection[str] = (),
) -> GraphReport:
    """`analysis` is the graph's, if it is known already; folders are folded as `folded` says."""
    drawn, how, folders = folded(graph, max_nodes, opened=opened, shut=shut)
    notes = [*([how] if how else []), *notes]
    if (left_out := len(drawn.files) - max_nodes) > 0:
        drawn = _strongest(drawn, max_nodes)
        notes = [f"Omitted from the drawing: {counted(left_out, 'node')} with the fewest references.", *notes]
    analysis = analysis or analyse(graph)
    return GraphReport(
        project=project,
        folder=folder,
        nodes=len(graph.files),
        uses=sum(edge.count for edge in graph.edges),
        possible=sum(edge.possible for edge in graph.edges),
        analysis=analysis,
        drawn=drawn,
        drawn_analysis=analysis if drawn is graph else analyse(drawn),
        folders=folders & drawn.files.keys(),
        notes=notes,
    )


def _strongest(graph: Graph, most: int) -> Graph:
    """Those of its nodes that have the most uses, for where folding leaves too many."""
    uses = Counter[str]()
    for edge in graph.edges:
        uses[edge.source] += edge.count
        uses[edge.target] += edge.count
    chosen = sorted(graph.files, key=lambda node: (-uses[node], node))[:most]
    kept = set(chosen)
    edges = [edge for edge in graph.edges if edge.source in kept and edge.target in kept]
    return Graph(graph.granularity, {node: graph.files[node] for node in chosen}, edges)
