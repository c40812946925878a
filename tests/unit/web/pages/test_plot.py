"""The geometry of plots over time."""

from collections.abc import Sequence

from serena_central.web.pages.plot import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Line,
    Mark,
    Plot,
    Series,
    Tick,
    Timeline,
    plot,
)
from serena_central.web.pages.rendering import count, milliseconds, size

AT = 1_790_000_040.0
"""14:14 on 2026-09-21 in UTC."""

MINUTE_S = 60.0


def drawn(*series: Series, times: Sequence[float] | None = None, until: float | None = None) -> Plot:
    """Values of as many minutes."""
    times = times if times is not None else [AT + number * MINUTE_S for number in range(len(series[0].values))]
    axis = Timeline(AT, until or AT + len(times) * MINUTE_S, times, MINUTE_S)
    return plot("Calls", "per minute", series, axis, show=lambda value: f"{value:g}", says_of=str)


def test_bars_and_lines_are_drawn_in_their_box() -> None:
    half = (WIDTH - LEFT - RIGHT) / 2
    floor = float(HEIGHT - BOTTOM)
    shown = drawn(Series("calls", [4, None], "bars"), Series("p50", [2, 3]))
    assert shown == Plot(
        title="Calls",
        unit="per minute",
        says="Calls (per minute): newest calls 4; p50 3; at most 4",
        lines=[
            Line("calls", 1, "", [Mark(LEFT + 0.5, 10.0, half - 1, 118.0)]),
            Line("p50", 2, "M175.0 69.0h4L427.0 39.5", []),
        ],
        y_ticks=[Tick(floor, "0"), Tick(69.0, "2"), Tick(float(TOP), "4")],
        x_ticks=shown.x_ticks,
        marks=[
            Mark(float(LEFT), TOP, half, HEIGHT - TOP - BOTTOM, AT, "14:14 UTC", "0"),
            Mark(LEFT + half, TOP, half, HEIGHT - TOP - BOTTOM, AT + MINUTE_S, "14:15 UTC", "1"),
        ],
        form="minute",
        since=AT,
        until=AT + 2 * MINUTE_S,
        empty=False,
    )
    assert [(tick.label, tick.anchor) for tick in shown.x_ticks] == [
        ("14:14:00 UTC", "first"),
        ("14:14:30 UTC", ""),
        ("14:15:00 UTC", ""),
        ("14:15:30 UTC", ""),
        ("14:16:00 UTC", "last"),
    ]


def test_a_line_is_broken_where_there_is_no_value() -> None:
    assert drawn(Series("p50", [1, None, 1, 1])).lines[0].path.count("M") == 2


def test_time_without_measurements_is_as_long_as_any_other_and_has_no_line() -> None:
    times = [AT, AT + MINUTE_S, AT + 6 * MINUTE_S]
    shown = drawn(Series("memory", [1, 1, 1]), times=times, until=AT + 10 * MINUTE_S)
    assert shown.lines[0].path == "M75.0 10.0h4L127.0 10.0M375.0 10.0h4"
    assert [mark.x for mark in shown.marks] == [52.0, 102.0, 352.0]


def test_what_lies_before_the_axis_is_not_drawn() -> None:
    shown = drawn(Series("calls", [5, 5], "bars"), times=[AT - 600, AT], until=AT + 600)
    assert [bar.x for bar in shown.lines[0].bars] == [52.5]
    assert [mark.time for mark in shown.marks] == [AT]
    assert drawn(Series("p50", [5, 5]), times=[AT - 600, AT], until=AT + 600).lines[0].path.count("M") == 1


def test_ticks_stand_at_round_moments_and_say_no_more_than_tells_them_apart() -> None:
    day_s = 86_400.0
    for span_s, labels in {
        3600.0: ["14:20 UTC", "14:30 UTC", "14:40 UTC", "14:50 UTC", "15:00 UTC", "15:10 UTC"],
        day_s: ["18:00 UTC", "00:00 UTC", "06:00 UTC", "12:00 UTC"],
        2 * day_s: ["Sep 22, 00:00 UTC", "Sep 22, 12:00 UTC", "Sep 23, 00:00 UTC", "Sep 23, 12:00 UTC"],
        30 * day_s: ["Sep 24", "Oct 01", "Oct 08", "Oct 15"],
    }.items():
        shown = drawn(Series("calls", [1], "bars"), until=AT + span_s)
        assert [tick.label for tick in shown.x_ticks][: len(labels)] == labels
        assert len(shown.x_ticks) <= 7


def test_nothing_yet_is_said() -> None:
    empty = drawn(Series("calls", [0, 0], "bars"))
    assert empty.empty
    assert empty.says == "Calls (per minute): newest calls 0; at most 0"
    assert drawn(Series("p50", [None])).says == "Calls (per minute): newest p50 none; at most nothing yet"
    assert drawn(Series("p50", []), until=AT + MINUTE_S).empty


def test_the_axis_ends_at_a_round_number() -> None:
    for most, top in ((0.3, "0.4"), (1, "1"), (1.1, "2"), (7, "8"), (23, "40"), (180, "200"), (999, "1000")):
        assert drawn(Series("x", [most])).y_ticks[-1].label == top


def test_axes_are_labelled_in_units_that_people_read() -> None:
    axis = Timeline(AT, AT + MINUTE_S, [AT], MINUTE_S)
    for most, show, kilo, labels in (
        (1900, milliseconds, 1000, ["0 ms", "1 s", "2 s"]),
        (70_000, milliseconds, 1000, ["0 ms", "40 s", "1 min 20 s"]),
        (1_500_000, count, 1000, ["0", "1 M", "2 M"]),
        (700 << 20, size, 1024, ["0 B", "400 MiB", "800 MiB"]),
        (5 << 30, size, 1024, ["0 B", "3 GiB", "6 GiB"]),
    ):
        shown = plot("x", "", [Series("x", [most])], axis, show=show, says_of=str, kilo=kilo)
        assert [tick.label for tick in shown.y_ticks] == labels
