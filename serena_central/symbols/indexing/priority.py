"""Priority on one root: background work yields to callers for a moment."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from serena_central.symbols.indexing.policy import IndexingPolicy


class Priority:
    """Belongs to the event loop's thread."""

    def __init__(self, policy: IndexingPolicy) -> None:
        self._policy = policy
        self._callers = 0
        self._quiet = anyio.Event()

    @contextmanager
    def caller(self) -> Generator[None]:
        """While somebody waits for an answer about this root, background work gives way."""
        self._callers += 1
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers:
                self._quiet.set()
                self._quiet = anyio.Event()

    async def give_way(self) -> None:
        """Waits a little for callers: what works in the background does so before each question."""
        with anyio.move_on_after(self._policy.gives_way_s):
            while self._callers:
                await self._quiet.wait()
