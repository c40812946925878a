"""The tool that lists a session's own changes."""

from collections.abc import Sequence
from typing import Any

from serena_central.core.clock import utc
from serena_central.store.query_results import EditFilter
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall

MOST_EDITS = 5000


@tool("Summarize changes", answers="{files, edits}")
async def summarize_changes(call: ToolCall) -> Shaped:
    """What this session changed, by project and file. Changes by shell commands and other editors are not included."""
    made = await changes_of(call)
    files = _by_file(made)
    edits = [{"edit": row.id, "at": utc(row.at), "tool": row.tool, "files": _names(row)} for row in made]
    return shaped(
        lambda: {"files": files, "edits": edits} if edits else "This session has made no changes.",
        Form("without individual edits", lambda: files),
        Form("as a total", lambda: f"{len(edits)} edits in {sum(map(len, files.values()))} files"),
        narrow="`serena-central history` lists all edits.",
    )


async def changes_of(call: ToolCall) -> list[EditRow]:
    """Edits of the session that were not undone, the oldest first; notes say what is not counted."""
    rows = await call.services.history.edits(EditFilter(session=call.session.id, limit=MOST_EDITS))
    if len(rows) == MOST_EDITS:
        call.note(f"Only the newest {MOST_EDITS} edits are counted.")
    if call.session.shared:
        call.note("Several clients may share this session; their changes are counted together.")
    undone = await _undone(call, rows)
    for edit, by in undone.items():
        call.note(f"{edit} was undone by {_named(call, by)} and is not counted.")
    return [row for row in reversed(rows) if row.id not in undone]


def _named(call: ToolCall, by: str) -> str:
    """Who undid an edit, as the caller may know: other users' sessions are not named."""
    if by == call.session.id or not call.services.users.is_restricted(call.session.credential):
        return by
    own = [one.id for one in call.services.sessions.sessions() if one.credential == call.session.credential]
    return by if by in own else "somebody else"


async def _undone(call: ToolCall, rows: Sequence[EditRow]) -> dict[str, str]:
    """Edits among these that were undone → by whom."""
    ids = {row.id for row in rows}
    undone: dict[str, str] = {}
    for root in {row.project_root for row in rows}:
        since = min(row.at for row in rows if row.project_root == root)
        for later in await call.services.history.all_edits(EditFilter(project=root, since=since)):
            if later.undoes in ids:
                undone[later.undoes] = later.session
    return undone


def _by_file(rows: Sequence[EditRow]) -> dict[str, dict[str, dict[str, Any]]]:
    """Project root → path → counts, of edits in their order; a moved file is counted where it is now."""
    files: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        of_project = files.setdefault(row.project_root, {})
        for file, path in zip(row.files, _names(row), strict=True):
            if file["path"] != path and file["path"] in of_project:
                of_project[path] = of_project.pop(file["path"])
            entry = of_project.setdefault(path, {"edits": 0, "lines_added": 0, "lines_removed": 0})
            entry["edits"] += 1
            entry["lines_added"] += file["added"]
            entry["lines_removed"] += file["removed"]
            entry.update({state: True for state in ("created", "deleted") if file[state]})
    return files


def _names(row: EditRow) -> list[str]:
    return [file["moved_to"] or file["path"] for file in row.files]
