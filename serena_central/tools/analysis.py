"""The tool that shows a project's dependency graph."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.analysis.dependencies import dependencies
from serena_central.analysis.graph import Granularity
from serena_central.analysis.module_graph import open_modules
from serena_central.analysis.render.formats import RENDERERS, Format
from serena_central.analysis.report import report_of
from serena_central.projects.project import Project
from serena_central.symbols.symbol import kind_numbers
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_tree
from serena_central.tools.symbols import Kinds

LONG_S = 600.0
"""A large project's first collection takes minutes. The result is kept: the call after one that was cut short resumes
there."""

SECONDS = 50.0
"""Within the minute that clients usually wait."""

Seconds = Annotated[
    float,
    Meta(ge=1, le=LONG_S - 10, description="Return what was found after this time; the next call resumes"),
]

SMALL = 15
"""Nodes of the diagram in a shortened answer."""

NARROW = "Ask for a smaller folder, a coarser granularity or fewer max_nodes."


@tool("Dependency graph", shown="optional", timeout_s=LONG_S, gives_way=True, spans=True)
async def dependency_graph(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="Folder; empty: the whole project")] = "",
    granularity: Annotated[Granularity, Meta(description="What one node stands for")] = "file",
    kinds: Kinds = [],  # noqa: B006
    max_nodes: Annotated[int, Meta(ge=2, le=2000, description="Larger graphs are folded into folders")] = 60,
    format: Annotated[  # noqa: A002 - the name that users of graph tools know
        Format, Meta(description="markdown: diagram, cycles with the references that form them, layers, hot spots")
    ] = "markdown",
    seconds: Seconds = SECONDS,
) -> Shaped:
    """Dependency graph of a folder, or of a super-repo's modules: cycles, layers, most referenced nodes. Without
    kinds, references to top-level symbols."""
    until = call.began + seconds
    services, modules, missing = call.services, [], []
    if (repo := services.super_repos.at(target.root)) is not None:
        modules, missing = await open_modules(repo, services.projects, target.locate(relative_path))
    if not modules:
        target.check_searched(target.locate(relative_path))
    report = await dependencies(
        target,
        services.collections,
        relative_path,
        granularity,
        kinds=kind_numbers(kinds),
        max_nodes=max_nodes,
        modules=modules,
        until=until,
    )
    note_tree(call, target)
    for module in modules:
        note_tree(call, module.project)
    for note in [*missing, *report.notes]:
        call.note(note)
    render = RENDERERS[format]

    def smaller() -> str:
        return render(report_of(report.project, report.folder, report.drawn, max_nodes=SMALL, notes=report.notes))

    def hot_spots() -> dict[str, Any]:
        found = report.analysis
        return {
            "nodes": report.nodes,
            "uses": report.uses,
            "cycles": [cycle.name for cycle in found.cycles],
            "most_used": msgspec.to_builtins(found.most_used),
            "most_using": msgspec.to_builtins(found.most_using),
        }

    return shaped(
        lambda: render(report),
        Form("folded to fewer nodes", smaller),
        Form("as names of cycles and hot spots", hot_spots),
        narrow=NARROW,
    )
