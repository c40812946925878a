"""A dependency graph as it is handed out: the whole analysis, the part that is drawn, and what has to be said of it."""

import msgspec

from serena_central.analysis.fold import folded
from serena_central.analysis.graph import Analysis, Graph, analyse


class GraphReport(msgspec.Struct):
    """`analysis` is about the whole graph, `drawn` is the graph folded to what can be read; `folders` are those of its
    nodes that stand for all that lies in them. Plain data for any page."""

    project: str
    folder: str
    nodes: int
    uses: int
    analysis: Analysis
    drawn: Graph
    drawn_analysis: Analysis
    folders: frozenset[str] = frozenset()
    remarks: list[str] = []

    @property
    def title(self) -> str:
        """What the graph is of."""
        return f"{self.project}/{self.folder}" if self.folder else self.project


def report_of(project: str, folder: str, graph: Graph, *, max_nodes: int, remarks: list[str]) -> GraphReport:
    drawn, how, folders = folded(graph, max_nodes)
    analysis = analyse(graph)
    return GraphReport(
        project=project,
        folder=folder,
        nodes=len(graph.files),
        uses=sum(edge.count for edge in graph.edges),
        analysis=analysis,
        drawn=drawn,
        drawn_analysis=analysis if drawn is graph else analyse(drawn),
        folders=folders,
        remarks=[*([how] if how else []), *remarks],
    )
