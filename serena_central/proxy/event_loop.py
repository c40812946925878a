"""Tasks over one selector: what asyncio would give, without the 40 ms and 7 MB that importing it costs.

A task is a coroutine that waits for a descriptor, a moment or an event. One thread runs all; nothing here knows HTTP,
pipes or MCP.
"""

import heapq
import itertools
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Coroutine, Generator
from typing import Any

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Cancelled(BaseException):
    """Raised where a task waits, to end it."""


class Wait:
    """Why a task sleeps: a descriptor, a deadline or an event, whichever comes first. Awaited once."""

    __slots__ = ("deadline", "events", "fd", "task")

    def __init__(self, deadline: float | None = None, fd: int | None = None, events: int = 0) -> None:
        self.deadline = deadline
        self.fd = fd
        self.events = events
        self.task: Task | None = None

    def __await__(self) -> Generator["Wait", Any, Any]:
        return (yield self)


class Task:
    """A coroutine that runs beside others, until it ends or is cancelled."""

    __slots__ = ("_loop", "coroutine", "done", "ended", "outcome", "wait")

    def __init__(self, loop: "Loop", coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self.coroutine = coroutine
        self.wait: Wait | None = None
        """What it sleeps on; None while it runs, or is about to."""
        self.outcome: tuple[Any, BaseException | None] = (None, None)
        """What its sleep returns or raises when it resumes."""
        self.done = False
        self.ended = loop.event()

    def cancel(self) -> None:
        """Ends the task at its wait, at the loop's next turn; it may clean up, and wait while doing so."""
        if not self.done:
            self._loop.resume(self, error=Cancelled())


class Event:
    """Set once or many times; waiting for one that is set returns at once."""

    __slots__ = ("_loop", "_waits", "is_set")

    def __init__(self, loop: "Loop") -> None:
        self._loop = loop
        self._waits: list[Wait] = []
        self.is_set = False

    def set(self) -> None:
        self.is_set = True
        waits, self._waits = self._waits, []
        for wait in waits:
            if wait.task is not None:
                self._loop.resume(wait.task)

    def clear(self) -> None:
        self.is_set = False

    async def wait(self, deadline: float | None = None) -> None:
        """Returns when it is set, or was set since; who is waited for may have cleared it again: look before you go on.

        Raises:
            TimeoutError: `deadline` (of the monotonic clock) passed first.
        """
        if self.is_set:
            return
        wait = Wait(deadline)
        self._waits.append(wait)
        try:
            await wait
        finally:
            if wait in self._waits:
                self._waits.remove(wait)


class Lock:
    """One holder at a time."""

    __slots__ = ("_freed", "held")

    def __init__(self, loop: "Loop") -> None:
        self.held = False
        self._freed = Event(loop)

    async def take(self) -> None:
        while self.held:
            self._freed.clear()
            await self._freed.wait()
        self.held = True

    def give_back(self) -> None:
        self.held = False
        self._freed.set()

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.give_back()


class Loop:
    """Runs tasks. Belongs to one thread; `wake` alone may be called from others, and from signal handlers."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._ready: deque[Task] = deque()
        self._timers: list[tuple[float, int, Wait]] = []
        self._count = itertools.count()
        self._tasks: set[Task] = set()
        self.waking, self._waker = socket.socketpair()
        self.waking.setblocking(False)
        self._waker.setblocking(False)

    @property
    def wake_descriptor(self) -> int:
        """For `signal.set_wakeup_fd`: what is written there can be read from `waking`."""
        return self._waker.fileno()

    def wake(self, mark: bytes) -> None:
        """Lets whoever waits for `waking` read `mark`; a loop that has ended is left alone."""
        try:
            self._waker.send(mark)
        except OSError:
            return

    def event(self) -> Event:
        return Event(self)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Task:
        """Starts a task; it runs at once up to its first wait. Its failure is reported, and ends nothing else."""
        task = Task(self, coroutine)
        self._tasks.add(task)
        self._step(task)
        return task

    async def sleep(self, seconds: float) -> None:
        try:
            await Wait(time.monotonic() + seconds)
        except TimeoutError:
            return

    async def ready(self, fd: int, events: int, deadline: float | None = None) -> int:
        """Waits until `fd` can be read or written; which of the two. One wait for a descriptor at a time.

        Raises:
            TimeoutError: `deadline` (of the monotonic clock) has passed.
        """
        return await Wait(deadline, fd, events)

    def resume(self, task: Task, value: Any = None, error: BaseException | None = None) -> None:
        """Resumes a sleeping task. Of several reasons the first counts, unless a later one cancels."""
        wait = task.wait
        if wait is not None:
            task.wait = wait.task = None
            if wait.fd is not None:
                self._selector.unregister(wait.fd)
            task.outcome = (value, error)
            self._ready.append(task)
        elif isinstance(error, Cancelled):
            task.outcome = (None, error)

    def run(self, main: Coroutine[Any, Any, Any]) -> None:
        """Runs until `main` ends, then ends all other tasks."""
        first = self.spawn(main)
        while not first.done:
            self._turn()
        for task in list(self._tasks):
            task.coroutine.close()
        self._selector.close()
        self.waking.close()
        self._waker.close()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._patience()):
            self.resume(key.data, events)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            wait = heapq.heappop(self._timers)[2]
            if wait.task is not None:
                self.resume(wait.task, error=TimeoutError())
        for _ in range(len(self._ready)):
            self._step(self._ready.popleft())

    def _patience(self) -> float | None:
        if self._ready:
            return 0
        while self._timers and self._timers[0][2].task is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _step(self, task: Task) -> None:
        """Runs a task up to its next wait."""
        (value, error), task.outcome = task.outcome, (None, None)
        try:
            wait = task.coroutine.throw(error) if error is not None else task.coroutine.send(value)
        except (StopIteration, Cancelled):
            self._end(task)
        except Exception:  # noqa: BLE001 (the border of a task)
            import traceback  # never needed, one hopes

            traceback.print_exc(file=sys.stderr)
            self._end(task)
        else:
            self._park(task, wait)

    def _park(self, task: Task, wait: Wait) -> None:
        task.wait, wait.task = wait, task
        if wait.fd is not None:
            self._selector.register(wait.fd, wait.events, task)
        if wait.deadline is not None:
            heapq.heappush(self._timers, (wait.deadline, next(self._count), wait))
        if task.outcome[1] is not None:  # cancelled by what it did itself in its last step
            self.resume(task, error=task.outcome[1])

    def _end(self, task: Task) -> None:
        task.done = True
        self._tasks.discard(task)
        task.ended.set()
