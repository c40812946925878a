"""Tools that report the language servers' diagnostics."""

from typing import Annotated

from msgspec import Meta

from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project
from serena_central.tools.answer import Listing
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_answer, note_references
from serena_central.tools.symbol_answers import Grouped, grouped

MinSeverity = Annotated[
    int, Meta(ge=1, le=4, description="Minimum severity: 1 error, 2 warning, 3 information, 4 hint")
]

DIAGNOSTIC_CHARS = 80
"""None of an answer is shorter."""


@tool(
    "Diagnostics of a file",
    answers="by file, severity, symbol: list of {message, range, code?, source?}",
    paged=True,
    if_empty="No problems were reported.",
)
async def get_diagnostics_for_file(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="File to check")],
    start_line: Annotated[int, Meta(ge=0, description="First line, 0-based")] = 0,
    end_line: Annotated[int, Meta(ge=-1, description="Last line, 0-based; -1: to the end")] = -1,
    min_severity: MinSeverity = 4,
) -> Listing:
    """Errors and warnings in a file, by severity and symbol."""
    await target.fresh()
    path = target.locate_code(relative_path)
    found = await _diagnostics(call, target, path)
    return _shape(call, {path: _selected(found, start_line, end_line, min_severity)})


@tool(
    "Diagnostics of a symbol",
    answers="by file, severity, symbol: list of {message, range, code?, source?}",
    shown="optional",
    paged=True,
    aliases={"relative_path": "reference_file"},
    if_empty="No problems were reported.",
)
async def get_diagnostics_for_symbol(
    call: ToolCall,
    target: Project,
    name_path: Annotated[str, Meta(description="Name path of the symbol")],
    reference_file: Annotated[str, Meta(description="File that defines it")] = "",
    check_symbol_references: Annotated[bool, Meta(description="Also check the symbols that reference it")] = False,
    min_severity: MinSeverity = 4,
) -> Listing:
    """Errors and warnings inside a symbol and, on request, inside the symbols that reference it."""
    hit = await target.find_one(name_path, reference_file)
    spans = {hit.path: [hit.symbol.range]}
    if check_symbol_references:
        used = await target.navigation.references.of(hit)
        note_references(call, used)
        for use in used.references:
            spans.setdefault(use.path, []).append(use.holder.range if use.holder else use.range)
    answer: dict[str, list[DiagnosticView]] = {}
    for path, ranges in spans.items():
        found = _selected(await _diagnostics(call, target, path), 0, -1, min_severity)
        answer[path] = [view for view in found if any(span.contains(view.diagnostic.range.start) for span in ranges)]
    return _shape(call, answer)


async def _diagnostics(call: ToolCall, target: Project, path: str) -> list[DiagnosticView]:
    found, note = await target.navigation.diagnostics(path)
    note_answer(call, note)
    return found


def _selected(found: list[DiagnosticView], first: int, last: int, min_severity: int) -> list[DiagnosticView]:
    return [
        view
        for view in found
        if view.diagnostic.severity <= min_severity
        and view.diagnostic.range.end.line0 >= first
        and (last < 0 or view.diagnostic.range.start.line0 <= last)
    ]


def _shape(call: ToolCall, found: dict[str, list[DiagnosticView]]) -> Listing:
    every = [(path, view) for path, views in found.items() for view in views]

    def build(first: int, last: int) -> Grouped:
        part: dict[str, list[DiagnosticView]] = {path: [] for path in found} if last - first == len(every) else {}
        for path, view in every[first:last]:
            part[path] = [*part.get(path, ()), view]
        return grouped(part)

    return Listing(
        page=call.page,
        total=len(every),
        window=call.page.window(len(every), DIAGNOSTIC_CHARS),
        noun="diagnostic",
        build=build,
        narrow="Give start_line and end_line, or a stricter min_severity.",
        per_file={path: len(views) for path, views in found.items()},
    )
