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
from serena_central.core.rest import RESTING_S

logger = logging.getLogger(__name__)

TICK_S = 0.5

IDLE_TICK_S = RESTING_S
"""Between two ticks while no deadline counts on this clock: an idle server wakes up for little else. Pauses that are
shorter go unnoticed then: what is measured in such times takes minutes."""

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
        self._loop: asyncio.AbstractEventLoop | None = None
        """Which ticks; None before and after."""
        self._timer: asyncio.TimerHandle | None = None
        self._tick_s = TICK_S

    def __call__(self) -> float:
        return self._look() - self._paused_s

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Notices pauses until cancelled; before and after, it is the monotonic clock."""
        self._loop = asyncio.get_running_loop()
        self._seen_at = self._clock()
        self._tick()
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._loop = self._timer = None
            self._tick_s = TICK_S

    def _tick(self) -> None:
        """Looks, and does so again after a while."""
        # Not a task that sleeps: of all timers that are due after a pause, the loop calls the oldest first. So this one
        # puts off deadlines before they are met.
        self._look()
        if self._loop is not None:
            after_s = aligned(TICK_S if self._scopes else IDLE_TICK_S, self._loop.time())
            self._tick_s = TICK_S if self._scopes else after_s
            self._timer = self._loop.call_later(after_s, self._tick)

    def _count(self, scope: anyio.CancelScope) -> None:
        self._look()  # a pause before now puts off the deadlines of others
        self._scopes.add(scope)
        if self._timer is not None and self._tick_s > TICK_S:
            self._timer.cancel()
            self._tick()

    def counting(self, scope: anyio.CancelScope) -> "_Counting":
        """While the block runs, pauses put off the deadline of `scope`."""
        return _Counting(scope, self._count, self._scopes.discard)

    @contextmanager
    def move_on_after(self, seconds: float) -> Generator[anyio.CancelScope]:
        """As anyio's, by this clock."""
        with anyio.move_on_after(seconds) as scope, self.counting(scope):
            yield scope

    def _look(self) -> float:
        now = self._clock()
        late_s = now - self._seen_at - self._tick_s
        self._seen_at = now
        if self._loop is not None and late_s >= PAUSE_S:
            self._paused_s += late_s
            logger.warning("this process was suspended for %.1f s; timeouts are extended by as much", late_s)
            for scope in list(self._scopes):
                scope.deadline += late_s
        return now


class _Counting:
    __slots__ = ("_begin", "_end", "_scope")

    def __init__(
        self,
        scope: anyio.CancelScope,
        begin: Callable[[anyio.CancelScope], None],
        end: Callable[[anyio.CancelScope], None],
    ) -> None:
        self._scope = scope
        self._begin = begin
        self._end = end

    def __enter__(self) -> anyio.CancelScope:
        self._begin(self._scope)
        return self._scope

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end(self._scope)


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
