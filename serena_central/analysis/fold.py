"""Folds a graph that is too big to read: files into their folders, until few enough are left. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from serena_central.analysis.graph import Graph, merged


class Folded(NamedTuple):
    """A graph to look at, and what was done to it, if anything. `folders` stand for all that they hold."""

    graph: Graph
    how: str | None
    folders: frozenset[str]


class _Tree:
    """Folders of nodes, and which of them are open: what is shown is each node, or the outermost shut folder around."""

    def __init__(self, nodes: Collection[str]) -> None:
        self._nodes = frozenset(nodes)
        self._below: dict[str, set[str]] = defaultdict(set)
        """Folder → what lies directly in it, itself among that if it is a node, too."""
        for node in nodes:
            for inner, outer in _steps(node):
                self._below[outer].add(inner)
        for folder in self._below.keys() & self._nodes:
            self._below[folder].add(folder)
        self._open = {"."}
        self.count = len(self._below["."])

    def open(self, folder: str) -> None:
        """Opens a folder, and those around it."""
        for _, outer in [*_steps(folder), ("", folder)]:
            if outer in self._below and outer not in self._open:
                self._open.add(outer)
                self.count += len(self._below[outer]) - 1

    def fill(self, most: int, shut: Collection[str]) -> None:
        """Opens folders as long as no more than `most` are shown: the outermost first, of those the largest.

        Where that leaves next to nothing to see, as of a folder with very many files, more are shown.
        """
        level = self._below["."] & self._below.keys() - {"."}
        while level:
            for folder in sorted(level - self._open, key=lambda folder: (-len(self._below[folder]), folder)):
                if folder not in shut and self.count - 1 + len(self._below[folder]) <= most:
                    self.open(folder)
            inside = {inner for folder in level & self._open for inner in self._below[folder]}
            level = (inside & self._below.keys()) - level
        while self.count * 2 < most and (rest := self._shut_now() - set(shut)):
            self.open(min(rest, key=lambda folder: (len(self._below[folder]), folder)))

    def _shut_now(self) -> set[str]:
        """Shut folders that are seen."""
        seen = {inner for folder in self._open for inner in self._below[folder]}
        return (seen & self._below.keys()) - self._open

    def shown(self, node: str) -> str:
        """What a node is shown as."""
        return next((outer for _, outer in _steps(node) if outer not in self._open), node)

    def shut_among(self, shown: Iterable[str]) -> frozenset[str]:
        """Those of what is shown that are folders, and not open."""
        return frozenset(one for one in shown if one in self._below and one not in self._open)


def _steps(node: str) -> Iterator[tuple[str, str]]:
    """(what lies in a folder, the folder), from the root's own, `.`, to the node."""
    if node == ".":
        yield ".", "."
        return
    outer = "."
    parts = node.split("/")
    for length in range(1, len(parts) + 1):
        inner = "/".join(parts[:length])
        yield inner, outer
        outer = inner


def folded(graph: Graph, max_nodes: int, *, opened: Collection[str] = (), shut: Collection[str] = ()) -> Folded:
    """The graph with `max_nodes` at most, as far as folding can do it and leaves something to see.

    Top-level folders stay unfolded longest, large ones before small ones. Folders that are `opened` are open
    in any case, those that are `shut` in none.
    """
    if graph.granularity == "module" or (len(graph.files) <= max_nodes and not shut):
        return Folded(graph, None, frozenset())
    nodes = {node: node for node in graph.files}
    if graph.granularity == "symbol" and len(nodes) > max_nodes:
        nodes = {node: node.partition(":")[0] for node in nodes}
    tree = _Tree(set(nodes.values()))
    for folder in opened:
        if not any(folder == outer or folder.startswith(f"{outer}/") for outer in shut):
            tree.open(folder)
    tree.fill(max_nodes, shut)
    small = merged(graph, lambda node: tree.shown(nodes[node]))
    how = f"{len(graph.files)} nodes were folded to {len(small.files)}: files into their folders where needed."
    return Folded(small, how, tree.shut_among(small.files))
