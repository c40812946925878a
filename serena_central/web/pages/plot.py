"""Computes the geometry of plots from numbers: points, bars, ticks and their labels, in the units of an SVG's view box.

Pure: knows no page. `_plot.html` draws what this computes.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

WIDTH, HEIGHT = 560, 150
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 22
"""Room for the labels of the axes around the drawing."""


class Series(NamedTuple):
    """A line or bars. `values` are at equal distances, None where there is no value."""

    name: str
    values: Sequence[float | None]
    kind: Literal["line", "bars"] = "line"


class Tick(msgspec.Struct, frozen=True):
    """A label on an axis, and where it is along it."""

    at: float
    label: str


class Mark(msgspec.Struct, frozen=True):
    """A bar (its place and size) or, with no height, a place to point at; `says` is shown then."""

    x: float
    y: float
    width: float
    height: float
    says: str


class Line(msgspec.Struct, frozen=True):
    """A drawn series. `number` is its colour; `paths` are its unbroken pieces, as an SVG path."""

    name: str
    number: int
    path: str
    bars: list[Mark]


class Plot(msgspec.Struct, frozen=True):
    """Everything that is drawn. `says` tells people who don't see it what it shows."""

    title: str
    unit: str
    says: str
    lines: list[Line]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    marks: list[Mark]
    empty: bool


def plot(
    title: str,
    unit: str,
    series: Sequence[Series],
    *,
    x_labels: Sequence[str],
    show: Callable[[float], str],
    says_of: Callable[[int], str],
) -> Plot:
    """`x_labels` stand at equal distances from the first value to the last; `says_of` tells of those at an index."""
    values = [value for one in series for value in one.values if value is not None]
    # Bars are counts: an axis that ended at 1 would have half a call on it.
    top = _nice(max([2.0 if series[0].kind == "bars" else 0.0, *values]))
    count = max(len(one.values) for one in series)
    step = (WIDTH - LEFT - RIGHT) / count

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top), 1)

    lines = [_line(one, number, step, y) for number, one in enumerate(series, 1)]
    newest = "; ".join(f"{one.name} {_last(one, show)}" for one in series)
    peak = show(max(values)) if values else "nothing yet"
    return Plot(
        title=title,
        unit=unit,
        says=f"{title} ({unit}): now {newest}; at most {peak}",
        lines=lines,
        y_ticks=[Tick(y(top * part / 2), show(top * part / 2)) for part in range(3)],
        x_ticks=[
            Tick(round(LEFT + (WIDTH - LEFT - RIGHT) * place / (len(x_labels) - 1), 1), label)
            for place, label in enumerate(x_labels)
        ],
        marks=[
            Mark(round(LEFT + index * step, 1), TOP, round(step, 1), HEIGHT - TOP - BOTTOM, says_of(index))
            for index in range(count)
            if any(one.values[index] for one in series)
        ],
        # Bars of no height can't be seen; a line along the axis can.
        empty=not any(values) if series[0].kind == "bars" else not values,
    )


def _line(series: Series, number: int, step: float, y: Callable[[float], float]) -> Line:
    if series.kind == "bars":
        bars = [
            Mark(round(LEFT + index * step + 0.5, 1), y(value), round(step - 1, 1), round(y(0) - y(value), 1), "")
            for index, value in enumerate(series.values)
            if value
        ]
        return Line(series.name, number, "", bars)
    pieces: list[str] = []
    drawing = False
    for index, value in enumerate(series.values):
        if value is None:
            drawing = False
            continue
        x = round(LEFT + (index + 0.5) * step, 1)
        # A lone point is drawn too, as a dash.
        pieces.append(f"L{x} {y(value)}" if drawing else f"M{round(x - 2, 1)} {y(value)}h4")
        drawing = True
    return Line(series.name, number, "".join(pieces), [])


def _last(series: Series, show: Callable[[float], str]) -> str:
    value = next((value for value in reversed(series.values) if value is not None), None)
    return "none" if value is None else show(value)


def _nice(most: float) -> float:
    """The smallest of 1, 2, 4, 6, 8, 10, 20 … that is not below `most`: where the axis ends, half of it being a short
    number, too."""
    if most <= 0:
        return 2.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(power * factor for factor in (1, 2, 4, 6, 8, 10) if power * factor >= most * 0.999)
