"""Locks by name, first come, first served. Several are taken in the order of their names, so that no two tasks wait for
each other."""

import math
from collections.abc import Iterable
from types import TracebackType

import anyio
import anyio.lowlevel

from serena_central.core.progress import waiting_for
from serena_central.core.quoting import quoted
from serena_central.core.tracing import phase


class NotInTime(Exception):
    """The lock `name` was not free in time; `ahead` is the number of tasks before this one, its holder included."""

    def __init__(self, name: str, ahead: int) -> None:
        super().__init__(name)
        self.name = name
        self.ahead = ahead


class Holder:
    """One that holds locks, or waits for the last one of its `names`."""

    def __init__(self, queues: "dict[str, list[Holder]]") -> None:
        self._queues = queues
        self.names: list[str] = []
        self.first: anyio.Event | None = None
        """Of the lock that it waits for, it is the next holder."""

    def add_free(self, names: Iterable[str]) -> bool:
        """Takes further locks if each of them is free; else none, and returns False. Never waits: no deadlock."""
        wanted = set(names).difference(self.names)
        if not self._queues.keys().isdisjoint(wanted):
            return False
        for name in wanted:
            self._queues[name] = [self]
            self.names.append(name)
        return True


class KeyedLocks:
    """A lock exists while somebody holds it or waits. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._queues: dict[str, list[Holder]] = {}
        """Name → its holder, then those that wait, in order."""

    def queued(self, name: str) -> int:
        """How many hold a lock or wait for it."""
        return len(self._queues.get(name, ()))

    def holding(self, names: Iterable[str], *, until: float = math.inf) -> "_Holding":
        """Holds the locks of all names while the `async with` block runs. `until` is a time of the event loop's clock.

        Raises:
            NotInTime: one of them was not free by then; none is held.
        """
        return _Holding(self, names, until)

    async def take(self, name: str, holder: Holder, until: float) -> None:
        """Waits for a lock; the holder has it, or its place in the queue, until `leave`."""
        queue = self._queues.setdefault(name, [])
        queue.append(holder)
        holder.names.append(name)
        if queue[0] is holder:
            return
        holder.first = anyio.Event()

        def ahead() -> tuple[str, float | None]:
            return f"{queue.index(holder)} ahead at {quoted(name)}", None

        with waiting_for(ahead), phase("queue"), anyio.CancelScope(deadline=until):
            await holder.first.wait()
        if queue[0] is not holder:
            raise NotInTime(name, queue.index(holder))

    def leave(self, holder: Holder) -> None:
        """Lets go of all locks that a holder has or waits for."""
        for name in holder.names:
            queue = self._queues[name]
            was_first = queue[0] is holder
            queue.remove(holder)
            if not queue:
                del self._queues[name]
            elif was_first and (waiting := queue[0].first) is not None:
                waiting.set()

    def new_holder(self) -> Holder:
        return Holder(self._queues)


class _Holding:
    """A class, not a generator: each request of a client holds a lock, which takes half the time so."""

    __slots__ = ("_holder", "_locks", "_names", "_until")

    def __init__(self, locks: KeyedLocks, names: Iterable[str], until: float) -> None:
        self._locks = locks
        self._names = set(names)
        self._until = until
        self._holder = locks.new_holder()

    async def __aenter__(self) -> Holder:
        if self._holder.add_free(self._names):
            return self._holder
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            for name in sorted(self._names):
                await self._locks.take(name, self._holder, self._until)
        except BaseException:
            self._locks.leave(self._holder)
            raise
        return self._holder

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._locks.leave(self._holder)
