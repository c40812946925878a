"""Paging and filters for long tables, all in the query string. Knows no page."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from serena_central.web.pages.page import Visit, link

ROWS = 50
"""Of a table on one page."""

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


def options(values: Sequence[str], chosen: str, *, shown: Callable[[str], str] = str) -> list[Option]:
    """The choices, "no matter" first; what was chosen is among them also when nothing has that value any more."""
    known = values if not chosen or chosen in values else [*values, chosen]
    return [Option("", "any", not chosen), *(Option(value, shown(value), value == chosen) for value in known)]


def paged(found: Sequence[Row], visit: Visit, path: str) -> tuple[Sequence[Row], Pager]:
    """The rows of the page that the query's `page` (from 1) names, or of the last one that there is."""
    last_page = max(1, -(-len(found) // ROWS))
    page = min(_number(visit.query.get("page", "")), last_page)
    rows = found[(page - 1) * ROWS : page * ROWS]

    def to(number: int) -> str:
        return link(path, **{**visit.query, "page": number}) if 1 <= number <= last_page else ""

    first = (page - 1) * ROWS
    return rows, Pager(min(first + 1, len(found)), first + len(rows), len(found), to(page - 1), to(page + 1))


def has_words(words: str, *texts: str) -> bool:
    """Whether all of these words stand in these texts, without regard to case."""
    text = "\n".join(texts).lower()
    return all(word in text for word in words.lower().split())


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else 1
