"""Tools that look for what a change left behind: symbols that nothing uses, names that lead nowhere."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.analysis.broken import Checked
from serena_central.analysis.unused import Unused, UnusedFound
from serena_central.analysis.validation import Extent
from serena_central.projects.project import Project
from serena_central.symbols.kinds import kind_name
from serena_central.tools.analysis import LONG_S
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall

NARROW = "Ask for a smaller folder, or name the paths that changed."

Where = Annotated[str, Meta(description="File or folder; empty: the whole project, or all modules of a super-repo")]
Changed = Annotated[list[str], Meta(description="Only what concerns these files, relative to the root; empty: all")]


def unused_keys(found: UnusedFound) -> Counter[str]:
    """Findings as they stay the same when lines move."""
    return Counter(f"{one.path}: {one.name_path}" for one in found.found)


def broken_keys(checked: Checked) -> Counter[str]:
    """Findings as they stay the same when lines move."""
    return Counter(f"{one.path}: {one.what}: {one.message}" for one in checked.found)


@tool("Unused symbols", shown="optional", timeout_s=LONG_S, gives_way=True)
async def find_unused_symbols(
    call: ToolCall,
    target: Project,
    relative_path: Where = "",
    paths: Changed = [],  # noqa: B006
) -> Shaped:
    """Functions, methods and types that nothing uses; entry points, tests, exports, decorated and overriding ones are
    taken as used. Each with confidence and reason."""
    where = await call.services.validation.extent(target, relative_path, paths)
    found = await call.services.validation.unused(where)
    if where.is_whole:
        for root, one in found.by_root.items():
            call.services.baselines.note(call.session.id, root, "unused", unused_keys(one))
    return _told(call, where, found.whole, "unused symbols", lambda: _unused(found.whole))


def _unused(found: UnusedFound) -> dict[str, Any]:
    return {"unused": [_finding(one) for one in found.found], "checked": found.checked, "kept": found.kept}


def _finding(one: Unused) -> dict[str, Any]:
    return {
        "name_path": one.name_path,
        "kind": kind_name(one.kind),
        "relative_path": one.path,
        "line": one.line,
        "confidence": one.confidence,
        "reason": one.reason,
    }


@tool("Broken references", shown="optional", timeout_s=LONG_S, gives_way=True)
async def check_references(
    call: ToolCall,
    target: Project,
    relative_path: Where = "",
    paths: Changed = [],  # noqa: B006
) -> Shaped:
    """Names that lead nowhere: undefined names, imports that can't be resolved, missing members. With paths, in these
    files and in those that import them."""
    where = await call.services.validation.extent(target, relative_path, paths)
    found = await call.services.validation.broken(where)
    if where.is_whole:
        for root, one in found.by_root.items():
            call.services.baselines.note(call.session.id, root, "broken", broken_keys(one))
    return _told(call, where, found.whole, "broken references", lambda: _broken(found.whole))


def _broken(checked: Checked) -> dict[str, Any]:
    return {"broken": msgspec.to_builtins(checked.found), "checked": checked.checked}


def _told(
    call: ToolCall, where: Extent, result: UnusedFound | Checked, what: str, in_full: Callable[[], dict[str, Any]]
) -> Shaped:
    for remark in [*where.missing, *result.remarks]:
        call.remark(remark)
    return shaped(
        in_full,
        Form("as counts per file", lambda: Counter(one.path for one in result.found)),
        Form("as a total", lambda: f"{len(result.found)} {what}"),
        narrow=NARROW,
    )
