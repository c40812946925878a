"""Counts the calls of the last hour by minute, for plots: number, failures, durations.

A ring of histograms in memory: a call costs a microsecond, and a minute without calls nothing. Durations
are accurate to 25 percent.
"""

from array import array
from bisect import bisect_left
from typing import NamedTuple

KEPT = 60
"""Minutes."""

_BOUNDS_MS = [0.05 * 1.25**step for step in range(68)]
"""Upper bounds of the duration buckets: 50 µs to three minutes."""


class Minute(NamedTuple):
    """One minute, which began at `at` (Unix seconds). Durations are None when no call ended in it."""

    at: float
    calls: int
    errors: int
    p50_ms: float | None
    p95_ms: float | None


class _Slot:
    __slots__ = ("calls", "counts", "errors", "minute")

    def __init__(self, minute: int) -> None:
        self.minute = minute
        self.calls = 0
        self.errors = 0
        self.counts = array("I", [0] * (len(_BOUNDS_MS) + 1))

    def percentile(self, percent: int) -> float | None:
        """The smallest bound that this percentage of the calls does not exceed."""
        if not self.calls:
            return None
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if seen * 100 >= self.calls * percent:
                return _BOUNDS_MS[min(index, len(_BOUNDS_MS) - 1)]
        raise AssertionError("every call was counted")


class Minutes:
    """The ring. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}

    def add(self, at: float, duration_ms: float, *, failed: bool) -> None:
        """A call ended."""
        minute = int(at // 60)
        slot = self._slots.get(minute % KEPT)
        if slot is None or slot.minute != minute:
            slot = self._slots[minute % KEPT] = _Slot(minute)
        slot.calls += 1
        slot.errors += failed
        slot.counts[bisect_left(_BOUNDS_MS, duration_ms)] += 1

    def last_hour(self, now: float) -> list[Minute]:
        """The last 60 minutes, the running one included, oldest first."""
        newest = int(now // 60)
        return [self._minute(minute) for minute in range(newest - KEPT + 1, newest + 1)]

    def _minute(self, minute: int) -> Minute:
        slot = self._slots.get(minute % KEPT)
        if slot is None or slot.minute != minute:
            return Minute(minute * 60.0, 0, 0, None, None)
        return Minute(minute * 60.0, slot.calls, slot.errors, slot.percentile(50), slot.percentile(95))
