"""Computes the geometry of plots over time from numbers: points, bars, ticks and their labels, in the units of an SVG's
view box.

Pure: knows no page. `_plot.html` draws what this computes.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

WIDTH, HEIGHT = 560, 150
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 22
"""Room for the labels of the axes around the drawing."""

GAP_STEPS = 3
"""A line is broken where the next value begins more than so many steps later: nothing was measured in between."""

TICKS = 6
"""On the axis of time, at most."""

TICK_STEPS_S = (
    *(1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(day * 86_400 for day in (1, 2, 7, 14, 30, 60, 120, 365)),
)

EDGE = 24
"""A label closer to the end of the axis than this would stick out beyond it."""

Form = Literal["second", "minute", "stamp", "day"]
"""How a moment is written: with its seconds, to the minute, with its day and minute, or its day alone."""

_FORMATS: dict[Form, str] = {
    "second": "%H:%M:%S UTC",
    "minute": "%H:%M UTC",
    "stamp": "%b %d, %H:%M UTC",
    "day": "%b %d",
}


class Series(NamedTuple):
    """A line or bars. `values` are of the plot's times, None where there is no value."""

    name: str
    values: Sequence[float | None]
    kind: Literal["line", "bars"] = "line"


class Timeline(NamedTuple):
    """The axis of time: from `since` to `until` (Unix seconds). The value at an index is of the `step_s` seconds from
    its time on."""

    since: float
    until: float
    times: Sequence[float]
    step_s: float

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - self.since) / (self.until - self.since)

    def shows(self, at: float) -> bool:
        """Whether anything of the value from this time on is on the axis."""
        return self.since < at + self.step_s and at < self.until

    def form(self, step_s: float) -> Form:
        """How moments that are `step_s` apart are told from each other."""
        if step_s >= 86_400:
            return "day"
        if self.until - self.since > 86_400:
            return "stamp"
        return "second" if step_s < 60 else "minute"


class Tick(msgspec.Struct, frozen=True):
    """A label on an axis, and where it is along it. `time` is the Unix time that it tells, None on the other axis."""

    at: float
    label: str
    time: float | None = None
    form: str = ""
    anchor: str = ""


class Mark(msgspec.Struct, frozen=True):
    """A bar (its place and size) or, with no height, a place to point at: `time` (Unix) as `label`, and `says`."""

    x: float
    y: float
    width: float
    height: float
    time: float = 0.0
    label: str = ""
    says: str = ""


class Line(msgspec.Struct, frozen=True):
    """A drawn series. `number` is its colour; `path` are its unbroken pieces, as an SVG path."""

    name: str
    number: int
    path: str
    bars: list[Mark]


class Plot(msgspec.Struct, frozen=True):
    """Everything that is drawn. `says` tells people who don't see it what it shows; `form` is how marks write times.

    `since` and `until` are the ends of the axis (Unix seconds), for who drags over a part of it to zoom in.
    """

    title: str
    unit: str
    says: str
    lines: list[Line]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    marks: list[Mark]
    form: str
    since: float
    until: float
    empty: bool


def plot(
    title: str,
    unit: str,
    series: Sequence[Series],
    axis: Timeline,
    *,
    show: Callable[[float], str],
    says_of: Callable[[int], str],
    kilo: int = 1000,
) -> Plot:
    """`says_of` tells of the values at an index, without their time. Values grow to the next unit by `kilo`."""
    values = [value for one in series for value in one.values if value is not None]
    # Bars are counts: an axis that ended at 1 would have half a call on it.
    top = _nice(max([2.0 if series[0].kind == "bars" else 0.0, *values]), kilo)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top), 1)

    newest = "; ".join(f"{one.name} {_last(one, show)}" for one in series)
    peak = show(max(values)) if values else "nothing yet"
    form = axis.form(axis.step_s)
    return Plot(
        title=title,
        unit=unit,
        says=f"{title}{f' ({unit})' if unit else ''}: newest {newest}; at most {peak}",
        lines=[_line(one, number, axis, y) for number, one in enumerate(series, 1)],
        y_ticks=[Tick(y(top * part / 2), show(top * part / 2)) for part in range(3)],
        x_ticks=_time_ticks(axis),
        marks=[
            _mark(axis, index, form, says_of(index))
            for index, at in enumerate(axis.times)
            if axis.shows(at) and any(one.values[index] for one in series)
        ],
        form=form,
        since=axis.since,
        until=axis.until,
        # Bars of no height can't be seen; a line along the axis can.
        empty=not any(values) if series[0].kind == "bars" else not values,
    )


def written(at: float, form: Form) -> str:
    """A moment in UTC, for people."""
    return time.strftime(_FORMATS[form], time.gmtime(at))


def _mark(axis: Timeline, index: int, form: Form, says: str) -> Mark:
    at = axis.times[index]
    left, right = max(LEFT, axis.x(at)), min(WIDTH - RIGHT, axis.x(at + axis.step_s))
    width = round(max(1.0, right - left), 1)
    return Mark(round(left, 1), TOP, width, HEIGHT - TOP - BOTTOM, at, written(at, form), says)


def _line(series: Series, number: int, axis: Timeline, y: Callable[[float], float]) -> Line:
    if series.kind == "bars":
        return Line(series.name, number, "", _bars(series, axis, y))
    pieces: list[str] = []
    before: float | None = None
    for at, value in zip(axis.times, series.values, strict=True):
        middle = at + axis.step_s / 2
        if value is None or not axis.since <= middle <= axis.until:
            before = None
            continue
        x = round(axis.x(middle), 1)
        drawing = before is not None and at - before <= GAP_STEPS * axis.step_s
        # A lone point is drawn too, as a dash.
        pieces.append(f"L{x} {y(value)}" if drawing else f"M{round(x - 2, 1)} {y(value)}h4")
        before = at
    return Line(series.name, number, "".join(pieces), [])


def _bars(series: Series, axis: Timeline, y: Callable[[float], float]) -> list[Mark]:
    bars: list[Mark] = []
    for at, value in zip(axis.times, series.values, strict=True):
        if value and axis.shows(at):
            left, right = max(LEFT, axis.x(at)), min(WIDTH - RIGHT, axis.x(at + axis.step_s))
            between = min(0.5, (right - left) / 4)
            width = round(max(0.5, right - left - 2 * between), 1)
            bars.append(Mark(round(left + between, 1), y(value), width, round(y(0) - y(value), 1)))
    return bars


def _time_ticks(axis: Timeline) -> list[Tick]:
    """At round moments (UTC), as many as have room."""
    span = axis.until - axis.since
    step = next((step for step in TICK_STEPS_S if span / step <= TICKS), span)
    form = axis.form(step)
    ticks: list[Tick] = []
    for number in range(math.ceil(axis.since / step), math.floor(axis.until / step) + 1):
        x, at = round(axis.x(number * step), 1), float(number * step)
        anchor = "first" if x < LEFT + EDGE else "last" if x > WIDTH - RIGHT - EDGE else ""
        ticks.append(Tick(x, written(at, form), at, form, anchor))
    return ticks


def _last(series: Series, show: Callable[[float], str]) -> str:
    value = next((value for value in reversed(series.values) if value is not None), None)
    return "none" if value is None else show(value)


def _nice(most: float, kilo: int) -> float:
    """The smallest of 1, 2, 4, 6, 8, 10, 20 … of its unit that is not below `most`: where the axis ends, half of it
    being a short number, too."""
    if most <= 0:
        return 2.0
    unit = 1.0
    while most >= kilo * unit and kilo != 1000:
        unit *= kilo
    power = unit * 10.0 ** math.floor(math.log10(most / unit))
    return next(power * factor for factor in (1, 2, 4, 6, 8, 10) if power * factor >= most * 0.999)
