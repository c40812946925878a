"""Pages of lists that are too long to be sorted whole: of the newest entries that match, sorted, each page begins
behind the last entry of the one before. What is added meanwhile shifts nothing. Knows no page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from serena_central.core.decoding import from_json
from serena_central.web.pages.listing import AFTER, Columns
from serena_central.web.pages.page import Visit, link

MOST_CHARS = 5000
"""Of a place in a query."""

Entry = TypeVar("Entry")


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a page begins: behind the entry that is sorted by `key` and has this time or number, and this id among
    those of the same. `newest` is the time or number of the newest entry when the first page was made."""

    key: str | float
    at: float
    id: str
    newest: float


class LongPager(msgspec.Struct, frozen=True):
    """`more` leads to the next rows and `first` back to the first ones, "" for nowhere; `says` which rows these are."""

    more: str = ""
    more_label: str = ""
    first: str = ""
    first_label: str = ""
    says: str = ""


def place_in(visit: Visit) -> Place | None:
    """Where the query says that a page begins; None for the first one, and for a query that makes no sense."""
    text = visit.query.get(AFTER, "")
    try:
        return from_json(text, Place) if text and len(text) <= MOST_CHARS else None
    except msgspec.DecodeError:
        return None


def sorted_page(
    found: Sequence[Entry],
    columns: Columns[Entry],
    visit: Visit,
    place_of: Callable[[Entry], tuple[float, str]],
    size: int,
) -> tuple[list[Entry], Place | None]:
    """`size` of these entries, which come newest first, in the order that the query asks for; and the place behind
    them, None at the end. `place_of` returns the time or number of an entry, and its id."""
    _, key, falling = columns.order(visit)
    assert key is not None
    arranged, begins = columns.arranged(found, visit), place_in(visit)
    if begins is not None and arranged and isinstance(begins.key, str) is isinstance(key(arranged[0]), str):
        arranged = [one for one in arranged if _follows((key(one), *place_of(one)), begins, falling=falling)]
    rows = arranged[:size]
    if len(arranged) <= size:
        return rows, None
    newest = place_of(found[0])[0] if begins is None else begins.newest
    return rows, Place(key(rows[-1]), *place_of(rows[-1]), newest)


def _follows(one: tuple[Any, float, str], begins: Place, *, falling: bool) -> bool:
    """Among equal ones the newest come first."""
    key, at, name = one
    if key != begins.key:
        return (key > begins.key) is not falling
    return (at, name) < (begins.at, begins.id)


def long_pager(
    path: str, kept: Mapping[str, Any], visit: Visit, after: Place | None, *, found: int | None = None, most: int = 0
) -> LongPager:
    """`kept` is the rest of the query, `after` the place behind the rows; `found` is how many were sorted, where
    `most` are; None where all come, the oldest first."""
    begins = visit.query.get(AFTER)
    oldest = found is None
    says = ", the oldest" if oldest and not begins else ""
    if found is not None:
        says = f", sorted among the newest {most:,} that match" if found >= most else f", sorted among {found:,}"
    return LongPager(
        more=link(path, **kept, **{AFTER: msgspec.json.encode(after).decode()}) if after else "",
        more_label="Newer ›" if oldest else "More ›",
        first=link(path, **kept) if begins else "",
        first_label="‹ Oldest" if oldest else "‹ First",
        says=says,
    )


def newest_pager(path: str, kept: Mapping[str, Any], visit: Visit, before: str) -> LongPager:
    """Of a list whose newest entries come first; `before` is the place of the next page, "" at the end."""
    begins = "before" in visit.query
    return LongPager(
        more=link(path, **kept, before=before) if before else "",
        more_label="Older ›",
        first=link(path, **kept) if begins else "",
        first_label="‹ Newest",
        says="" if begins else ", the newest",
    )
