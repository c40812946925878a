"""Locks by name, first come, first served. Several are taken in the order of their names, so that no two tasks wait for
each other."""

import math
from collections.abc import Callable, Iterable
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

    def __init__(self, queues: "dict[str, list[Holder]]", family: object = None) -> None:
        self._queues = queues
        self.family = family or self
        self.names: list[str] = []
        self.first: anyio.Event | None = None
        """Of the lock that it waits for, it is the next holder."""

    def relative(self) -> "Holder":
        """Another holder, of the same family: they take over each other's locks."""
        return Holder(self._queues, self.family)

    def add_free(self, names: Iterable[str]) -> bool:
        """Takes further locks if each of them is free, or its family's; else none, and returns False. Never waits: no
        deadlock."""
        wanted = set(names).difference(self.names)
        held = {name: self._queues[name] for name in self._queues.keys() & wanted}
        if any(queue[0].family is not self.family for queue in held.values()):
            return False
        for name in wanted:
            if name in held:
                held[name][0].names.remove(name)
                held[name][0] = self
            else:
                self._queues[name] = [self]
            self.names.append(name)
        return True

    def leave(self) -> None:
        """Lets go of all locks that it has or waits for."""
        names, self.names = self.names, []
        for name in names:
            queue = self._queues[name]
            was_first = queue[0] is self
            queue.remove(self)
            if not queue:
                del self._queues[name]
            elif was_first and (waiting := queue[0].first) is not None:
                waiting.set()


class KeyedLocks:
    """A lock exists while somebody holds it or waits. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._queues: dict[str, list[Holder]] = {}
        """Name → its holder, then those that wait, in order."""

    def queued(self, name: str) -> int:
        """How many hold a lock or wait for it."""
        return len(self._queues.get(name, ()))

    def holding(
        self,
        names: Iterable[str],
        *,
        until: float = math.inf,
        shown: Callable[[str], str] = str,
        holder: Holder | None = None,
    ) -> "_Holding":
        """Holds the locks of all names while the `async with` block runs. `until` is a time of the event loop's clock;
        `shown` gives a name as progress messages show it. A `holder` may hold some already, and leaves all at the end;
        it must hold none that comes after one that it waits for.

        Raises:
            NotInTime: one of them was not free by then; none is held.
        """
        return _Holding(self, names, until, shown, holder or Holder(self._queues))

    async def take(self, name: str, holder: Holder, until: float, shown: Callable[[str], str]) -> None:
        """Waits for a lock; the holder has it, or its place in the queue, until it leaves."""
        queue = self._queues.setdefault(name, [])
        queue.append(holder)
        holder.names.append(name)
        if queue[0] is holder:
            return
        holder.first = anyio.Event()

        def ahead() -> tuple[str, float | None]:
            return f"{queue.index(holder)} ahead at {quoted(shown(name))}", None

        with waiting_for(ahead), phase("queue"), anyio.CancelScope(deadline=until):
            await holder.first.wait()
        if queue[0] is not holder:
            raise NotInTime(name, queue.index(holder))

    def new_holder(self) -> Holder:
        return Holder(self._queues)


class _Holding:
    """A class, not a generator: each request of a client holds a lock, which takes half the time so."""

    __slots__ = ("_holder", "_locks", "_names", "_shown", "_until")

    def __init__(
        self, locks: KeyedLocks, names: Iterable[str], until: float, shown: Callable[[str], str], holder: Holder
    ) -> None:
        self._locks = locks
        self._names = set(names)
        self._until = until
        self._shown = shown
        self._holder = holder

    async def __aenter__(self) -> Holder:
        if self._holder.add_free(self._names):
            return self._holder
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            for name in sorted(self._names.difference(self._holder.names)):
                await self._locks.take(name, self._holder, self._until, self._shown)
        except BaseException:
            self._holder.leave()
            raise
        return self._holder

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._holder.leave()
