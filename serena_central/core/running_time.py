"""A clock that stands still while this process is stopped, and deadlines by it.

A process can be stopped for a minute (SIGSTOP, a frozen container, a debugger, a machine that swaps or sleeps). It
saw nothing of what others did meanwhile, so that none of them may count as dead, idle or hung because of that minute.
And the wall clock can be set, by hours. Intervals are measured by `running_time`; `Steps` corrects what was noted by
the wall clock.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType

import anyio
from anyio.abc import TaskStatus

from serena_central.core.periodic import aligned

logger = logging.getLogger(__name__)

TICK_S = 0.5

PAUSE_S = 2.0
"""A tick that comes so much too late shows a pause. A busy event loop is some 0.1 s late."""

STEP_S = 2.0
"""The clock on the wall was set if it is so far from where it should be; NTP moves it by less, and slowly."""


class RunningTime:
    """Seconds, never going back, that stand still while the process does. Belongs to the event loop's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen_at = clock()
        self._paused_s = 0.0
        self._scopes: set[anyio.CancelScope] = set()
        self._ticks = False

    def __call__(self) -> float:
        return self._look() - self._paused_s

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Notices pauses until cancelled; before and after, it is the monotonic clock."""
        # Not a task that sleeps: of all timers that are due after a pause, the loop calls the oldest first. So this one
        # puts off deadlines before they are met.
        loop = asyncio.get_running_loop()

        def tick() -> None:
            nonlocal timer
            self._look()
            timer = loop.call_later(aligned(TICK_S, loop.time()), tick)

        self._seen_at, self._ticks = self._clock(), True
        timer = loop.call_later(aligned(TICK_S), tick)
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            timer.cancel()
            self._ticks = False

    def counting(self, scope: anyio.CancelScope) -> "_Counting":
        """While the block runs, pauses put off the deadline of `scope`."""
        return _Counting(self._scopes, scope)

    @contextmanager
    def move_on_after(self, seconds: float) -> Generator[anyio.CancelScope]:
        """As anyio's, by this clock."""
        with anyio.move_on_after(seconds) as scope, self.counting(scope):
            yield scope

    def _look(self) -> float:
        now = self._clock()
        late_s = now - self._seen_at - TICK_S
        self._seen_at = now
        if self._ticks and late_s >= PAUSE_S:
            self._paused_s += late_s
            logger.warning("this process was suspended for %.1f s; timeouts are extended by as much", late_s)
            for scope in list(self._scopes):
                scope.deadline += late_s
        return now


class _Counting:
    __slots__ = ("_scope", "_scopes")

    def __init__(self, scopes: set[anyio.CancelScope], scope: anyio.CancelScope) -> None:
        self._scopes = scopes
        self._scope = scope

    def __enter__(self) -> anyio.CancelScope:
        self._scopes.add(self._scope)
        return self._scope

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._scopes.discard(self._scope)


running_time = RunningTime()
"""Of this process."""


class Steps:
    """Notices when the clock on the wall was set, and counts pauses as such: what was noted by it is off by that."""

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float]) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = wall() - steady()

    def taken(self) -> float:
        """By how many seconds the clock was set forward since this was last asked; 0.0 nearly always."""
        offset = self._wall() - self._steady()
        step = offset - self._offset
        if abs(step) < STEP_S:
            return 0.0
        self._offset = offset
        return step
