"""Filters, order and pages of tables, all in the query string. Knows no page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from serena_central.web.pages.page import Visit, link

ROWS = 50
"""Of a table on one page."""

AFTER = "after"
"""What a query calls the place behind which a page of a long list begins (long_lists.py)."""

Row = TypeVar("Row")


class Option(msgspec.Struct, frozen=True):
    """A choice of a filter."""

    value: str
    label: str
    chosen: bool


class Pager(msgspec.Struct, frozen=True):
    """Which rows are shown: `first` to `last` (from 1) of `matching`. `before` and `after` lead on, "" for nowhere."""

    first: int
    last: int
    matching: int
    before: str
    after: str


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table. `key` returns what rows are sorted by, None for a column that they can't be sorted by;
    `css` are classes of its heading. Where they name it a `number`, the greatest come first when it is chosen."""

    title: str
    key: Callable[[Row], Any] | None = None
    css: str = ""


class Heading(msgspec.Struct, frozen=True):
    """The heading of a column. `order` is `ascending`, `descending` or `none`; `url` sorts by it, or reverses the
    order, "" where rows can't be sorted by it. `id` is the link's."""

    id: str
    title: str
    css: str
    order: str
    url: str


class Columns(Generic[Row]):
    """The columns of a table by their names in the query, where a `-` in front reverses the order."""

    def __init__(
        self,
        columns: Mapping[str, Column[Row]],
        *,
        default: str = "",
        parameter: str = "sort",
        keeps: Sequence[str] | None = None,
    ) -> None:
        """`default` is the order without a query, "" for the one in which rows come; `parameter` is its name in the
        query: tables beside each other differ. `keeps` names what else of the query stays when the order changes:
        without it all but which rows are shown."""
        self._keeps = keeps
        self._columns = columns
        self._default = default
        self._parameter = parameter

    def arranged(self, rows: Iterable[Row], visit: Visit) -> list[Row]:
        """The rows in the order that the query asks for; equal ones stay in the order in which they come."""
        arranged = list(rows)
        name, falling = self._chosen(visit)
        if name and (key := self._columns[name].key):
            arranged.sort(key=key, reverse=falling)
        return arranged

    def order(self, visit: Visit) -> tuple[str, Callable[[Row], Any] | None, bool]:
        """The column that rows are sorted by and its key, "" and None for the order in which they come; and whether it
        is reversed."""
        name, falling = self._chosen(visit)
        return name, self._columns[name].key if name else None, falling

    def sorts_by(self, visit: Visit, *names: str) -> bool:
        """Whether the query sorts by one of these columns."""
        return self._chosen(visit)[0] in names

    def headings(self, visit: Visit, path: str, *, of: str = "") -> list[Heading]:
        """For the page at `path`, whose rows begin with the first again. `of` tells tables that are sorted together
        from each other."""
        names = [name for name in visit.query if not _is_place(name)] if self._keeps is None else self._keeps
        kept = {name: visit.query[name] for name in names if name in visit.query and name != self._parameter}
        chosen, falling = self._chosen(visit)
        return [
            Heading(
                id="-".join(filter(None, (self._parameter, of, name))),
                title=column.title,
                css=column.css,
                order=("descending" if falling else "ascending") if name == chosen else "none",
                url=link(path, **kept, **{self._parameter: self._next(name, chosen, falling=falling)})
                if column.key
                else "",
            )
            for name, column in self._columns.items()
        ]

    def _chosen(self, visit: Visit) -> tuple[str, bool]:
        """The column, "" for none, and whether the order is reversed."""
        for asked in (visit.query.get(self._parameter, ""), self._default):
            name = asked.removeprefix("-")
            if name in self._columns and self._columns[name].key:
                return name, asked != name
        return "", False

    def _next(self, name: str, chosen: str, *, falling: bool) -> str:
        greatest_first = not falling if name == chosen else "number" in self._columns[name].css.split()
        return f"-{name}" if greatest_first else name


def _is_place(name: str) -> bool:
    """Whether this part of a query says which rows of a list are shown."""
    return name in ("page", "before", AFTER, "from") or name.endswith("-page")


def options(values: Sequence[str], chosen: str, *, shown: Callable[[str], str] = str) -> list[Option]:
    """The choices, "no matter" first; what was chosen is among them also when nothing has that value any more."""
    known = values if not chosen or chosen in values else [*values, chosen]
    return [Option("", "any", not chosen), *(Option(value, shown(value), value == chosen) for value in known)]


def paged(
    found: Sequence[Row], visit: Visit, path: str, *, size: int = ROWS, parameter: str = "page"
) -> tuple[Sequence[Row], Pager]:
    """The rows of the page that the query's `parameter` (from 1) names, or of the last one that there is; `size` is the
    number of rows on one page. Links leave out the place in a long list, which may be as long as a path."""
    last_page = max(1, -(-len(found) // size))
    page = min(_number(visit.query.get(parameter, "")), last_page)
    rows = found[(page - 1) * size : page * size]

    def to(number: int) -> str:
        return link(path, **{**visit.query, AFTER: "", parameter: number}) if 1 <= number <= last_page else ""

    first = (page - 1) * size
    return rows, Pager(min(first + 1, len(found)), first + len(rows), len(found), to(page - 1), to(page + 1))


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else 1
