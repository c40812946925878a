"""Detects a flood: more events than anybody can follow, for longer than a burst. It knows only their number."""

import time
from collections.abc import Callable


class Flood:
    """True while more than `per_s` come and those beyond it are more than `burst`. However long a flood was, it is over
    `burst / per_s` seconds after its last."""

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._level = 0.0
        """Of a bucket that what comes fills and that runs out at `per_s`, as it was at `_at`."""
        self._at = clock()

    def add(self) -> None:
        """One more has come."""
        now = self._clock()
        self._level = min(self._level_at(now) + 1, 2 * self._burst)
        self._at = now

    def __bool__(self) -> bool:
        return self._level_at(self._clock()) > self._burst

    def _level_at(self, now: float) -> float:
        return max(0.0, self._level - (now - self._at) * self._per_s)
