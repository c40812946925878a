"""The range of time that a page shows, in its query string: the last hour, day or week, or from one moment to another.

Any page can have one: `chosen` reads it, `Ranges` is what `_ranges.html` shows. Without a script the moments of a range
of one's own are typed, in UTC; with one, dragging over a plot sets them.
"""

import re
import time
from calendar import timegm

import msgspec

from serena_central.store.spans import TimeRange, time_range
from serena_central.web.pages.listing import AFTER
from serena_central.web.pages.page import Visit, link

LENGTHS_S = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
DEFAULT = "hour"

LONGEST_S = 366 * 86_400.0
SHORTEST_S = 300.0

QUERY = ("range", "since", "until")
"""The names in the query string. `since` and `until` are Unix seconds, or UTC as `2026-09-21T14:05`."""

_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")


class RangeLink(msgspec.Struct, frozen=True):
    """A range to choose."""

    label: str
    url: str
    chosen: bool


class Ranges(msgspec.Struct, frozen=True):
    """`since` and `until` are filled in where a range of one's own is typed; `kept` are the other fields of the query.

    `own`: the range is one's own, not one that ends now.
    """

    links: list[RangeLink]
    path: str
    since: str
    until: str
    kept: dict[str, str]
    own: bool


def chosen(visit: Visit) -> TimeRange:
    """The range in the query; the last hour where it makes no sense."""
    since, until = (_moment(visit.query.get(name, "")) for name in ("since", "until"))
    if since is not None:
        until = min(until or visit.now, visit.now)
        if SHORTEST_S <= until - since <= LONGEST_S:
            return time_range(since, until, visit.now)
        if 0 < until - since < SHORTEST_S:
            return time_range(until - SHORTEST_S, until, visit.now)
    length = LENGTHS_S.get(visit.query.get("range", ""), LENGTHS_S[DEFAULT])
    return time_range(visit.now - length, visit.now, visit.now)


def bounds(visit: Visit) -> tuple[float, float | None]:
    """The range in the query of a list; all times where there is none."""
    if not any(visit.query.get(name) for name in QUERY):
        return 0.0, None
    found = chosen(visit)
    return found.since, found.until


def ranges(visit: Visit, path: str, *, all_times: bool = False) -> Ranges:
    """The choices of a page; `all_times` is the first of them, and the default, for lists."""
    own = _moment(visit.query.get("since", "")) is not None
    name = visit.query.get("range", "")
    name = "" if own else name if name in LENGTHS_S else "" if all_times else DEFAULT
    kept = {key: value for key, value in visit.query.items() if key not in (*QUERY, "page", "before", AFTER)}
    shown = chosen(visit)
    every = [RangeLink("All", link(path, **kept), not name and not own)] if all_times else []
    return Ranges(
        links=[*every, *(RangeLink(f"Last {one}", link(path, **kept, range=one), one == name) for one in LENGTHS_S)],
        path=path,
        since=_written(shown.since) if own else "",
        until=_written(shown.until) if own else "",
        kept=kept,
        own=own,
    )


def _moment(text: str) -> float | None:
    try:
        if _WRITTEN.fullmatch(text):
            return float(timegm(time.strptime(text[:16], "%Y-%m-%dT%H:%M")))
        return float(text) if re.fullmatch(r"\d{1,10}(\.\d{1,6})?", text) else None
    except ValueError:
        return None


def _written(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at))
