"""Formats times for people, and the wall clock for records."""

import sys
import time
from collections.abc import Callable


def utc(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _since_boot() -> float:
    """Goes on while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


class Uptime:
    """Seconds since it was made, however the clock on the wall is set meanwhile."""

    def __init__(self) -> None:
        self._began = _since_boot()

    def __call__(self) -> float:
        return _since_boot() - self._began


class UnhurriedClock:
    """Unix time that is never ahead of what has passed since it was made: by a clock that was set forward, all that is
    kept for some days would be too old at once."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead_s = wall() - steady()

    def __call__(self) -> float:
        return min(self._wall(), self._steady() + self._ahead_s)
