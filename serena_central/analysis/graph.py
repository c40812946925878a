"""The dependency graph: what uses what, how often, in which cycles, in which layers. Pure.

An edge leads from the user to what it uses. Nodes are files, folders, modules or symbols, by their ids: paths (`.` is
the root's own folder), names of modules, `path:name path`; a file's top level is a symbol by the file's path.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from serena_central.analysis.collection import Definition, Place

Granularity = Literal["file", "folder", "module", "symbol"]

SAMPLES = 3
"""Uses that each edge shows: enough to see what it is, and where to cut it."""

RANKED = 10
"""Nodes in each of the lists of the most depended-upon and the most depending."""


class Use(msgspec.Struct, frozen=True):
    """One use: where (0-based line), and of which symbol, defined in which file."""

    path: str
    line: int
    name_path: str
    defined_in: str
    possible: bool = False


class Edge(msgspec.Struct):
    """`count` uses of `target` in `source`, of `symbols` different ones; and `possible` references, which make an edge
    of their own where the count is 0."""

    source: str
    target: str
    count: int = 0
    symbols: int = 0
    possible: int = 0
    samples: list[Use] = []


class Cycle(msgspec.Struct):
    """Nodes each of which depends on each other one, directly or not; `edges` are those between them."""

    name: str
    nodes: list[str]
    edges: list[Edge]


class Ranked(msgspec.Struct):
    """A node in a ranking: with how many others, and by how many uses."""

    node: str
    nodes: int
    uses: int


class Graph(msgspec.Struct):
    """`files`: node → how many files it stands for. `edges` by source and target, the strongest first."""

    granularity: Granularity
    files: dict[str, int]
    edges: list[Edge]


class Analysis(msgspec.Struct):
    """`layers`: the first holds what depends on nothing else here; a cycle's nodes share one."""

    cycles: list[Cycle]
    layers: list[list[str]]
    most_used: list[Ranked]
    most_using: list[Ranked]


def graph_of(
    definitions: Iterable[Definition],
    files: Iterable[str],
    granularity: Granularity,
    *,
    node_of: Callable[[str], str],
    holder: Callable[[str, Place], str] | None = None,
) -> Graph:
    """Adds uses up to a graph of the `files`, in which uses elsewhere don't count.

    `node_of` maps file → node. With `holder`, nodes are the definitions, and it names the one around a place.
    """
    inside = dict.fromkeys(files)
    edges: dict[tuple[str, str], Edge] = {}
    nodes = Counter(node_of(path) for path in inside) if holder is None else Counter[str]()
    for definition in definitions:
        target = definition.id if holder else node_of(definition.path)
        if holder:
            nodes[target] = 1
        # Confirmed uses come first, also among the samples.
        for path, places, possible in [
            *((*used, False) for used in definition.uses.items()),
            *((*used, True) for used in definition.possible.items()),
        ]:
            if path not in inside:
                continue
            users = Counter(holder(path, place) for place in places) if holder else {node_of(path): len(places)}
            sample = Use(path, places[0][0], definition.name_path, definition.path, possible)
            for source, count in users.items():
                if source == target:
                    continue
                nodes.setdefault(source, 1)
                _add(edges.setdefault((source, target), Edge(source, target, samples=[])), count, sample)
    return Graph(granularity, dict(nodes), _sorted(edges.values()))


def _add(edge: Edge, count: int, sample: Use) -> None:
    if sample.possible:
        edge.possible += count
    else:
        edge.count += count
        edge.symbols += 1
    if len(edge.samples) < SAMPLES:
        edge.samples.append(sample)


def _sorted(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: (-edge.count, -edge.possible, edge.source, edge.target))


def merged(graph: Graph, into: Callable[[str], str]) -> Graph:
    """The graph in which each node is one with all that `into` maps to the same; what lies within one is no edge."""
    files: Counter[str] = Counter()
    for node, count in graph.files.items():
        files[into(node)] += count
    edges: dict[tuple[str, str], Edge] = {}
    for edge in graph.edges:
        source, target = into(edge.source), into(edge.target)
        if source == target:
            continue
        whole = edges.setdefault((source, target), Edge(source, target, samples=[]))
        whole.count += edge.count
        whole.symbols += edge.symbols
        whole.possible += edge.possible
        whole.samples = [*whole.samples, *edge.samples][:SAMPLES]
    return Graph(graph.granularity, dict(files), _sorted(edges.values()))


def analyse(graph: Graph) -> Analysis:
    """Cycles, the largest first, layers from the bottom up, and the rankings: of what is confirmed.

    To be called in a thread: of thousands of files it takes a second, and the first one imports networkx.
    """
    # Imported by the first graph: it takes half a second, and most servers never draw one.
    networkx: Any = import_module("networkx")
    whole = networkx.DiGraph()
    whole.add_nodes_from(graph.files)
    graph = confirmed(graph)
    whole.add_edges_from((edge.target, edge.source) for edge in graph.edges)
    condensed = networkx.condensation(whole)
    members: dict[int, list[str]] = {one: sorted(condensed.nodes[one]["members"]) for one in condensed}
    cycles = [_cycle(nodes, graph) for nodes in members.values() if len(nodes) > 1]
    layers = [
        sorted(node for one in layer for node in members[one]) for layer in networkx.topological_generations(condensed)
    ]
    return Analysis(
        cycles=sorted(cycles, key=lambda cycle: (-len(cycle.nodes), cycle.name)),
        layers=layers,
        most_used=_ranked(graph.edges, lambda edge: edge.target),
        most_using=_ranked(graph.edges, lambda edge: edge.source),
    )


def confirmed(graph: Graph) -> Graph:
    """The graph without edges of which all uses are only possible."""
    return Graph(graph.granularity, graph.files, [edge for edge in graph.edges if edge.count])


def _cycle(nodes: list[str], graph: Graph) -> Cycle:
    inside = set(nodes)
    edges = [edge for edge in graph.edges if edge.source in inside and edge.target in inside]
    return Cycle(_name(nodes, edges), nodes, edges)


def _name(nodes: list[str], edges: list[Edge]) -> str:
    """What people would call a cycle: its nodes, or the one that most of its uses go to, and how many there are."""
    if len(nodes) <= 3:
        return " ↔ ".join(nodes)
    used = Counter[str]()
    for edge in edges:
        used[edge.target] += edge.count
    middle = max(nodes, key=lambda node: (used[node], node))
    return f"{len(nodes)} around {middle}"


def _ranked(edges: Iterable[Edge], end: Callable[[Edge], str]) -> list[Ranked]:
    nodes: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for edge in edges:
        nodes[end(edge)] += 1
        uses[end(edge)] += edge.count
    best = sorted(nodes, key=lambda node: (-nodes[node], -uses[node], node))
    return [Ranked(node, nodes[node], uses[node]) for node in best[:RANKED]]


def folder_of(path: str) -> str:
    """The folder of a file; `.` for the root's own."""
    return str(PurePosixPath(path).parent)
