"""The report after a refactoring: what a session changed, in dependency order, and what that broke or left unused.

"Before" is what the session's own `check_references` and `find_unused_symbols` returned before its first edit.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from serena_central.analysis.dependencies import node_namer
from serena_central.analysis.graph import analyse, graph_of
from serena_central.analysis.module_graph import Area, ModulePart, collect_modules
from serena_central.analysis.validation import Extent
from serena_central.core.clock import utc
from serena_central.core.errors import PathError, SerenaCentralError, UndoRefused
from serena_central.core.quoting import escaped, quoted
from serena_central.core.text import Position
from serena_central.core.words import counted
from serena_central.editing.patch import lines_made
from serena_central.editing.plan import Hunk
from serena_central.projects.editing.undo import patches_of
from serena_central.projects.project import Project
from serena_central.store.rows import EditRow
from serena_central.tools.analysis import LONG_S
from serena_central.tools.baselines import Baseline, Kind
from serena_central.tools.catalogue import tool
from serena_central.tools.changes import changes_of
from serena_central.tools.context import ToolCall
from serena_central.tools.validation import broken_keys, unused_keys

MOST_PATCHES = 300
"""Edits whose symbols are named, the newest."""

MOST_NAMED = 12
"""Symbols of one file, and new findings of one project."""

WholeEdit = Callable[[str], Awaitable[EditRow | None]]
"""The row of an edit with its patches."""

TITLES: Mapping[Kind, str] = {"broken": "Broken references", "unused": "Unused symbols"}


class Compared(NamedTuple):
    """Findings of one project; `before` is None where the session did not ask in time."""

    project: str
    before: Counter[str] | None
    now: Counter[str]

    @property
    def is_known(self) -> bool:
        """Whether it can be said what is new: without any finding nothing is."""
        return self.before is not None or not self.now

    @property
    def new(self) -> list[str]:
        return sorted((self.now - (self.before or Counter())).elements())


@tool("Refactoring report", shown="optional", timeout_s=LONG_S, gives_way=True)
async def refactoring_report(call: ToolCall) -> str:
    """What this session changed, by file and symbol in dependency order; broken references and unused symbols in these
    projects before its first edit (if it asked for them then) and now. Markdown."""
    made = await changes_of(call)
    holders = call.services.held_elsewhere.by
    if holders is None:
        return await report_on(call, made, call.services.history.edit)
    text, notes = await holders.reported(call.session, made)
    for note in notes:
        call.note(note)
    return text


async def report_on(call: ToolCall, made: Sequence[EditRow], whole: WholeEdit, *, among_others: bool = False) -> str:
    """The report on the session's edits in projects that are open in this process. `among_others`: one of several, so
    that each file is told with its project."""
    parts = await _parts(call, made, among_others=among_others)
    began = made[0].at if made else None
    compared: dict[Kind, list[Compared]] = {kind: [] for kind in TITLES}
    for area, project in parts:
        for kind, now in (await _findings(call, area, project)).items():
            known = call.services.baselines.of(call.session.id, project.root, kind)
            compared[kind].append(Compared(area.name, _before(known, began), now))
    lines = ["# Refactoring report", "", _heading(call, made), "", "## Changes, in dependency order", ""]
    lines += await _changes(call, made, parts, whole)
    for kind, title in TITLES.items():
        lines += ["", f"## {title}", "", *_comparison(compared[kind])]
    lines += ["", "## Outcome", "", _outcome(compared)]
    if call.notes:
        lines += ["", "## Possibly incomplete", "", *(f"- {_text(note)}" for note in call.notes)]
    return "\n".join(lines) + "\n"


def _before(known: Baseline | None, began: float | None) -> Counter[str] | None:
    return known.found if known is not None and (began is None or known.at <= began) else None


async def _parts(call: ToolCall, made: Sequence[EditRow], *, among_others: bool) -> list[ModulePart]:
    """Projects that were changed or asked about: those of a super-repo by their place in it, others by their roots
    where there are several."""
    registry, parts = call.services.projects, list[ModulePart]()
    roots = dict.fromkeys([Path(row.project_root) for row in made] + call.services.baselines.roots(call.session.id))
    for root in roots:
        try:
            project = await registry.open(registry.check(root))
        except SerenaCentralError as error:
            call.note(f"{quoted(root)} is not included: {error}")
            continue
        repo = call.services.super_repos.around(root)
        if repo and root != repo.root:
            inside = root.relative_to(repo.root).as_posix()
        else:
            inside = str(root) if among_others or len(roots) > 1 else ""
        parts.append(ModulePart(Area(project.name, inside), project))
    return parts


async def _findings(call: ToolCall, area: Area, project: Project) -> dict[Kind, Counter[str]]:
    where, validation = Extent([ModulePart(Area("", ""), project)]), call.services.validation
    broken, unused = (await validation.broken(where)).whole, (await validation.unused(where)).whole
    for note in [*broken.notes, *unused.notes]:
        call.note(f"{quoted(area.name)}: {note}")
    return {"broken": broken_keys(broken), "unused": unused_keys(unused)}


# --- what was changed -------------------------------------------------------------------------------------------------


async def _changes(call: ToolCall, made: Sequence[EditRow], parts: Sequence[ModulePart], whole: WholeEdit) -> list[str]:
    if not made:
        return ["This session has made no changes."]
    levels = await _levels(call, parts)
    symbols = await _symbols(made, parts, whole)
    areas = {str(part.project.root): part.area for part in parts}
    counts: dict[str, Counter[str]] = {}
    for row in made:
        area = areas.get(row.project_root)
        if area is None:
            continue
        for file in row.files:
            counts.setdefault(area.outer(file["moved_to"] or file["path"]), Counter()).update(
                edits=1, added=file["added"], removed=file["removed"]
            )
    last = len(levels)
    ordered = sorted(counts, key=lambda path: (levels.get(path, last), path))
    steps = {level: step for step, level in enumerate(dict.fromkeys(levels.get(path, last) for path in ordered), 1)}
    lines = ["| step | file | symbols | edits | lines |", "| --- | --- | --- | --- | --- |"]
    for path in ordered:
        count = counts[path]
        names = ", ".join(f"`{_text(name)}`" for name in symbols.get(path, [])[:MOST_NAMED])
        lines.append(
            f"| {steps[levels.get(path, last)]} | `{_text(path)}` | {names} | {count['edits']} "
            f"| +{count['added']} −{count['removed']} |"
        )
    return [
        *lines,
        "",
        "No file depends on a file of a later step. Files of one step are independent of each other or form a cycle.",
    ]


async def _levels(call: ToolCall, parts: Sequence[ModulePart]) -> dict[str, int]:
    """File → its layer in the graph of all projects concerned."""
    collected = await collect_modules(parts, call.services.collections)
    areas = [part.area for part in parts]
    graph = graph_of(collected.definitions, collected.files, "file", node_of=node_namer("file", "", areas))
    layers = (await anyio.to_thread.run_sync(analyse, graph)).layers
    return {path: number for number, layer in enumerate(layers) for path in layer}


async def _symbols(made: Sequence[EditRow], parts: Sequence[ModulePart], whole: WholeEdit) -> dict[str, list[str]]:
    """File → symbols in which something was changed that still stands."""
    by_root = {str(part.project.root): part for part in parts}
    found: dict[str, dict[str, None]] = {}
    for row in made[-MOST_PATCHES:]:
        part, edit = by_root.get(row.project_root), await whole(row.id)
        try:
            patches = patches_of(edit) if part and edit else []
        except UndoRefused:
            continue
        for patch in patches:
            path = patch.moved_to or patch.path
            if part is not None and not patch.deleted:
                names = found.setdefault(part.area.outer(path), {})
                names.update(dict.fromkeys(await _holders(part.project, path, patch.hunks)))
    return {path: list(names) for path, names in found.items()}


async def _holders(project: Project, path: str, hunks: list[Hunk]) -> list[str]:
    try:
        content = (await project.read(path)).text.content
    except PathError:
        return []
    await project.symbols_of([path])
    lines = content.splitlines()
    names: list[str] = []
    for line0 in lines_made(content, hunks):
        line = lines[line0] if line0 < len(lines) else ""
        holder = project.navigation.places.holder(path, Position(line0, len(line) - len(line.lstrip())))
        if line.strip():
            names.append(holder.name_path if holder else "<file>")
    return names


# --- words ------------------------------------------------------------------------------------------------------------


def _heading(call: ToolCall, made: Sequence[EditRow]) -> str:
    session = call.session
    when = f", from {utc(made[0].at)} to {utc(made[-1].at)}" if made else ""
    return f"{counted(len(made), 'edit')} by {_text(session.client_name)}, session {session.id}{when}."


def _comparison(compared: Sequence[Compared]) -> list[str]:
    lines = ["| project | before | now | new |", "| --- | --- | --- | --- |"]
    for one in compared:
        before = "not known" if one.before is None else one.before.total()
        new = len(one.new) if one.is_known else "not known"
        lines.append(f"| {_text(one.project)} | {before} | {one.now.total()} | {new} |")
    for one in compared:
        shown = one.new[:MOST_NAMED]
        lines += ["", *(f"- {_text(one.project)}: {_text(finding)}" for finding in shown)] if shown else []
        if len(one.new) > len(shown):
            lines.append(f"- {_text(one.project)}: {len(one.new) - len(shown)} more")
    return lines


def _outcome(compared: Mapping[Kind, Sequence[Compared]]) -> str:
    unknown = sorted({one.project for group in compared.values() for one in group if not one.is_known})
    if unknown:
        return (
            f"The state before the first edit is unknown for {_text(', '.join(unknown))}: findings may be older than "
            "the edits. Next time, call check_references and find_unused_symbols on the whole project before the "
            "first edit."
        )
    new = {kind: sum(len(one.new) for one in group) for kind, group in compared.items()}
    if not any(new.values()):
        return "No new broken references and no new unused symbols."
    found = (counted(new["broken"], "new broken reference"), counted(new["unused"], "new unused symbol"))
    return f"Not finished: {', '.join(found)}."


def _text(text: str) -> str:
    return escaped(" ".join(text.split())).replace("|", "¦").replace("`", "´")
