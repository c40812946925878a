"""The geometry of plots."""

from serena_central.web.pages.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, Mark, Plot, Series, Tick, plot


def drawn(*series: Series) -> Plot:
    return plot("Calls", "per minute", series, x_labels=["then", "now"], show=lambda v: f"{v:g}", says_of=str)


def test_bars_and_lines_are_drawn_in_their_box() -> None:
    half = (WIDTH - LEFT - RIGHT) / 2
    floor = float(HEIGHT - BOTTOM)
    assert drawn(Series("calls", [4, None], "bars"), Series("p50", [2, 3])) == Plot(
        title="Calls",
        unit="per minute",
        says="Calls (per minute): now calls 4; p50 3; at most 4",
        lines=[
            Line("calls", 1, "", [Mark(LEFT + 0.5, 10.0, half - 1, 118.0, "")]),
            Line("p50", 2, "M175.0 69.0h4L427.0 39.5", []),
        ],
        y_ticks=[Tick(floor, "0"), Tick(69.0, "2"), Tick(float(TOP), "4")],
        x_ticks=[Tick(float(LEFT), "then"), Tick(float(WIDTH - RIGHT), "now")],
        marks=[
            Mark(float(LEFT), TOP, half, HEIGHT - TOP - BOTTOM, "0"),
            Mark(LEFT + half, TOP, half, HEIGHT - TOP - BOTTOM, "1"),
        ],
        empty=False,
    )


def test_a_line_is_broken_where_there_is_no_value() -> None:
    assert drawn(Series("p50", [1, None, 1, 1])).lines[0].path.count("M") == 2


def test_nothing_yet_is_said() -> None:
    empty = drawn(Series("calls", [0, 0], "bars"))
    assert empty.empty
    assert empty.says == "Calls (per minute): now calls 0; at most 0"
    assert drawn(Series("p50", [None])).says == "Calls (per minute): now p50 none; at most nothing yet"


def test_the_axis_ends_at_a_round_number() -> None:
    for most, top in ((0.3, "0.4"), (1, "1"), (1.1, "2"), (7, "8"), (23, "40"), (180, "200"), (999, "1000")):
        assert drawn(Series("x", [most])).y_ticks[-1].label == top
