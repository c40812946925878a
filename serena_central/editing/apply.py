"""Makes an operation's changes on the disk: all of them, or none.

Under the locks of its files: compare each with what the edit was planned on, write the journal, put the new texts
beside the old ones, then rename. What fails before the first rename leaves nothing behind; what fails later is taken
back. `open` does the same for what a crash left. An operation of which no file was renamed is dropped by it: nobody
got an answer about it. It knows neither symbols nor projects.
"""

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.errors import FileChanged, InvalidArguments, PathError, WriteFailed
from serena_central.core.locks import KeyedLocks
from serena_central.editing.change import FileChange, Operation
from serena_central.editing.disk import Disk
from serena_central.editing.folders import Folders
from serena_central.editing.journal import Entry, Journal, Past, Step
from serena_central.editing.steps import (
    can_go_on,
    check,
    commit,
    exists,
    is_waiting,
    may_be_done,
    state_of,
    sweep,
    take_back,
)
from serena_central.editing.writing import PlannedStep, Writing, reason_of
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, digest_of
from serena_central.files.walk import TEMPORARY

logger = logging.getLogger(__name__)

WRITERS = 4
"""Operations that write at the same time."""


class Written(NamedTuple):
    """A file as it was written: its stamp, and the digest of its content."""

    stamp: Stamp
    digest: str


class Applier:
    """One for the whole server: a file may belong to several projects. `open` first."""

    def __init__(self, journal: Journal, *, disk: Disk | None = None) -> None:
        self._journal = journal
        self._disk = disk or Disk()
        self._locks = KeyedLocks()
        self._threads = anyio.CapacityLimiter(WRITERS)

    @property
    def journal(self) -> Journal:
        return self._journal

    def open(self) -> list[Past]:
        """Opens the journal, mends what a crash left, and tells the operations that stand in it, oldest first. Blocks.

        Raises:
            StoreError: the journal can't be used.
        """
        return [self._recovered(past) for past in self._journal.open()]

    def close(self) -> None:
        self._journal.close()

    async def apply(self, operation: Operation) -> dict[Path, Written]:
        """Makes all changes, and tells what the files that it wrote are. Shielded from cancellation: half of an
        operation is nothing.

        Raises:
            FileChanged: a file is not what the edit was planned on.
            PathError: one can't be replaced: read-only, owned by somebody else, in the way.
            InvalidArguments: a character that the file's encoding doesn't have, or too large a text.
            WriteFailed: the disk refused.
        """
        steps = [
            step for number, change in enumerate(operation.changes) for step in _planned(operation, number, change)
        ]
        written: dict[Path, Written] = {}
        async with self._locks.holding(step.step.path for step in steps):
            with anyio.CancelScope(shield=True):
                written = await anyio.to_thread.run_sync(self._apply, operation, steps, limiter=self._threads)
        return written

    def _apply(self, operation: Operation, planned: Sequence[PlannedStep]) -> dict[Path, Written]:
        with Folders() as folders:
            return self._apply_in(folders, operation, planned)

    def _apply_in(self, folders: Folders, operation: Operation, planned: Sequence[PlannedStep]) -> dict[Path, Written]:
        stamps = [check(folders, one.step) for one in planned]
        steps = [one.step for one in planned]
        digests = {Path(step.path): step.new for step in steps if step.new is not None}
        try:
            self._journal.begin(Entry(operation.id, steps, operation.record, operation.repeat))
        except OSError as error:
            raise WriteFailed(str(self._journal.path), reason_of(error)) from error
        try:
            written = Writing(self._disk, folders, planned, stamps).run()
        except (FileChanged, PathError, WriteFailed) as error:
            # What could not be put back stays open in the journal: the next start tries again.
            if not (isinstance(error, WriteFailed) and error.changed):
                self._journal.end(operation.id, applied=False)
            raise
        self._journal.end(operation.id, applied=True)
        return {path: Written(stamp, digests[path]) for path, stamp in written.items()}

    def _recovered(self, past: Past) -> Past:
        if past.ended:
            return past
        steps = past.entry.steps
        try:
            with Folders() as folders:
                applied = self._mended(folders, steps)
                sweep(folders, steps)
        except (OSError, FileChanged) as error:  # also a folder that is a symlink now: nothing is done behind that
            logger.error("the edit %s could not be mended: %s", past.entry.id, error)
            return past
        logger.warning("the edit %s was cut off: %s", past.entry.id, _ENDS[applied])
        self._journal.end(past.entry.id, applied=applied)
        return Past(past.entry, applied, ended=True)

    def _mended(self, folders: Folders, steps: Sequence[Step]) -> bool | None:
        """Brings an operation that was cut off to one of its two ends, and tells which; None if nobody can know. What
        somebody has changed since stays as it is."""
        states = {step.path: state_of(folders, step) for step in steps}
        done = [step for step in steps if states[step.path] == "new"]
        waiting = [step for step in steps if is_waiting(folders, step)]
        stuck = [step for step in steps if states[step.path] == "old" and step not in waiting]
        under_way = bool(done) or _was_under_way(folders, steps)
        if under_way and not stuck and all(can_go_on(folders, step) for step in waiting):
            for step in waiting:
                commit(self._disk, folders, step)
            return True
        for step in done:
            take_back(self._disk, folders, step)
        unknown = any(states[step.path] == "other" and may_be_done(folders, step) for step in steps)
        return None if unknown else False


_ENDS = {
    True: "completed",
    False: "taken back",
    None: "whether it was made is not known, because its files were changed by something else since",
}


def _was_under_way(folders: Folders, steps: Sequence[Step]) -> bool:
    """Whether a rename was made, as the new texts tell: all are put beside the files before the first is renamed, and
    both is done in order."""
    fresh = [exists(folders, step.fresh) for step in steps if step.fresh is not None]
    return any(later and not earlier for earlier, later in pairwise(fresh))


def _planned(operation: Operation, number: int, change: FileChange) -> list[PlannedStep]:
    """The steps of one change: a move makes one file and deletes another."""
    data = _encoded(change)
    old = change.before.digest if change.before else None
    several = len(operation.changes) > 1 or change.moved_to is not None
    target = change.moved_to or change.path
    name = f"{TEMPORARY}{operation.id}-{number}"
    made = PlannedStep(
        Step(
            path=str(target),
            old=None if change.moved_to else old,
            new=None if data is None else digest_of(data),
            fresh=None if data is None else str(target.with_name(f"{name}.new")),
            kept=str(target.with_name(f"{name}.old")) if several and old and not change.moved_to else None,
        ),
        data,
        str(change.path) if change.before else None,
    )
    if change.moved_to is None:
        return [made]
    gone = Step(path=str(change.path), old=old, new=None, fresh=None, kept=str(change.path.with_name(f"{name}.old")))
    return [made, PlannedStep(gone, None, None)]


def _encoded(change: FileChange) -> bytes | None:
    if change.after is None:
        return None
    try:
        data = change.before.encode(change.after) if change.before else change.after.encode(change.encoding)
    except UnicodeEncodeError as error:
        wrong = change.after[error.start : error.start + 1]
        raise InvalidArguments(
            f"{change.path.name} is written in {error.encoding}, which has no {wrong!r}; nothing was changed."
        ) from error
    if "\0" in change.after:
        raise InvalidArguments(
            f"The new text of {change.path.name} has a NUL character, which no text can have; nothing was changed."
        )
    if len(data) > MAX_BYTES:
        raise InvalidArguments(
            f"{change.path.name} would have {len(data) / 1e6:.1f} MB, more than the {MAX_BYTES / 1e6:g} MB that can be "
            "read again as text; nothing was changed."
        )
    return data
