"""The places in which tasks run: a bounded number, a queue in order, and parents that give theirs up while they wait.

A parent that waits for a child would hold a place that the child may need. It comes back before whoever is queued.
"""

from collections.abc import Callable

import anyio

RETRY_S = 1.0
"""How often memory is looked at while it keeps tasks from starting."""


class Slots:
    """Belongs to the event loop's thread. The state changes between two awaits only. Who has a place, and who waits
    for one, is known by task: a task has one place at most, whoever asks for it and how often."""

    def __init__(self, limit: int, may_start: Callable[[], bool] = lambda: True) -> None:
        """`may_start`: whether there is memory for one more; asked only while something runs already."""
        self._limit = limit
        self._may_start = may_start
        self._held: set[str] = set()
        """Ids of the tasks that have a place."""
        self._returning: dict[str, anyio.Event] = {}
        """Task id → what is set when it waits no longer, in order."""
        self._queue: dict[str, anyio.Event] = {}
        """As `_returning`; these get what places are left."""

    @property
    def used(self) -> int:
        return len(self._held)

    @property
    def queued(self) -> int:
        return len(self._queue)

    def position(self, task: str) -> int | None:
        """Its place in the queue, from 1; None where it is not queued."""
        return next((place for place, one in enumerate(self._queue, 1) if one == task), None)

    async def take(self, task: str) -> None:
        """Waits for a place. A task that was cancelled meanwhile has to `leave`, as each does in the end."""
        given = self._queue[task] = anyio.Event()
        self._admit()
        while not given.is_set():
            with anyio.move_on_after(RETRY_S):
                await given.wait()
            self._admit()

    async def take_again(self, task: str) -> None:
        """Waits for a place, before those that are queued, or until the task leaves. Whoever is cancelled here leaves
        the task in line: it goes on without a place until it gets one."""
        given = self._returning.setdefault(task, anyio.Event())
        self._admit()
        await given.wait()

    def leave(self, task: str) -> None:
        """The task has no place from now on, and waits for none."""
        self._held.discard(task)
        self._queue.pop(task, None)
        if (given := self._returning.pop(task, None)) is not None:
            given.set()
        self._admit()

    def _admit(self) -> None:
        while self._returning and self.used < self._limit:
            self._give_first(self._returning)
        while self._queue and self.used < self._limit and (not self.used or self._may_start()):
            self._give_first(self._queue)

    def _give_first(self, line: dict[str, anyio.Event]) -> None:
        task = next(iter(line))
        self._held.add(task)
        line.pop(task).set()
