"""Locks by name: taken in the order of their names, so that two that want several never wait for each other."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio


class KeyedLocks:
    """Fair locks that exist while somebody holds them or waits. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}

    @asynccontextmanager
    async def holding(self, names: Iterable[str]) -> AsyncGenerator[None]:
        """Holds the locks of all names while the block runs."""
        async with AsyncExitStack() as stack:
            for name in sorted(set(names)):
                lock = self._locks.setdefault(name, _Lock())
                lock.users += 1
                stack.callback(self._let_go, name, lock)
                await stack.enter_async_context(lock.lock)
            yield

    def _let_go(self, name: str, lock: "_Lock") -> None:
        lock.users -= 1
        if not lock.users:
            del self._locks[name]


class _Lock:
    """A lock and how many hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0
