"""Edits several projects as one operation: each plans its own part, then all are written, or none.

Every part takes the files of its project, plans, and waits. When the last one has planned, all changes go to the disk
as one operation with one journal entry: what fails, and what a crash cuts off, is rolled back or completed as a whole.
Parts plan one after the other in the order of their roots, so that two of these that edit the same files never wait for
each other. Where one root lies in another that is not enough: all parts may have to let go of their files, and plan
again when the joint edit holds all of them (`JointTurn`).

A call also attaches to its edits the files that they may change, and work that follows each of them: hooks that format
what was written, while the edit still holds its files, so that nobody else in this server plans or writes them in
between. What that changes in them belongs to the edit.

All this is found by the context of a task: the way from a tool to its edit does not know of it.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import anyio
import msgspec

from serena_central.core.errors import EditRefused, FileChanged, PathRefused, SerenaCentralError, ToolRefused, listed
from serena_central.core.locks import KeyedLocks
from serena_central.editing.change import FileChange, Operation
from serena_central.editing.transaction import Applier, Written
from serena_central.projects.editing.edit_queue import JointTurn, in_time, take_part
from serena_central.projects.editing.edit_records import AppliedEdit, new_edit_id, part_id

if TYPE_CHECKING:
    from serena_central.projects.editing.edits import Edited

T = TypeVar("T")

ATTEMPTS = 4
"""How often all parts are planned again because another program wrote a file between a plan and the writing."""


Check = Callable[[], Awaitable[None]]
"""Is called when all is planned and nothing is written; it may raise, to refuse."""


class PartFailed(Exception):
    """One part's edit can't be made, and so none was. `root` is its project's; `error` says why."""

    def __init__(self, root: Path, error: SerenaCentralError) -> None:
        super().__init__(str(root))
        self.root = root
        self.error = error


class _Planned(NamedTuple):
    """What a part would write, and how to report it."""

    applier: Applier
    applied: Callable[[AppliedEdit], None]
    changes: Sequence[FileChange]
    edit: AppliedEdit
    recheck: Check


class _Decision:
    """What became of a joint edit: `taken` when it is written, or never will be."""

    def __init__(self) -> None:
        self.taken = anyio.Event()
        self.written: dict[Path, Written] = {}


class ProjectPart:
    """One project's part in a joint edit."""

    def __init__(self, root: Path, decision: _Decision) -> None:
        self._decision = decision
        self.root = root
        self.ready = anyio.Event()
        """It has planned, or ended without a plan."""
        self.planned: _Planned | None = None
        self.made: AppliedEdit | None = None

    async def write(
        self,
        applier: Applier,
        applied: Callable[[AppliedEdit], None],
        changes: Sequence[FileChange],
        edit: AppliedEdit,
        recheck: Check,
    ) -> tuple[AppliedEdit, dict[Path, Written]]:
        """Waits until all parts have planned and all changes are written. The edit as it was made: with its id.

        Raises:
            EditRefused: none was written, since another part failed.
        """
        self.planned = _Planned(applier, applied, changes, edit, recheck)
        self.ready.set()
        await self._decision.taken.wait()
        if self.made is None:
            raise EditRefused("Nothing was changed, because another project's part of this edit failed.")
        return self.made, self._decision.written


_part: ContextVar[ProjectPart | None] = ContextVar("part", default=None)


def joint_part() -> ProjectPart | None:
    """The part that an edit made by this task belongs to; None for one by itself."""
    part = _part.get()
    return part if part is not None and not part.ready.is_set() else None


_forbidden: ContextVar[str | None] = ContextVar("forbidden", default=None)


@contextmanager
def changing_nothing(because: str | None) -> Generator[None]:
    """Edits of this task may plan, and fail if they would change something; None allows it."""
    token = _forbidden.set(because)
    try:
        yield
    finally:
        _forbidden.reset(token)


def check_allowed() -> None:
    """Raises ToolRefused where this task may change nothing."""
    because = _forbidden.get()
    if because is not None:
        raise ToolRefused(because)


async def nothing_to_check() -> None:
    """Of an edit that relies on nothing but the files that it writes."""


async def write_edit(
    applier: Applier,
    applied: Callable[[AppliedEdit], None],
    changes: Sequence[FileChange],
    edit: AppliedEdit,
    recheck: Check = nothing_to_check,
) -> tuple[AppliedEdit, Mapping[Path, Written]]:
    """Writes an edit, by itself or with those of other projects, and tells `applied` of it. The edit as it was made.

    Raises:
        EditError, PathError, InvalidArguments: nothing was changed.
    """
    part = joint_part()
    if part is not None:
        return await part.write(applier, applied, changes, edit, recheck)
    await recheck()
    operation = Operation(edit.id, tuple(changes), msgspec.msgpack.encode(edit), edit.author.repeat)
    written: dict[Path, Written] = {}
    with anyio.CancelScope(shield=True):  # what was made is told
        written = await applier.apply(operation)
        applied(edit)
    return edit, written


async def jointly(
    works: Mapping[Path, Callable[[], Awaitable[T]]], locks: KeyedLocks
) -> dict[Path, T | SerenaCentralError]:
    """Runs all works, by root, each of which makes at most one edit: all of these edits, or none. What a work came to,
    or how it failed after its edit was made. A work that edits nothing is no failure. `locks` are those of the files
    that edits are planned on.

    Raises:
        PartFailed: one failed before, so that no edit was made.
        SerenaCentralError: the operation could not be written; nothing was changed.
    """
    needed, attempts = frozenset[str](), 0
    while attempts < ATTEMPTS:
        reserve = locks.new_holder()
        async with in_time(locks, needed, reserve):
            turn = JointTurn(reserve)
            try:
                return await _Joint[T](turn).run(works)
            except FileChanged:
                attempts += 1
            except PartFailed:
                if not turn.needed:
                    raise
                needed |= turn.needed
    raise PathRefused("Files keep changing: a program outside this server writes them. Nothing was changed.")


class _Joint(Generic[T]):
    """One attempt at a joint edit."""

    def __init__(self, turn: JointTurn) -> None:
        self._turn = turn
        self._decision = _Decision()
        self._parts: list[ProjectPart] = []
        self._failure: Exception | None = None
        self._results: dict[Path, T | SerenaCentralError] = {}

    async def run(self, works: Mapping[Path, Callable[[], Awaitable[T]]]) -> dict[Path, T | SerenaCentralError]:
        async with anyio.create_task_group() as tasks:
            try:
                for root in sorted(works, key=lambda root: f"{root}/"):  # as the files in them are ordered
                    part = ProjectPart(root, self._decision)
                    self._parts.append(part)
                    tasks.start_soon(self._work, part, works[root])
                    await part.ready.wait()
                    # One with neither a plan nor a result has failed unexpectedly, and is about to end the group.
                    if self._failure is not None or (part.planned is None and root not in self._results):
                        break
                else:
                    await self._write([part for part in self._parts if part.planned is not None])
            finally:
                self._turn.end()
                self._decision.taken.set()  # whoever waits is shielded, and must not wait for a call that ended
        if self._failure is not None:
            raise self._failure
        return self._results

    async def _work(self, part: ProjectPart, work: Callable[[], Awaitable[T]]) -> None:
        _part.set(part)
        take_part(self._turn)
        try:
            self._results[part.root] = await work()
        except SerenaCentralError as error:
            self._results[part.root] = error
            if not self._decision.taken.is_set():
                self._failure = PartFailed(part.root, error)
        finally:
            part.ready.set()

    async def _write(self, parts: Sequence[ProjectPart]) -> None:
        """Writes what all parts have planned, and records it: the first part last, so that its record implies the
        others'."""
        planned = [part.planned for part in parts if part.planned is not None]
        if not planned:
            return
        edits = _numbered([one.edit for one in planned])
        changes = [change for one in planned for change in one.changes]
        record = msgspec.msgpack.encode(edits if len(edits) > 1 else edits[0])
        with anyio.CancelScope(shield=True):
            try:
                _check_distinct(changes)
                for one in planned:
                    await one.recheck()
                self._decision.written = await planned[0].applier.apply(
                    Operation(edits[0].id, tuple(changes), record, edits[0].author.repeat)
                )
            except SerenaCentralError as error:
                self._failure = error
                return
            for part, one, edit in reversed(list(zip(parts, planned, edits, strict=True))):
                one.applied(edit)
                part.made = edit


def _numbered(edits: Sequence[AppliedEdit]) -> list[AppliedEdit]:
    """The parts of one operation under its id. The first one identifies a repeated call."""
    operation = new_edit_id()
    numbered: list[AppliedEdit] = []
    for number, edit in enumerate(edits):
        author = msgspec.structs.replace(edit.author, repeat=None) if number else edit.author
        numbered.append(msgspec.structs.replace(edit, id=part_id(operation, number), author=author))
    return numbered


def _check_distinct(changes: Sequence[FileChange]) -> None:
    """Raises EditRefused for a file that two of the projects hold: each has planned another text for it."""
    seen: set[Path] = set()
    for change in changes:
        for path in (change.path, change.moved_to):
            if path in seen:
                raise EditRefused(f"Nothing was changed: {path} is in two of the projects. Name only one of them.")
            if path is not None:
                seen.add(path)


FollowUp = Callable[[AppliedEdit], Awaitable[None]]
Holding = Callable[[Callable[[], Awaitable[None]]], Awaitable["Edited"]]
"""Runs work while the files of an edit are held again, and returns what the work made of them."""


class EditWatch(NamedTuple):
    """`approved`: root-relative paths that edits may change; None for any. `planned` is told of those that a dry run
    would change. `follow_up` runs after each edit, while it holds its files; `later` is called when it does no more,
    and must not wait."""

    root: Path
    approved: frozenset[str] | None = None
    planned: Callable[[Collection[str]], None] | None = None
    follow_up: FollowUp | None = None
    later: Callable[[AppliedEdit, Holding], None] | None = None


_watch: ContextVar[EditWatch | None] = ContextVar("watch", default=None)


@contextmanager
def watching_edits(watch: EditWatch) -> Generator[None]:
    """Attaches `watch` to the edits that this task makes in the root's project."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def edit_watch(root: Path) -> EditWatch | None:
    """What this task has attached to edits in a root."""
    watch = _watch.get()
    return watch if watch is not None and watch.root == root else None


def check_approved(root: Path, files: Collection[str]) -> None:
    """Raises EditRefused for an edit of other files than those that were looked at before."""
    watch = edit_watch(root)
    if watch is None:
        return
    if watch.planned is not None:
        watch.planned(files)
    if watch.approved is not None and not watch.approved.issuperset(files):
        others = listed(sorted(set(files) - watch.approved))
        raise EditRefused(
            f"Nothing was changed: the project changed while hooks ran, and this edit now concerns {others} as well, "
            "which they have not seen. Send the call again."
        )


Learning = Callable[[Path, Collection[str]], Awaitable[None]]
"""Is called with a root and the root-relative files that an edit is about to change, while it holds them."""

_learning: ContextVar[Learning | None] = ContextVar("learning", default=None)


@contextmanager
def learning_before_edits(learn: Learning) -> Generator[None]:
    """Has `learn` look at files before this task's edits change them."""
    token = _learning.set(learn)
    try:
        yield
    finally:
        _learning.reset(token)


async def learn_before(root: Path, files: Collection[str]) -> None:
    """Waits for whoever looks at files before this task changes them."""
    learn = _learning.get()
    if learn is not None:
        await learn(root, files)
