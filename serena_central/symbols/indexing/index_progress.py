"""The progress of an index: files read and pending, speed, and expected end."""

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import msgspec

from serena_central.core.progress import report

RATE_OVER_S = 20
"""The rate is that of the last seconds: what a server read first says little of what is left."""

TOLD_EVERY_S = 1.0


class IndexProgress(msgspec.Struct, frozen=True):
    """Files of which the symbols are known, and those that wait. `per_s`: how many were read in a second, lately."""

    indexed: int
    waiting: int
    per_s: float

    @property
    def total(self) -> int:
        return self.indexed + self.waiting

    @property
    def seconds_left(self) -> float | None:
        """None where nothing tells: nothing was read lately."""
        if not self.waiting:
            return 0.0
        return self.waiting / self.per_s if self.per_s else None

    def __str__(self) -> str:
        """Files done of all, how fast, and when it will be done, as far as that is known."""
        left = self.seconds_left
        then = f", {self.per_s:.0f} files/s, {left:.0f} s left" if left else ""
        return f"{self.indexed:,} of {self.total:,} files{then}"


class Rate:
    """Counts what happens, by seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: deque[tuple[int, int]] = deque(maxlen=RATE_OVER_S + 1)

    def count(self) -> None:
        second = int(self._clock())
        if self._counts and self._counts[-1][0] == second:
            self._counts[-1] = (second, self._counts[-1][1] + 1)
        else:
            self._counts.append((second, 1))

    @property
    def per_s(self) -> float:
        now = self._clock()
        recent = [(second, count) for second, count in self._counts if now - second <= RATE_OVER_S]
        return sum(count for _, count in recent) / max(now - recent[0][0], 1.0) if recent else 0.0


@asynccontextmanager
async def telling(total: int, left: Callable[[], int]) -> AsyncGenerator[None]:
    """Tells the current call every second how many of its files are read; never fewer than before."""

    async def tell() -> None:
        began, most = anyio.current_time(), 0
        while True:
            await anyio.sleep(TOLD_EVERY_S)
            most = max(most, total - left())
            per_s = most / (anyio.current_time() - began)
            then = f", {(total - most) / per_s:.0f} s left" if per_s else ""
            report(f"reading symbols: {most:,} of {total:,} files{then}", most / total)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        yield
        tasks.cancel_scope.cancel()
