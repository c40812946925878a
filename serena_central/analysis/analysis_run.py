"""The result of an analysis run of a project, as plain data. Pure.

An analysis run is of a project or, at a super-repo's root, of all its modules; paths are relative to that root.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from serena_central.analysis.broken_references import Broken
from serena_central.analysis.collection import Definition
from serena_central.analysis.dependencies import node_namer
from serena_central.analysis.graph import Analysis, Granularity, Graph, analyse, folder_of, graph_of
from serena_central.analysis.module_graph import Area
from serena_central.analysis.report import GraphReport, report_of
from serena_central.analysis.unused_symbols import Unused

Kind = Literal["graph", "findings"]

OWN = "/."
"""Ends a reach that means the files directly in a folder; no path ends so."""


class AnalysisRun(msgspec.Struct, kw_only=True):
    """`fingerprints`: root → digest of its files as they were; `at` is when it began, in Unix seconds. `areas` are a
    super-repo's modules. `notes` say what may lack, and why. `rules`: fingerprint of the rules that
    closed paths."""

    at: float
    fingerprints: dict[str, str]
    areas: list[Area]
    notes: list[str]
    rules: str = ""


class GraphRun(AnalysisRun, kw_only=True):
    definitions: list[Definition]
    files: list[str]


class FindingsRun(AnalysisRun, kw_only=True):
    """`checked`: the number of files whose references were checked."""

    unused: list[Unused]
    broken: list[Broken]
    checked: int


class Reference(NamedTuple):
    """One use: where, of which symbol, defined in which file. Line and column are 0-based."""

    path: str
    line: int
    column: int
    name_path: str
    defined_in: str


class Neighbours(NamedTuple):
    """File → how often it uses what was asked about, and how often it is used by that."""

    users: Mapping[str, int]
    used: Mapping[str, int]


class Whole(NamedTuple):
    """A graph before it is folded."""

    graph: Graph
    analysis: Analysis


def whole_graph(analysis_run: GraphRun, granularity: Granularity, folder: str) -> Whole:
    """The graph of a folder, "" for all: uses in other folders are not part of it."""
    definitions = [one for one in analysis_run.definitions if reaches(folder, one.path)]
    files = [path for path in analysis_run.files if reaches(folder, path)]
    graph = graph_of(definitions, files, granularity, node_of=node_namer(granularity, folder, analysis_run.areas))
    return Whole(graph, analyse(graph))


def looked_at(
    analysis_run: GraphRun, whole: Whole, folder: str, *, max_nodes: int, opened: tuple[str, ...], shut: tuple[str, ...]
) -> GraphReport:
    """The graph as it is shown."""
    return report_of(
        "",
        folder,
        whole.graph,
        max_nodes=max_nodes,
        notes=analysis_run.notes,
        analysis=whole.analysis,
        opened=opened,
        shut=shut,
    )


def reach_of(node: str, granularity: Granularity, areas: Sequence[Area], *, folded: bool = False) -> str:
    """Which files a node stands for: a file, a folder with all that lies in it, or (`OWN`) the files right in it."""
    if granularity == "module":
        return next((area.path for area in areas if area.name == node), node)
    return node + OWN if granularity == "folder" and not folded else node


def reaches(reach: str, path: str) -> bool:
    """Whether a file is among those that a reach means; "" means all."""
    if reach.endswith(OWN):
        return folder_of(path) == reach.removesuffix(OWN)
    return not reach or path == reach or path.startswith(reach + "/")


def references(analysis_run: GraphRun, source: str, target: str) -> list[Reference]:
    """All uses in one reach of what is defined in another, by file and line."""
    return sorted(
        Reference(path, line, column, definition.name_path, definition.path)
        for definition, path in _crossing(analysis_run, source, target)
        for line, column in definition.uses[path]
    )


def neighbours(analysis_run: GraphRun, reach: str) -> Neighbours:
    """Files outside of a reach that use something in it, or are used there."""
    users, used = Counter[str](), Counter[str]()
    for definition, path in _crossing(analysis_run, "", ""):
        inside, outside = reaches(reach, definition.path), reaches(reach, path)
        if inside and not outside:
            users[path] += len(definition.uses[path])
        elif outside and not inside:
            used[definition.path] += len(definition.uses[path])
    return Neighbours(users, used)


def _crossing(analysis_run: GraphRun, source: str, target: str) -> Iterator[tuple[Definition, str]]:
    for definition in analysis_run.definitions:
        if reaches(target, definition.path):
            for path in definition.uses:
                if path != definition.path and reaches(source, path):
                    yield definition, path
