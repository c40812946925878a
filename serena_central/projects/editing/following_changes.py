"""What follows an edit and belongs to it: what hooks change in its files, while these are held or later."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from serena_central.core.errors import PathError
from serena_central.core.text import Text
from serena_central.editing.change import FileChange
from serena_central.editing.journal import Entry, Step
from serena_central.editing.transaction import Applier, Written
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.projects.editing.conflicts import ConflictGuard
from serena_central.projects.editing.edit_effects import NO_EFFECT, Before, EditEffects, Effect
from serena_central.projects.editing.edit_queue import EditQueue
from serena_central.projects.editing.edit_records import AppliedEdit, Recorded, new_edit_id
from serena_central.projects.editing.joint_edits import FollowUp


class Made(NamedTuple):
    """An edit that was written."""

    edit: AppliedEdit
    effect: Effect
    changes: Sequence[FileChange]
    before: dict[str, Before]
    written: Mapping[Path, Written]


class FollowingChanges:
    """Of the edits of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        applier: Applier,
        effects: EditEffects,
        guard: ConflictGuard,
        queue: EditQueue,
        *,
        read: Callable[[str], Awaitable[FileText]],
        applied: Callable[[AppliedEdit], None],
        amended: Callable[[AppliedEdit], Awaitable[None]],
    ) -> None:
        """Parameters as of `Edits`."""
        self._root = root
        self._tree = tree
        self._applier = applier
        self._effects = effects
        self._guard = guard
        self._queue = queue
        self._read = read
        self._applied = applied
        self._amended = amended

    async def run(self, made: Made, follow_up: FollowUp) -> Made:
        """Runs what the caller of an edit has follow it, while its files are held; what that changes in them belongs to
        the edit."""
        with anyio.CancelScope(shield=True):  # bounded by the hooks' own deadlines
            try:
                await follow_up(made.edit)
            finally:
                made = await self._adopted(made, self._amended)
        return made

    async def run_later(self, made: Made, work: Callable[[], Awaitable[None]]) -> Made:
        """Runs work that an edit left for later, while its files are held again. What it changes in them belongs to
        that edit, or is an edit of its own where others have edited them meanwhile."""
        paths = [change.moved_to or change.path for change in made.changes if change.after is not None]
        async with self._queue.turn(_shown(self._root, path) for path in paths):
            await self._tree.fresh()
            reads = {path: read for path in paths if (read := await self._if_there(path)) is not None}
            done: Callable[[AppliedEdit], Awaitable[None]] = self._amended
            if any(path not in reads or reads[path].digest != made.written[path].digest for path in paths):
                made, done = self._restarted(made, reads), self._applied_later
            try:
                await work()
            finally:
                with anyio.CancelScope(shield=True):  # what was made is recorded
                    made = await self._adopted(made, done)
        return made

    def _restarted(self, made: Made, reads: Mapping[Path, FileText]) -> Made:
        """An edit of the same author that has changed nothing yet, of the files as they are now."""
        changes = [FileChange(path, read, read.text.content) for path, read in reads.items()]
        author = msgspec.structs.replace(made.edit.author, repeat=None)
        edit = msgspec.structs.replace(made.edit, id=new_edit_id(), at=time.time(), author=author, wrote=None)
        written = {path: Written(read.stamp, read.digest) for path, read in reads.items()}
        return Made(edit, NO_EFFECT, changes, self._effects.before(changes), written)

    async def _applied_later(self, edit: AppliedEdit) -> None:
        self._applied(edit)

    async def _if_there(self, path: Path) -> FileText | None:
        try:
            return await self._read(_shown(self._root, path))
        except PathError:
            return None

    async def _adopted(self, made: Made, done: Callable[[AppliedEdit], Awaitable[None]]) -> Made:
        """The edit, and what else became of its files since it wrote them, as one; `done` is told of it."""
        later = await self._later_changes(made)
        if not later:
            return made
        rest = Recorded.of(self._root, [change for change, _ in later])
        author = msgspec.structs.replace(made.edit.author, repeat=None)
        follower = msgspec.structs.replace(
            made.edit,
            id=new_edit_id(),
            at=time.time(),
            author=author,
            files=rest.files(),
            patches=rest.patches(),
            wrote=None,
            amends=made.edit.id,
        )
        steps = [Step(str(one.path), made.written[one.path].digest, now.digest, None, None) for one, now in later]
        await self._applier.adopt(Entry(follower.id, steps, msgspec.msgpack.encode(follower)))
        texts = {change.path: change.after for change, _ in later}
        changes = [_with_text(change, texts) for change in made.changes]
        recorded = Recorded.of(self._root, changes)
        edit = msgspec.structs.replace(made.edit, files=recorded.files(), patches=recorded.patches())
        await done(edit)
        newer = {one.path: made.written[one.path]._replace(stamp=now.stamp, digest=now.digest) for one, now in later}
        written = {**made.written, **newer}
        effect = await self._effects.effect(changes, made.before, written)
        self._guard.note(edit.author, edit.at, effect.bodies)
        return Made(edit, effect, changes, made.before, written)

    async def _later_changes(self, made: Made) -> list[tuple[FileChange, FileText]]:
        """How the files of an edit differ from what it wrote: changes of these, and the files as they are now."""
        await self._tree.fresh()
        later: list[tuple[FileChange, FileText]] = []
        for change in made.changes:
            path = change.moved_to or change.path
            if change.after is None:
                continue
            now = await self._if_there(path)
            if now is not None and now.digest != made.written[path].digest:
                before = now._replace(text=Text(change.after), digest=made.written[path].digest)
                later.append((FileChange(path, before, now.text.content), now))
        return later


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _with_text(change: FileChange, texts: Mapping[Path, str | None]) -> FileChange:
    path = change.moved_to or change.path
    return change._replace(after=texts[path]) if path in texts else change
