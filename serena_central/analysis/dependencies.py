"""The dependency graph of a part of one project, from question to report."""

from collections.abc import Callable

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collect import Collector
from serena_central.analysis.graph import Granularity, folder_of, graph_of
from serena_central.analysis.report import GraphReport, report_of
from serena_central.analysis.uses import Collected, Place
from serena_central.core.text import Position
from serena_central.projects.project import Project


async def dependencies(
    project: Project,
    collector: Collector,
    path: str,
    granularity: Granularity,
    *,
    kinds: frozenset[int] = frozenset(),
    max_nodes: int,
) -> GraphReport:
    """Collects and adds up the uses in a folder; modules are its folders at the top, or packages if it is one's.

    Raises:
        PathError: the path can't be used.
    """
    collected = await collector.collect(path, kinds, within=granularity == "symbol")
    remarks = [*collected.remarks, *await blind_spots(project, collected.definitions)]
    inside = project.locate(path)
    holder = _holder(project, collected) if granularity == "symbol" else None
    graph = graph_of(
        collected.definitions, collected.files, granularity, node_of=_node_of(granularity, inside), holder=holder
    )
    return report_of(project.name, inside, graph, max_nodes=max_nodes, remarks=remarks)


def _node_of(granularity: Granularity, inside: str) -> Callable[[str], str]:
    match granularity:
        case "folder":
            return folder_of
        case "module":
            prefix = inside + "/" if inside else ""
            return lambda path: prefix + path.removeprefix(prefix).partition("/")[0]
        case _:
            return lambda path: path


def _holder(project: Project, collected: Collected) -> Callable[[str, Place], str]:
    """Names the innermost of the collected symbols around a place, or else its file."""
    known = {definition.id for definition in collected.definitions}

    def holder(path: str, place: Place) -> str:
        found = project.relations.holder(path, Position(*place))
        while found is not None:
            if (name := f"{path}:{found.name_path}") in known:
                return name
            container = found.symbol.container
            found = found._replace(place=container) if container >= 0 else None
        return path

    return holder
