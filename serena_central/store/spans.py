"""The spans of time that calls and memory are totalled in: the longer the range that is asked for, the coarser.

So an hour and a month cost about the same to read. Pure: knows no SQL.
"""

import math
from typing import NamedTuple

SPANS_S = (60, 900, 3600, 21_600, 86_400)
"""A minute, a quarter of an hour, an hour, a quarter of a day, a day (UTC): each a multiple of the one before."""

MINUTES_KEPT_S = 2 * 86_400.0
"""Totals of minutes are deleted when this old; the others live as long as calls do."""

_LONGEST_S = (3 * 3600.0, 12 * 3600.0, 3 * 86_400.0)
"""Of a range that is read in minutes, in quarters of an hour, and in hours."""

MOST_BINS = 48
"""Of a plot: so many bars can be told from each other, and pointed at; a page has four plots, within its 50 KB."""

BINS_S = (60, 120, 300, 600, 900, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)
"""Round lengths of bins: those from a span's own on are multiples of it."""


def totals_kept_since(before: float, now: float) -> dict[int, float]:
    """Span → from when on its totals are kept, where calls are since `before`."""
    return {span: max(before - span, now - MINUTES_KEPT_S if span == SPANS_S[0] else 0.0) for span in SPANS_S}


class TimeRange(NamedTuple):
    """From `since` to `until` (Unix seconds), read by totals of `span_s` seconds and shown in bins of `bin_s`.

    Totals and bins are whole: the first one holds `since`.
    """

    since: float
    until: float
    span_s: int
    bin_s: int

    @property
    def start(self) -> int:
        """Where the first bin begins."""
        return math.floor(self.since / self.bin_s) * self.bin_s

    def stretches(self) -> list[tuple[int, int, int]]:
        """Spans in seconds, from and to where totals of them together are those of the range: the longest that fit, so
        that few are read. They cover the same whole spans of `span_s` as the bins."""
        start = math.floor(self.since / self.span_s) * self.span_s
        return _covered(start, math.ceil(self.until / self.span_s) * self.span_s, self.span_s, len(SPANS_S) - 1)

    def bins(self) -> list[int]:
        """Where each bin begins."""
        return list(range(self.start, math.ceil(self.until / self.bin_s) * self.bin_s, self.bin_s))


def _covered(start: int, end: int, finest_s: int, level: int) -> list[tuple[int, int, int]]:
    """From `start` to `end`, which are multiples of `finest_s`, in spans of this level and below."""
    span = SPANS_S[level]
    if start >= end:
        return []
    if span == finest_s:
        return [(span, start, end)]
    first, last = -(-start // span) * span, end // span * span
    if first >= last:
        return _covered(start, end, finest_s, level - 1)
    edges = (_covered(start, first, finest_s, level - 1), _covered(last, end, finest_s, level - 1))
    return [*edges[0], (span, first, last), *edges[1]]


def time_range(since: float, until: float, now: float) -> TimeRange:
    """The range with the finest totals that are kept of it and quickly read."""
    length = until - since
    finest = sum(length > longest for longest in _LONGEST_S)
    span = SPANS_S[finest if since >= now - MINUTES_KEPT_S else max(finest, 1)]
    fitting = (one for one in BINS_S if one >= span and length / one <= MOST_BINS)
    return TimeRange(since, until, span, next(fitting, BINS_S[-1]))
