"""Priority on one root: background work yields to callers for a moment."""

import math
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
        self._goes_on_until = -math.inf

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
        """Waits for callers: what works in the background does so before each question. Whoever waited as long as the
        policy allows then works for as long: callers that come all the time take half of the time at most."""
        if anyio.current_time() < self._goes_on_until:
            return
        with anyio.move_on_after(self._policy.gives_way_s) as waited:
            while self._callers:
                await self._quiet.wait()
        if waited.cancelled_caught:
            self._goes_on_until = anyio.current_time() + self._policy.gives_way_s
