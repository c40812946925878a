"""Folds a graph that is too big to read: files into their folders, the deepest first, until few are left. Pure."""

from collections import defaultdict

from serena_central.analysis.graph import Graph, merged


class _Folding:
    """Which ids are shown: each node's, or the folder that it was folded into."""

    def __init__(self, nodes: list[str]) -> None:
        self.shown = {node: node for node in nodes}

    def candidates(self) -> dict[str, list[str]]:
        """Folder → what is shown directly in it; only folders of the deepest level, and no lone ones."""
        below: dict[str, list[str]] = defaultdict(list)
        for node in set(self.shown.values()):
            if node != ".":
                below[_above(node)].append(node)
        below.pop("", None)
        depth = max((_depth(folder) for folder in below), default=0)
        return {folder: nodes for folder, nodes in below.items() if _depth(folder) == depth}

    def fold(self, folder: str) -> None:
        inside = folder + "/"
        for node, shown in self.shown.items():
            if shown.startswith(inside) or (folder == "." and "/" not in shown):
                self.shown[node] = folder


def _above(node: str) -> str:
    """What a node is folded into: a symbol's file, else the folder; at the top `.`."""
    path, colon, _ = node.partition(":")
    if colon:
        return path
    return path.rpartition("/")[0] or "."


def _depth(folder: str) -> int:
    return 0 if folder == "." else folder.count("/") + 1


def folded(graph: Graph, max_nodes: int) -> tuple[Graph, str | None]:
    """The graph with `max_nodes` at most, as far as folding can do it, and what was done to it, if anything.

    The smallest folders of the deepest level are folded first: what is told apart longest is what lies at the top.
    """
    if len(graph.files) <= max_nodes or graph.granularity == "module":
        return graph, None
    folding = _Folding(list(graph.files))
    if graph.granularity == "symbol":
        folding.shown = {node: node.partition(":")[0] for node in graph.files}
    while len(set(folding.shown.values())) > max_nodes:
        candidates = folding.candidates()
        if not candidates or set(candidates) == {"."}:
            break
        folding.fold(min(candidates, key=lambda folder: (len(candidates[folder]), folder)))
    small = merged(graph, folding.shown.__getitem__)
    return small, f"{len(graph.files)} nodes are folded to {len(small.files)}: files into their folders where need be."
