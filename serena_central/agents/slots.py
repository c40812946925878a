"""The places in which tasks run: a bounded number, a queue in order, and parents that give theirs up while they wait.

A parent that waits for a child would hold a place that the child may need. It comes back before whoever is queued.
"""

from collections import deque
from collections.abc import Callable

import anyio

RETRY_S = 1.0
"""How often memory is looked at while it keeps tasks from starting."""


class Slots:
    """Belongs to the event loop's thread. The state changes between two awaits only."""

    def __init__(self, limit: int, may_start: Callable[[], bool] = lambda: True) -> None:
        """`may_start`: whether there is memory for one more; asked only while something runs already."""
        self._limit = limit
        self._may_start = may_start
        self._used = 0
        self._returning: deque[anyio.Event] = deque()
        self._queue: dict[str, anyio.Event] = {}
        """Task id → what tells it that it has a place, in order."""

    @property
    def used(self) -> int:
        return self._used

    @property
    def queued(self) -> int:
        return len(self._queue)

    def position(self, task: str) -> int | None:
        """Its place in the queue, from 1; None where it is not queued."""
        return next((place for place, one in enumerate(self._queue, 1) if one == task), None)

    async def take(self, task: str) -> None:
        """Waits for a place."""
        given = self._queue[task] = anyio.Event()
        self._admit()
        try:
            while not given.is_set():
                with anyio.move_on_after(RETRY_S):
                    await given.wait()
                self._admit()
        except BaseException:
            if given.is_set():
                self.give()
            self._queue.pop(task, None)
            raise

    async def take_again(self) -> None:
        """Waits for a place, before those that are queued."""
        given = anyio.Event()
        self._returning.append(given)
        self._admit()
        try:
            await given.wait()
        except BaseException:
            if given.is_set():
                self.give()
            else:
                self._returning.remove(given)
            raise

    def give(self) -> None:
        """Gives a place back."""
        self._used -= 1
        assert self._used >= 0
        self._admit()

    def _admit(self) -> None:
        while self._returning and self._used < self._limit:
            self._used += 1
            self._returning.popleft().set()
        while self._queue and self._used < self._limit and (not self._used or self._may_start()):
            self._used += 1
            self._queue.pop(next(iter(self._queue))).set()
