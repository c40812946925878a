"""Locks by name, first come, first served. Several are taken in the order of their names, so that no two tasks wait for
each other."""

import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

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
        self.first = anyio.Event()
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

    @asynccontextmanager
    async def holding(self, names: Iterable[str], *, until: float = math.inf) -> AsyncGenerator[Holder]:
        """Holds the locks of all names while the block runs. `until` is a time of the event loop's clock.

        Raises:
            NotInTime: one of them was not free by then; none is held.
        """
        holder = Holder(self._queues)
        await anyio.lowlevel.checkpoint()
        try:
            for name in sorted(set(names)):
                await self._take(name, holder, until)
            yield holder
        finally:
            for name in holder.names:
                self._leave(name, holder)

    async def _take(self, name: str, holder: Holder, until: float) -> None:
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

    def _leave(self, name: str, holder: Holder) -> None:
        queue = self._queues[name]
        was_first = queue[0] is holder
        queue.remove(holder)
        if not queue:
            del self._queues[name]
        elif was_first:
            queue[0].first.set()
