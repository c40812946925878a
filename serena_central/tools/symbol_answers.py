"""Symbols as answers: their JSON, lists of them, and how they are shortened."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from serena_central.core.errors import LanguageServerError, PathNotFound, SymbolNotFound
from serena_central.core.text import Range
from serena_central.projects.navigation.symbol_views import SymbolView
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit, Hits
from serena_central.symbols.symbol import kind_name
from serena_central.tools.answer import Form, Listing
from serena_central.tools.context import ToolCall
from serena_central.tools.read_set import ReadSet

SYMBOL_CHARS = 100
"""No symbol of an answer is shorter: its keys alone are as long."""

NAME_CHARS = 4
"""Nor a name, with its quotes and comma."""


def location(span: Range) -> dict[str, int]:
    """A definition's place in an answer: 0-based lines, 0-based start column in characters."""
    return {"start_line": span.start.line0, "end_line": span.end.line0, "start_column": span.start.column}


def as_json(view: SymbolView) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name_path": view.name_path,
        "kind": kind_name(view.kind),
        "relative_path": view.path,
        "body_location": location(view.range),
    }
    if view.body is not None:
        answer["body"] = view.body
    if view.info:
        answer["info"] = view.info
    if view.children:
        answer["children"] = _children(view.children)
    return answer


def _children(views: Sequence[SymbolView]) -> dict[str, list[dict[str, Any]]]:
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for view in views:
        child: dict[str, Any] = {"name": view.name, "body_location": location(view.range)}
        if view.children:
            child["children"] = _children(view.children)
        by_kind[kind_name(view.kind)].append(child)
    return by_kind


async def listed_symbols(
    call: ToolCall, target: Project, hits: Sequence[Hit], *, body: bool = False, info: bool = False, depth: int = 0
) -> Listing:
    """An answer of symbols. Those that this page can't show are counted, and not looked at."""
    window = call.page.window(len(hits), SYMBOL_CHARS)
    views: list[SymbolView | None] = []
    for hit in hits[window.start : window.stop]:
        try:
            views.append(await _view(call, target, hit, body=body, info=info, depth=depth))
        except (SymbolNotFound, PathNotFound):
            views.append(None)  # it was taken out while the answer was made

    def seen(first: int, last: int) -> list[SymbolView]:
        return [view for view in views[first - window.start : last - window.start] if view is not None]

    def bare() -> list[dict[str, Any]]:
        return [as_json(view.bare) for view in views if view is not None]

    shorter: list[Form] = []
    if len(views) == len(hits):
        shorter.append(Form("without bodies, info and children", bare))
    if len(hits) * NAME_CHARS <= call.page.chars:
        shorter.append(Form("as names per file", lambda: per_file((hit.path, hit.name_path) for hit in hits)))

    return Listing(
        page=call.page,
        total=len(hits),
        window=window,
        noun="symbol",
        build=lambda first, last: [as_json(view) for view in seen(first, last)],
        narrow="Pass relative_path or a longer name path to narrow it.",
        per_file=hits.per_file if isinstance(hits, Hits) else Counter(hit.path for hit in hits),
        shorter=shorter,
        brief=lambda first, last: [as_json(view.bare) for view in seen(first, last)],
        shown=lambda first, last: ReadSet(call, target).record_bodies(seen(first, last)),
    )


async def _view(call: ToolCall, target: Project, hit: Hit, *, body: bool, info: bool, depth: int) -> SymbolView:
    """The symbol, without its information where its language server can't tell it."""
    try:
        return await target.view(hit, body=body, info=info, depth=depth)
    except LanguageServerError as error:
        call.note(f"Without info: {error}")
        return await target.view(hit, body=body, depth=depth)


def per_file(entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Path → what belongs to it."""
    grouped: dict[str, list[str]] = {}
    for path, entry in entries:
        grouped.setdefault(path, []).append(entry)
    return grouped
