"""Tools that look for what a change left behind: unused symbols, broken references."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.analysis.broken_references import Broken, Checked
from serena_central.analysis.unused_symbols import Unused, UnusedFound
from serena_central.analysis.validation import Extent, Findings
from serena_central.core.words import counted
from serena_central.projects.project import Project
from serena_central.symbols.symbol import kind_name
from serena_central.tools.analysis import LONG_S, SECONDS, Seconds
from serena_central.tools.answer import EXAMPLES, Form, Shaped, in_brief, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_tree

NARROW = "Pass a smaller folder, or the paths that changed."

Where = Annotated[str, Meta(description="File or folder; empty: the whole project, or all modules of a super-repo")]
Changed = Annotated[
    list[str], Meta(description="Only findings that involve these files, relative to the root; empty: all")
]


def unused_keys(found: UnusedFound) -> Counter[str]:
    """Findings as they stay the same when lines move."""
    return Counter(f"{one.path}: {one.name_path}" for one in found.found)


def broken_keys(checked: Checked) -> Counter[str]:
    """Findings as they stay the same when lines move."""
    return Counter(map(_broken_key, checked.found))


def _broken_key(one: Broken) -> str:
    return f"{one.path}: {one.what}: {one.message}"


@tool("Unused symbols", answers="findings and counts", shown="optional", timeout_s=LONG_S, gives_way=True, spans=True)
async def find_unused_symbols(
    call: ToolCall,
    target: Project,
    relative_path: Where = "",
    paths: Changed = [],  # noqa: B006
    seconds: Seconds = SECONDS,
) -> Shaped:
    """Functions, methods and types that nothing uses; entry points, tests, exports, decorated and overriding ones are
    taken as used. Each with confidence and reason."""
    where = await call.services.validation.extent(target, relative_path, paths)
    found = await call.services.validation.unused(where, call.began + seconds)
    if where.is_whole and not found.whole.unasked:  # else what was not looked at would be new next time
        for root, one in found.by_root.items():
            call.services.baselines.note(call.session.id, root, "unused", unused_keys(one))
    return _told(call, where, found.whole, "unused symbols", lambda: _unused(found.whole))


def _unused(found: UnusedFound) -> dict[str, Any]:
    told = {"unused": [_finding(one) for one in found.found], "checked": found.checked, "kept": found.kept}
    return {**told, **_unasked(found)}


def _unasked(found: UnusedFound | Checked) -> dict[str, int]:
    return {"not_examined": found.unasked} if found.unasked else {}


def _finding(one: Unused) -> dict[str, Any]:
    return {
        "name_path": one.name_path,
        "kind": kind_name(one.kind),
        "relative_path": one.path,
        "line": one.line,
        "confidence": one.confidence,
        "reason": one.reason,
    }


@tool(
    "Broken references", answers="findings and counts", shown="optional", timeout_s=LONG_S, gives_way=True, spans=True
)
async def check_references(
    call: ToolCall,
    target: Project,
    relative_path: Where = "",
    paths: Changed = [],  # noqa: B006
    possible: Annotated[bool, Meta(description="Also list possible broken references")] = False,
    since: Annotated[str, Meta(description="Git revision to compare with; empty: this session's first result")] = "",
    seconds: Seconds = SECONDS,
) -> Shaped:
    """Finds broken references: undefined names, unresolved imports, missing members. Lists those that are certain or
    new since the baseline, and counts possible ones, whose definition the server may only not see. With paths: in
    these files and in those that import them."""
    where = await call.services.validation.extent(target, relative_path, paths)
    found = await call.services.validation.broken(where, since, call.began + seconds)
    result = _compared(call, where, found, by_session=not since)
    if where.is_whole and not found.whole.unasked:  # else what was not looked at would be new next time
        for root, one in found.by_root.items():
            call.services.baselines.note(call.session.id, root, "broken", broken_keys(one))
    counting = [one for one in result.found if one.counts]
    hidden = 0 if possible else len(result.found) - len(counting)
    if hidden:
        call.note(
            f"{counted(hidden, 'possible broken reference')} not listed: the definition may exist where the language "
            "server cannot see it. `possible: true` lists them (serena-central validate --possible)."
        )
        result = msgspec.structs.replace(result, found=counting)
    return _told(call, where, result, "broken references", lambda: _broken(result, hidden))


def _compared(call: ToolCall, where: Extent, found: Findings[Checked], *, by_session: bool) -> Checked:
    """The findings; with `by_session`, those marked that are new since this session's first result."""
    result = msgspec.structs.replace(found.whole, found=[])
    for part in where.parts:
        one = found.by_root[part.project.root]
        baseline = call.services.baselines.of(call.session.id, part.project.root, "broken") if by_session else None
        left = Counter(baseline.found if baseline else ())
        for finding in one.found:
            key = _broken_key(finding)
            left[key] -= 1
            is_new = finding.new or (baseline is not None and left[key] < 0)
            result.found.append(msgspec.structs.replace(finding, path=part.area.outer(finding.path), new=is_new))
    return result


def _broken(checked: Checked, hidden: int) -> dict[str, Any]:
    return {
        "broken": msgspec.to_builtins(checked.found),
        "checked": checked.checked,
        "failed": checked.failed,
        "possible": hidden,
        **_unasked(checked),
    }


def _in_brief(found: Sequence[Unused | Broken]) -> dict[str, Any]:
    return in_brief(len(found), Counter(one.path for one in found), msgspec.to_builtins(list(found[:EXAMPLES])))


def _told(
    call: ToolCall, where: Extent, result: UnusedFound | Checked, what: str, in_full: Callable[[], dict[str, Any]]
) -> Shaped:
    for part in where.parts:
        note_tree(call, part.project)
    for note in [*where.missing, *result.notes]:
        call.note(note)
    return shaped(
        in_full,
        Form("as counts per folder, with the first ones", lambda: _in_brief(result.found)),
        Form("as a total", lambda: f"{len(result.found)} {what}"),
        narrow=NARROW,
    )
