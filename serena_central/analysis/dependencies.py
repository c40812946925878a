"""Answers a request for the dependency graph of part of a project, or of a super-repo's modules."""

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial

import anyio.to_thread

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collection import Collected, Place
from serena_central.analysis.collector import Collections
from serena_central.analysis.graph import Granularity, folder_of, graph_of
from serena_central.analysis.module_graph import Area, ModulePart, collect_modules
from serena_central.analysis.report import GraphReport, report_of
from serena_central.analysis.uncertain_places import doubt_notes
from serena_central.core.pacing import Pace
from serena_central.core.text import Position
from serena_central.projects.project import Project


async def dependencies(
    project: Project,
    collections: Collections,
    path: str,
    granularity: Granularity,
    *,
    kinds: frozenset[int] = frozenset(),
    max_nodes: int,
    modules: Sequence[ModulePart] = (),
    until: float = math.inf,
) -> GraphReport:
    """Collects and adds up the uses in a folder; modules are its folders at the top, or packages if it is one's.

    Of a super-repo, the uses in the `modules` and between them. Nothing is asked after `until` (the loop's clock).

    Raises:
        PathError: the path can't be used.
    """
    inside, within = project.locate(path), granularity == "symbol"
    if modules:
        collected = await collect_modules(modules, collections, kinds, within=within, until=until)
    else:
        collected = await collections.of(project).collect(path, kinds, within=within, until=until)
        collected.notes += await blind_spots(project, collected.definitions)
    notes = [*collected.notes, *doubt_notes(collected.definitions)]
    parts = modules or [ModulePart(Area("", ""), project)]
    node_of = node_namer(granularity, inside, [part.area for part in modules])
    holder = await _holders(parts, collected) if within else None
    add_up = partial(graph_of, collected.definitions, collected.files, granularity, node_of=node_of, holder=holder)
    graph = await anyio.to_thread.run_sync(add_up)
    report = partial(report_of, project.name, inside, graph, max_nodes=max_nodes, notes=notes)
    return await anyio.to_thread.run_sync(report)


def node_namer(granularity: Granularity, inside: str, areas: Sequence[Area]) -> Callable[[str], str]:
    """Maps file → its node; `areas` are a super-repo's modules."""
    match granularity:
        case "folder":
            return folder_of
        case "module" if areas:
            innermost_first = sorted(areas, key=lambda area: -len(area.path))
            return lambda path: next(area.name for area in innermost_first if area.holds(path))
        case "module":
            prefix = inside + "/" if inside else ""
            return lambda path: prefix + path.removeprefix(prefix).partition("/")[0]
        case _:
            return lambda path: path


async def _holders(parts: Sequence[ModulePart], collected: Collected) -> Callable[[str, Place], str]:
    """Names the innermost of the collected symbols around each use in the files, or else its file. Looked up before,
    because the index belongs to the loop."""
    known = {definition.id for definition in collected.definitions}
    files = {path: next(part for part in parts if part.area.holds(path)) for path in collected.files}
    named: dict[tuple[str, Place], str] = {}
    pace = Pace()
    for definition in collected.definitions:
        for path, places in [*definition.uses.items(), *definition.possible.items()]:
            part = files.get(path)
            if part is None:
                continue
            for place in places:
                await pace.turn()
                if (path, place) not in named:
                    named[path, place] = _holder(part, path, place, known)
    return lambda path, place: named[path, place]


def _holder(part: ModulePart, path: str, place: Place, known: Collection[str]) -> str:
    found = part.project.navigation.places.holder(part.area.inner(path), Position(*place))
    while found is not None:
        if (name := f"{path}:{found.name_path}") in known:
            return name
        container = found.symbol.container
        found = found._replace(place=container) if container >= 0 else None
    return path
