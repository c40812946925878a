"""Undo: applies the reverse of an edit's patches as an edit like any other.

It is refused, with the reason, where the text moved on: nothing that came later is lost. Edits around it are no
obstacle, nor that lines have moved.
"""

import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.core.decoding import from_msgpack
from serena_central.core.errors import EditNotFound, PathError, PathNotFound, SerenaCentralError, UndoRefused
from serena_central.core.tracing import new_call_id
from serena_central.editing.change import Author, FileChange
from serena_central.editing.patch import FilePatch, MovedOn, reverted
from serena_central.editing.plan import Hunk
from serena_central.files.text import MARK
from serena_central.projects.editing.edit_history import PATCHES_KEPT_S, EditHistory
from serena_central.projects.editing.edit_records import operation_of
from serena_central.projects.editing.edits import Edited
from serena_central.projects.editing.joint_edits import PartFailed, jointly
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_policy import PERSON
from serena_central.store.query_results import EditFilter, next_page
from serena_central.store.rows import EditRow

CLIENT = "serena-central undo"
"""The client that undoing edits are of."""

MOST_OF_SESSION = 100
"""Edits that are undone together: each may wait for diagnostics."""


async def undo(edit_id: str, history: EditHistory, projects: ProjectRegistry, *, by: str) -> Edited:
    """Undoes an edit in all projects that it changed. `by` names who asked for it.

    Raises:
        EditNotFound: there is no such edit.
        UndoRefused: it can no longer be undone, or its lines have changed since.
        UnknownProject, EditError, PathError: its files can't be changed.
    """
    rows = await history.parts(edit_id)
    if all(row.id != edit_id for row in rows):
        raise EditNotFound(edit_id)
    symbol = next((row.symbol for row in rows if row.id == edit_id), "")
    author = Author(session=by, client=CLIENT, tool="undo", call=new_call_id(), symbol=symbol)
    if history.reversed_elsewhere is None:
        try:
            return await reverse(rows, history, projects, author)
        finally:
            history.answered(author.call, None)
    for row in rows:
        projects.find(row.project_root, PERSON)
        await _check_not_undone(row, history)
        patches_of(row)
    return await history.reversed_elsewhere(rows, author)


async def reverse(rows: Sequence[EditRow], history: EditHistory, projects: ProjectRegistry, author: Author) -> Edited:
    """Undoes the parts of an edit, one for each project that it changed.

    Raises:
        UndoRefused: it can no longer be undone, or its lines have changed since.
        UnknownProject, EditError, PathError: its files can't be changed.
    """
    works = {Path(row.project_root): partial(_undo, row, history, projects, author) for row in rows}
    try:
        if len(rows) == 1:
            return await _undo(rows[0], history, projects, author)
        done = await jointly(works, history.planned)
    except PartFailed as failed:
        raise failed.error from failed
    return _as_one(done)


class UndoneEdits(NamedTuple):
    """Ids of the edits that were undone, and why others were not, the newest first; whether there are older ones that
    were not looked at."""

    undone: list[str]
    refused: dict[str, SerenaCentralError]
    more: bool


async def undo_session(
    session: str, since: float, history: EditHistory, projects: ProjectRegistry, *, by: str
) -> UndoneEdits:
    """Undoes the edits that a session made since then (Unix seconds), the newest first; what can't be undone any more
    stays, and is reported. At most `MOST_OF_SESSION` edits are undone.

    Raises:
        StoreError
    """
    undone: list[str] = []
    refused: dict[str, SerenaCentralError] = {}
    page: EditFilter | None = EditFilter(session=session, since=since, limit=MOST_OF_SESSION)

    async def succeeds(operation: str) -> bool:
        try:
            await undo(operation, history, projects, by=by)
        except SerenaCentralError as error:
            refused[operation] = error
            return False
        refused.pop(operation, None)
        undone.append(operation)
        return True

    while page is not None:
        rows = await history.edits(page)
        earlier = await history.undone([row.id for row in rows])
        for operation in dict.fromkeys(operation_of(row.id) for row in rows if row.id not in earlier):
            if operation in undone or operation in refused:
                continue
            if len(undone) == MOST_OF_SESSION:
                return UndoneEdits(undone, refused, more=True)
            await succeeds(operation)
        page = next_page(page, [(row.at, row.id) for row in rows])
    # Where the clock was set back, an edit is later than its time says, and those below it were refused before it.
    while undone and any([await succeeds(operation) for operation in list(refused)]):
        pass
    return UndoneEdits(undone, refused, more=False)


async def _undo(row: EditRow, history: EditHistory, projects: ProjectRegistry, author: Author) -> Edited:
    patches = patches_of(row)
    if not patches:
        raise UndoRefused(row.id, "it changed a global memory, whose text is not kept in the history")
    project = await projects.open(projects.find(row.project_root, PERSON))
    paths = [path for patch in patches for path in (patch.path, patch.moved_to) if path]

    async def plan() -> Sequence[FileChange]:
        await _check_not_undone(row, history)
        # While this waited for the files, what hooks changed in them may have become a part of the edit.
        grown = await history.edit(row.id, exact=True) or row
        return [await _reversed(row.id, project, patch) for patch in patches_of(grown)]

    return await project.edits.change_files(paths, plan, author, undoes=row.id)


async def _check_not_undone(row: EditRow, history: EditHistory) -> None:
    """Raises UndoRefused where it was: where lines are alike, others would go now."""
    undoer = await history.undone_by(row.id)
    if undoer is not None:
        raise UndoRefused(row.id, f"it was already undone by {undoer}")


def _as_one(done: Mapping[Path, Edited | SerenaCentralError]) -> Edited:
    """What was undone in several projects, by absolute paths."""
    edits = {root: one for root, one in done.items() if isinstance(one, Edited)}
    files = [
        msgspec.structs.replace(
            file, path=str(root / file.path), moved_to=str(root / file.moved_to) if file.moved_to else None
        )
        for root, one in edits.items()
        for file in one.files
    ]
    first = next((one.id for one in edits.values() if one.id is not None), None)
    return Edited(id=operation_of(first) if first else None, files=files)


def patches_of(row: EditRow) -> list[FilePatch]:
    """What an edit changed.

    Raises:
        UndoRefused: that is not kept any more.
    """
    if row.patches is None:  # not by its age: the clock may have been set since
        kept = f"edits can be undone for {PATCHES_KEPT_S / 3600:g} h and up to a size limit"
        raise UndoRefused(row.id, f"its patch is no longer stored ({kept})")
    return from_msgpack(zlib.decompress(row.patches), list[FilePatch])


async def _reversed(edit_id: str, project: Project, patch: FilePatch) -> FileChange:
    """The change that takes one file's patch back."""
    back = project.root / patch.path
    if (patch.deleted or patch.moved_to) and back.exists():
        raise UndoRefused(edit_id, f"{patch.path} exists again")
    if patch.deleted:
        return FileChange(back, None, _whole(patch.hunks, before=True, bom=patch.bom), encoding=patch.encoding)
    here = patch.moved_to or patch.path
    try:
        read = await project.read(here)
        if patch.created:
            if read.text.content != _whole(patch.hunks, before=False):
                raise MovedOn("the edit created it, and it changed since")
            return FileChange(project.root / here, read, None, folders=patch.folders)
        text = reverted(read.text.content, patch.hunks)
    except PathNotFound as error:
        raise UndoRefused(edit_id, f"{here} no longer exists") from error
    except (MovedOn, PathError) as error:
        raise UndoRefused(edit_id, f"{here}: {error}") from error
    return FileChange(project.root / here, read, text, moved_to=back if patch.moved_to else None)


def _whole(hunks: list[Hunk], *, before: bool, bom: bool = False) -> str:
    """The text of a file that was there on one side of the patch only."""
    text = "".join((hunk.before if before else hunk.after).decode("utf-8", "surrogatepass") for hunk in hunks)
    return MARK + text if bom else text
