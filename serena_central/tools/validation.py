"""Tools that look for what a change left behind: symbols that nothing uses, names that lead nowhere."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.analysis.broken import Checked, broken_references
from serena_central.analysis.selection import code_below, with_users
from serena_central.analysis.siblings import Siblings
from serena_central.analysis.unused import Unused, UnusedFound, unused_symbols
from serena_central.projects.project import Project
from serena_central.symbols.kinds import kind_name
from serena_central.tools.analysis import LONG_S
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall

NARROW = "Ask for a smaller folder, or name the paths that changed."

Where = Annotated[str, Meta(description="File or folder; empty: the whole project")]
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
    collector = call.services.collections.of(target)
    siblings = Siblings(call.services.super_repos, call.services.projects)
    found = await unused_symbols(target, collector, siblings, relative_path, set(paths) if paths else None)
    if not relative_path and not paths:
        call.services.baselines.note(call.session.id, target.root, "unused", unused_keys(found))
    return _told(call, found, "unused symbols", lambda: _unused(found))


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
    await target.fresh()
    files = await with_users(target, set(paths)) if paths else code_below(target, relative_path)
    checked = await broken_references(target, files)
    if not relative_path and not paths:
        call.services.baselines.note(call.session.id, target.root, "broken", broken_keys(checked))
    return _told(call, checked, "broken references", lambda: _broken(checked))


def _broken(checked: Checked) -> dict[str, Any]:
    return {"broken": msgspec.to_builtins(checked.found), "checked": checked.checked}


def _told(call: ToolCall, result: UnusedFound | Checked, what: str, in_full: Callable[[], dict[str, Any]]) -> Shaped:
    for remark in result.remarks:
        call.remark(remark)
    return shaped(
        in_full,
        Form("as counts per file", lambda: Counter(one.path for one in result.found)),
        Form("as a total", lambda: f"{len(result.found)} {what}"),
        narrow=NARROW,
    )
