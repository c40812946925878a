"""The order of tables, by their headings."""

import re
from typing import Any

import pytest

from serena_central.web.pages.listing import Column, Columns, paged
from serena_central.web.pages.page import Visit

ROWS = [("b", 1), ("a", 3), ("c", 3), ("d", 2)]
COLUMNS = Columns[tuple[str, int]](
    {
        "name": Column("Name", lambda one: one[0]),
        "size": Column("Size", lambda one: one[1], "number minor"),
        "what": Column("What"),
    },
)


def visit(**query: str) -> Visit:
    nothing: Any = None
    return Visit(nothing, {}, query, 0.0)


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", "bacd"),
        ("name", "abcd"),
        ("-name", "dcba"),
        ("size", "bdac"),
        ("-size", "acdb"),
        ("what", "bacd"),
        ("nonsense", "bacd"),
        ("--name", "bacd"),
    ],
)
def test_rows_are_ordered_by_a_column_and_equal_ones_stay_as_they_come(sort: str, names: str) -> None:
    assert "".join(name for name, _ in COLUMNS.arranged(ROWS, visit(sort=sort))) == names


def test_a_heading_sorts_the_greatest_numbers_first_and_reverses_when_chosen_again() -> None:
    def links(**query: str) -> list[tuple[str, str]]:
        return [(one.order, one.url) for one in COLUMNS.headings(visit(**query), "/x")]

    base = "/dashboard/x?q=w&sort="
    elsewhere = {"page": "7", "before": "3", "others-page": "2"}
    assert links(q="w", **elsewhere) == [("none", f"{base}name"), ("none", f"{base}-size"), ("none", "")]
    assert links(q="w", sort="name")[0] == ("ascending", f"{base}-name")
    assert links(q="w", sort="-name")[0] == ("descending", f"{base}name")
    assert links(q="w", sort="-size")[1] == ("descending", f"{base}size")


def test_two_tables_of_a_page_are_sorted_and_paged_by_themselves() -> None:
    other = Columns[int]({"n": Column("N", lambda one: one)}, default="n", parameter="others")
    asked = visit(sort="-name", others="-n", **{"others-page": "2"})
    assert [name for name, _ in COLUMNS.arranged(ROWS, asked)] == ["d", "c", "b", "a"]
    rows, pager = paged(other.arranged(range(5), asked), asked, "/x", size=2, parameter="others-page")
    assert rows == [2, 1]
    assert (pager.first, pager.last, pager.matching) == (3, 4, 5)
    assert re.search(r"sort=-name.*others-page=3", pager.after)
    assert other.headings(visit(), "/x")[0].order == "ascending"
