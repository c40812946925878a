"""The queue of edits of each file: first come, first served, with a bounded wait.

Who holds a file is the only one in this server that plans or writes it. Others outside may: digests tell. A file has
one queue however many projects it belongs to: the root of one may lie in that of another.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

import anyio

from serena_central.core.errors import EditNotInTime, EditRefused
from serena_central.core.locks import Holder, KeyedLocks, NotInTime

WAIT_S = 300.0
"""How long an edit waits where its caller sets no deadline."""

SHARE = 0.9
"""Of the time that its caller has left an edit waits so much: the rest is for the answer, or the refusal."""


class JointTurn:
    """The files of an edit of several projects. Everybody waits for files in the order of their paths. A part that
    would have to wait for one before those that others hold already, since its root lies in that of another part or
    around it, fails instead: all parts are planned again when the joint edit holds the files."""

    def __init__(self, reserve: Holder) -> None:
        """`reserve` holds files until parts ask for them."""
        self._holders = [reserve]
        self.needed = frozenset[str]()
        """The locks to be held before the next attempt, if this one failed for want of them."""
        self.is_over = False

    def end(self) -> None:
        """No part asks for files any more."""
        self.is_over = True
        self._holders[0].leave()

    def part(self, names: Iterable[str]) -> Holder:
        """A holder for a part that asks for these locks, with those of them that others hold for the joint edit.

        Raises:
            EditRefused: it must not wait for the rest of them, as it would have to.
        """
        wanted = set(names)
        held = {name for one in self._holders for name in one.names}
        holder, new = self._holders[0].relative(), wanted - held
        if held and new and min(new) < max(held) and not holder.add_free(new):
            self.needed = frozenset(wanted | held)
            raise EditRefused("Nothing was changed, because files of this edit are being edited by others.")
        holder.add_free(wanted & held)
        self._holders.append(holder)
        return holder


_joint: ContextVar[JointTurn | None] = ContextVar("joint", default=None)


def take_part(joint: JointTurn) -> None:
    """Has the edit that this task makes hold its files as a part of a joint edit."""
    _joint.set(joint)


class Turn(NamedTuple):
    """Files of a project, root-relative, that are held."""

    queue: "EditQueue"
    holder: Holder

    @property
    def is_empty(self) -> bool:
        return not self.holder.names

    def holds(self, path: str) -> bool:
        return self.queue.lock(path) in self.holder.names

    def add_free(self, paths: Iterable[str]) -> bool:
        """Takes further files if nobody else has one of them; else none, and returns False."""
        return self.holder.add_free(map(self.queue.lock, paths))


class EditQueue:
    """Of one project's files, by root-relative path. Belongs to the event loop's thread."""

    def __init__(self, root: Path, locks: KeyedLocks) -> None:
        """`locks` are those of all projects, by absolute path."""
        self._root = f"{root}/"
        self._locks = locks

    def lock(self, path: str) -> str:
        """The name of a file's lock; the path may also be an absolute one outside of the root."""
        return path if path.startswith("/") else self._root + path

    def queued(self, path: str) -> int:
        """How many edit a file, or wait to."""
        return self._locks.queued(self.lock(path))

    @asynccontextmanager
    async def turn(self, paths: Iterable[str]) -> AsyncGenerator[Turn]:
        """Holds files while the block runs.

        Raises:
            EditNotInTime: others edited one of them until this edit's time was over.
            EditRefused: others edit one of them, for which a joint edit waits before this part of it can (`JointTurn`).
        """
        names, joint = set(map(self.lock, paths)), _joint.get()
        holder = self._locks.new_holder() if joint is None or joint.is_over else joint.part(names)
        async with in_time(self._locks, names, holder, shown=lambda name: name.removeprefix(self._root)):
            yield Turn(self, holder)


@asynccontextmanager
async def in_time(
    locks: KeyedLocks, names: Collection[str], holder: Holder, *, shown: Callable[[str], str] = str
) -> AsyncGenerator[None]:
    """Has a holder hold files while the block runs, by the names of their locks.

    Raises:
        EditNotInTime: others edited one of them until this edit's time was over.
    """
    began = anyio.current_time()
    left_s = min((anyio.current_effective_deadline() - began) * SHARE, WAIT_S)
    try:
        async with locks.holding(names, until=began + max(left_s, 0.0), shown=shown, holder=holder):
            yield
    except NotInTime as error:
        raise EditNotInTime(shown(error.name), error.ahead, anyio.current_time() - began) from error
