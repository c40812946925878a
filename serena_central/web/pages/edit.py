"""The page of one edit: what it changed, line by line, and the button that undoes it."""

import difflib
import zlib
from pathlib import Path
from typing import Literal

import anyio.to_thread
import msgspec

from serena_central.core.errors import UndoRefused
from serena_central.core.event_kinds import EditApplied
from serena_central.core.words import counted
from serena_central.editing.patch import FilePatch
from serena_central.editing.plan import Hunk
from serena_central.projects.editing.undo import patches_of
from serena_central.store.rows import EditRow
from serena_central.web.pages.edits import EditLine, others_of
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import call_page, project_page, session_page
from serena_central.web.pages.rendering import bounded
from serena_central.web.responses import NotFound

LINES = 300
LINE_CHARS = 300
"""Bounds of what is shown of one edit."""

MATCHED_LINES = 400
"""Larger hunks are shown as the old lines and then the new ones: comparing them takes too long."""


class DiffLine(msgspec.Struct, frozen=True):
    """`number` is the line's in the new text (1-based), None for one that is gone."""

    kind: Literal["same", "added", "removed"]
    number: int | None
    text: str


class FileDiff(msgspec.Struct, frozen=True):
    """What became of one file: its hunks."""

    path: str
    moved_to: str
    fate: str
    hunks: list[list[DiffLine]]


class EditShown(msgspec.Struct, frozen=True, kw_only=True):
    """An edit with its diff. `left_out`: lines beyond what is shown; `note` says why there is no diff.

    `undoes` and `undone_by` are ids of edits, "" for none; an edit whose undo was itself undone counts as done.
    """

    id: str
    at: float
    tool: str
    client: str
    session: str
    session_url: str
    root: str
    project: str
    """Its name, and "" for one that has no page."""
    project_url: str
    files: list[FileDiff]
    left_out: int
    undoes: str
    undone_by: str
    can_undo: bool
    note: str
    others: list[EditLine]
    """The newest edits of the same files by other sessions."""
    call_url: str
    symbol: str


async def edit(visit: Visit) -> EditShown:
    row = await visit.parts.history.edit(visit.path["edit"])
    if row is None:
        raise NotFound(f"There is no edit {visit.path['edit']!r}: it never existed or is no longer stored.")
    undone_by = await visit.parts.history.undone_by(row.id) or ""
    others = await others_of(row, visit.parts.history, visit)
    try:
        patches = await anyio.to_thread.run_sync(patches_of, row)
    except (UndoRefused, zlib.error, msgspec.DecodeError) as error:
        return _edit(row, visit, [], 0, note=str(error), undone_by=undone_by, others=others)
    hides = visit.parts.claude.access(Path(row.project_root)).hides
    shown = [one for one in patches if not (hides(one.path) or (one.moved_to and hides(one.moved_to)))]
    closed = len(patches) - len(shown)
    files, left_out = await anyio.to_thread.run_sync(_diffs, shown)
    note = f"{counted(closed, 'file')} closed by permission rules." if closed else ""
    return _edit(row, visit, files, left_out, note=note, undone_by=undone_by, others=others)


def _edit(
    row: EditRow,
    visit: Visit,
    files: list[FileDiff],
    left_out: int,
    *,
    note: str,
    undone_by: str,
    others: list[EditLine],
) -> EditShown:
    known = any(session.id == row.session for session in visit.parts.sessions.sessions())
    project = next((one.name for one in visit.parts.projects.snapshots() if one.root == row.project_root), "")
    return EditShown(
        id=row.id,
        at=row.at,
        tool=row.tool,
        client=row.client,
        session=row.session,
        session_url=session_page(row.session) if known else "",
        root=row.project_root,
        project=project,
        project_url=project_page(row.project_root),
        files=files,
        left_out=left_out,
        undoes=row.undoes or "",
        undone_by=undone_by,
        can_undo=not note and not undone_by,
        note=note,
        others=others,
        call_url=call_page(row.call) if row.undoes is None else "",
        symbol=row.symbol,
    )


def _diffs(patches: list[FilePatch]) -> tuple[list[FileDiff], int]:
    """Diffs of the files, and how many lines were left out."""
    room, left_out = LINES, 0
    files: list[FileDiff] = []
    for patch in patches:
        hunks: list[list[DiffLine]] = []
        for hunk in patch.hunks:
            lines = _lines(hunk)
            left_out += max(0, len(lines) - room)
            if room:
                hunks.append(lines[:room])
            room = max(0, room - len(lines))
        files.append(FileDiff(patch.path, patch.moved_to or "", _fate(patch), hunks))
    return files, left_out


def _fate(patch: FilePatch) -> str:
    if patch.created:
        return "created"
    if patch.deleted:
        return "deleted"
    return "moved" if patch.moved_to else "changed"


def _lines(hunk: Hunk) -> list[DiffLine]:
    before, after = _text(hunk.before), _text(hunk.after)
    if max(len(before), len(after)) > MATCHED_LINES:
        stretches = [("replace", 0, len(before), 0, len(after))]
    else:
        stretches = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    lines: list[DiffLine] = []
    for same, start, end, new_start, new_end in stretches:
        if same == "equal":
            lines += [DiffLine("same", hunk.line0 + at + 1, after[at]) for at in range(new_start, new_end)]
        else:
            lines += [DiffLine("removed", None, line) for line in before[start:end]]
            lines += [DiffLine("added", hunk.line0 + at + 1, after[at]) for at in range(new_start, new_end)]
    return lines


def _text(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "surrogatepass").splitlines()
    return [bounded(line, LINE_CHARS) for line in lines]


PAGE = Page(
    path="/edits/{edit}",
    title="Edit {edit}",
    template="edit.html",
    sections={"edit": Section("edit/_edit.html", edit, (EditApplied,), every_s=3600)},
    in_navigation=False,
)
