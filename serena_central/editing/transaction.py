"""Transactions on the disk: all changes of an operation are made, or none.

Under the locks of its files: compare each with what the edit was planned on, write the journal, stage the new texts
beside the old ones, compare once more, rename. What fails before the first rename leaves nothing behind; what fails
later is rolled back. `Applier.open` does the same for what a crash left. It knows neither symbols nor projects.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import (
    EditTakenOver,
    FileChanged,
    InvalidArguments,
    SerenaCentralError,
    StoreError,
    WriteFailed,
)
from serena_central.core.locks import KeyedLocks
from serena_central.editing.change import FileChange, Operation
from serena_central.editing.disk import Disk, Folders, StepFiles, standing_folder
from serena_central.editing.journal import Entry, Journal, Past, Step
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, digest_of
from serena_central.files.walk import TEMPORARY

logger = logging.getLogger(__name__)

WRITERS = 4
"""Operations that write at the same time."""


_first: ContextVar[Callable[[], Awaitable[object]] | None] = ContextVar("first", default=None)


@contextmanager
def writing_after(first: Callable[[], Awaitable[object]]) -> Generator[None]:
    """Operations of this task begin when `first` is done: what must be known of them after a kill. It is waited for
    under the cancellation shield of an edit: it has a bound of its own."""
    token = _first.set(first)
    try:
        yield
    finally:
        _first.reset(token)


class Written(NamedTuple):
    """A file as it was written: its stamp, None if it was deleted at once by another program; and the digest of its
    content."""

    stamp: Stamp | None
    digest: str
    detached: int = 0
    """Other names of the file (hard links), which keep the old text."""


class Fence(Protocol):
    """Decides whether an operation may be made, where others write the same projects. Called in worker threads."""

    def check(self, entry: Entry, /) -> None:
        """Before the first rename of each operation.

        Raises:
            SerenaCentralError: it must not be made here, or that can't be known.
        """
        ...

    def still_holds(self, entry: Entry, /) -> bool:
        """Whether this process is to roll an operation back that was checked and failed later; if not, another one
        brings it to its end. Never raises."""
        ...

    def ended(self, entry: Entry, /, *, applied: bool | None) -> None:
        """An operation that was checked has come to its end: `applied` as in the journal. Never raises."""
        ...


class Applier:
    """One for the whole server: a file may belong to several projects. `open` first."""

    def __init__(
        self,
        journal: Journal,
        *,
        disk: Disk | None = None,
        fence: Fence | None = None,
        inherited: Sequence[Entry] = (),
    ) -> None:
        """`inherited`: operations that another process has begun, under another journal, and that are this one's to
        bring to an end: the other may be stopped, and go on later."""
        self._journal = journal
        self._fence = fence
        self._inherited = inherited
        self._disk = disk or Disk()
        self._locks = KeyedLocks()
        self.planned = KeyedLocks()
        """Of the files that edits are planned on, by absolute path, until they are written: whoever plans holds them,
        also where the project that it was begun in is closed or another one has the file, too."""
        self._threads = anyio.CapacityLimiter(WRITERS)

    @property
    def journal(self) -> Journal:
        return self._journal

    def open(self) -> list[Past]:
        """Opens the journal, recovers what a crash left, and returns the operations in it, oldest first. Blocks.

        Raises:
            StoreError: the journal can't be used.
        """
        past = self._journal.open()
        known = {one.entry.id for one in past}
        try:
            for entry in self._inherited:
                if entry.id not in known:
                    self._journal.begin(entry)
                    past.append(Past(entry))
        except OSError as error:
            raise StoreError(f"The journal of edits {self._journal.path} can't be written: {error}.") from error
        return [one if one.ended else self._recovered(one) for one in past]

    def close(self) -> None:
        self._journal.close()

    async def apply(self, operation: Operation) -> dict[Path, Written]:
        """Makes all changes; returns what it wrote. Shielded from cancellation: half of an operation is nothing.

        Raises:
            FileChanged: a file is not what the edit was planned on.
            SerenaCentralError: what the fence raises.
            PathError: one can't be replaced: read-only, owned by somebody else, in the way.
            InvalidArguments: a character that the file's encoding doesn't have, or too large a text.
            WriteFailed: the disk refused.
        """
        if (first := _first.get()) is not None:
            await first()
        planned = [
            one for number, change in enumerate(operation.changes) for one in _planned(operation, number, change)
        ]
        written: dict[Path, Written] = {}
        async with self._locks.holding(one.step.path for one in planned):
            with anyio.CancelScope(shield=True):
                written = await anyio.to_thread.run_sync(self._apply, operation, planned, limiter=self._threads)
        return written

    async def adopt(self, entry: Entry) -> None:
        """Records a change of files that another program has made, as if it had been applied here. A journal that can't
        be written loses the record, and nothing else."""

        def record() -> None:
            try:
                self._journal.begin(entry)
            except OSError as error:
                logger.warning("what followed an edit could not be recorded: %s", error)
            else:
                self._journal.end(entry.id, applied=True)

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(record, limiter=self._threads)

    def _apply(self, operation: Operation, planned: Sequence["Planned"]) -> dict[Path, Written]:
        with Folders() as folders:
            return _Transaction(self._journal, self._disk, folders, operation, planned, self._fence).run()

    def _recovered(self, past: Past) -> Past:
        """Brings an operation that was cut off to one of its two ends."""
        steps = past.entry.steps
        try:
            with Folders() as folders:
                files = StepFiles(self._disk, folders)
                applied = _completed_or_rolled_back(files, steps)
                files.sweep(steps)
                if applied is not None:
                    files.remove_folders_left(steps, applied=applied)
        except (OSError, FileChanged) as error:  # also a folder that is a symlink now: nothing is done behind that
            logger.error("the edit %s could not be recovered: %s", past.entry.id, error)
            return past
        logger.warning("the edit %s was interrupted: %s", past.entry.id, _ENDS[applied])
        self._journal.end(past.entry.id, applied=applied)
        if self._fence is not None:
            self._fence.ended(past.entry, applied=applied)
        return Past(past.entry, applied, ended=True)


class Planned(NamedTuple):
    """A step, and the bytes that it writes (None: it deletes)."""

    step: Step
    data: bytes | None
    like: str | None
    """The path of the file whose mode and owner the new one gets."""


class _Transaction:
    """One operation on its way to the disk. Blocks; belongs to one thread, under the locks of its files."""

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        folders: Folders,
        operation: Operation,
        planned: Sequence[Planned],
        fence: Fence | None,
    ) -> None:
        self._journal = journal
        self._disk = disk
        self._fence = fence
        self._folders = folders
        self._operation = operation
        self._planned = [one._replace(step=_in_folders(one.step)) for one in planned]
        self._steps = [one.step for one in self._planned]
        self._entry = Entry(operation.id, self._steps, operation.record, operation.repeat)
        self._files = StepFiles(disk, folders)
        self._done: list[Step] = []

    def run(self) -> dict[Path, Written]:
        """Raises what `Applier.apply` raises."""
        stamps = [self._files.check(step) for step in self._steps]
        self._begin()
        try:
            self._write(stamps)
        except SerenaCentralError as error:
            # What could not be put back stays open in the journal: the next start tries again.
            if not (isinstance(error, EditTakenOver) or (isinstance(error, WriteFailed) and error.changed)):
                self._end(applied=False)
            raise
        written = self._written()
        self._end(applied=True)
        return written

    def _end(self, *, applied: bool) -> None:
        self._journal.end(self._operation.id, applied=applied)
        if self._fence is not None:
            self._fence.ended(self._entry, applied=applied)

    def _begin(self) -> None:
        try:
            self._journal.begin(self._entry)
        except OSError as error:
            raise WriteFailed(str(self._journal.path), _reason_of(error)) from error

    def _write(self, stamps: Sequence[Stamp | None]) -> None:
        step = self._steps[0]
        try:
            for one in self._planned:
                step = one.step
                self._stage(one)
            if self._fence is not None:
                self._fence.check(self._entry)
            for one, stamp in zip(self._planned, stamps, strict=True):
                step = one.step
                self._files.check_unchanged(step, stamp)
                self._done.append(step)  # before it is done: it may fail half-way
                self._files.commit(step)
        except (OSError, SerenaCentralError) as error:
            if self._done and self._fence is not None and not self._fence.still_holds(self._entry):
                # Whoever took over has removed the staged texts, so that none can be renamed any more: see `Applier`.
                raise EditTakenOver(self._operation.id, [one.path for one in self._steps]) from error
            if isinstance(error, FileChanged) and self._done and self._done[-1] is step:
                self._done.pop()  # what lies there is somebody else's
            left = self._roll_back()
            if isinstance(error, OSError) or left:
                raise WriteFailed(step.path, _reason_of(error), left) from error
            raise

    def _stage(self, one: Planned) -> None:
        """Puts the new text beside the old one, and gives the old one a second name."""
        step, folders = one.step, self._folders
        if step.fresh is not None and one.data is not None:
            fresh = folders.make(step.fresh)
            self._disk.write(fresh, one.data, folders.place(one.like) if one.like is not None else None)
        if step.kept is not None:
            self._files.keep(folders.place(step.path), folders.place(step.kept))

    def _roll_back(self) -> list[str]:
        """Undoes what was done; the files for which that failed."""
        left: list[str] = []
        for step in reversed(self._done):
            try:
                if self._files.state_of(step) == "new":
                    self._files.roll_back(step)
            except OSError as error:
                logger.error("%s could not be restored: %s", step.path, error)
                left.append(step.path)
        if not left:
            with suppress(OSError):
                self._files.sweep(self._steps)
        self._files.remove_folders_left(self._steps, applied=False)
        return left

    def _written(self) -> dict[Path, Written]:
        """What the files are now; their folders are synced."""
        self._files.sweep(self._steps)
        self._files.remove_folders_left(self._steps, applied=True)
        written: dict[Path, Written] = {}
        for step in self._steps:
            place = self._folders.place(step.path)
            if step.new is not None:
                detached = self._files.other_names.get(step.path, 0)
                written[Path(place.path)] = Written(place.stamp(), step.new, detached)
        folders = (self._folders.place(step.path).folder for step in self._steps)
        for folder in {id(folder): folder for folder in folders}.values():
            self._disk.sync_folder(folder)
        return written


# --- after a crash -----------------------------------------------------------------------------------------------

_ENDS = {
    True: "completed",
    False: "rolled back",
    None: "its outcome is unknown, because its files were changed by another program since",
}


def _completed_or_rolled_back(files: StepFiles, steps: Sequence[Step]) -> bool | None:
    """Completes or rolls back an operation, and returns which; None if its outcome is unknown. Files that were changed
    since stay as they are."""
    states = {step.path: files.state_of(step) for step in steps}
    done = [step for step in steps if states[step.path] == "new"]
    waiting = [step for step in steps if files.is_waiting(step)]
    stuck = [step for step in steps if states[step.path] == "old" and step not in waiting]
    under_way = bool(done) or _was_under_way(files, steps)
    if under_way and not stuck and all(files.can_go_on(step) for step in waiting):
        for step in waiting:
            files.commit(step)
        return True
    for step in done:
        files.roll_back(step)
    unknown = any(states[step.path] == "other" and files.may_be_done(step) for step in steps)
    return None if unknown else False


def _was_under_way(files: StepFiles, steps: Sequence[Step]) -> bool:
    """Whether a rename was made, as the new texts show: all are put beside the files before the first is renamed, and
    both is done in order."""
    fresh = [files.exists(step.fresh) for step in steps if step.fresh is not None]
    return any(later and not earlier for earlier, later in pairwise(fresh))


# --- planning ----------------------------------------------------------------------------------------------------


def _planned(operation: Operation, number: int, change: FileChange) -> list[Planned]:
    """The steps of one change: a move makes one file and deletes another."""
    data = _encoded(change)
    old = change.before.digest if change.before else None
    several = len(operation.changes) > 1 or change.moved_to is not None
    target = change.moved_to or change.path
    name = f"{TEMPORARY}{operation.id}-{number}"
    made = Planned(
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
    if data is None and change.folders:
        made = made._replace(step=msgspec.structs.replace(made.step, below=str(change.path.parents[change.folders])))
    if change.moved_to is None:
        return [made]
    gone = Step(
        path=str(change.path),
        old=old,
        new=None,
        fresh=None,
        kept=str(change.path.with_name(f"{name}.old")),
        below=os.path.commonpath([change.path.parent, target.parent]),
    )
    return [made, Planned(gone, None, None)]


def _in_folders(step: Step) -> Step:
    """With what has to be known of the folders that are made for a file, to take them away again."""
    is_new = step.old is None and step.fresh is not None
    return msgspec.structs.replace(step, below=standing_folder(step.path)) if is_new else step


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
    _check_encoding(change)
    if "\0" in change.after:
        raise InvalidArguments(
            f"The new text of {change.path.name} has a NUL character, which is not allowed in text. Nothing was "
            "changed."
        )
    if len(data) > MAX_BYTES:
        raise InvalidArguments(
            f"{change.path.name} would have {len(data) / 1e6:.1f} MB, more than the limit of {MAX_BYTES / 1e6:g} MB "
            "for text files. Nothing was changed."
        )
    return data


def _check_encoding(change: FileChange) -> None:
    """Raises InvalidArguments where a text would be written in two encodings: bytes of a file that are not valid in the
    one that it is read in say that it is another."""
    before, after = change.before, change.after
    if before is None or after is None or not before.invalid:
        return
    new = {char for char in set(after).difference(before.text.content) if not char.isascii()}
    wrong = "".join(sorted(char for char in new if not "\ud800" <= char <= "\udfff"))
    if wrong:
        raise InvalidArguments(
            f"{change.path.name} is not valid {before.encoding}, so that it is unknown how {wrong[:10]!r} is written "
            "in it. Nothing was changed. Set `encoding` in the project's settings, or use ASCII alone (escapes)."
        )


def _reason_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error)
