"""The page of the server's log: the newest records of its file that match, and those that the events page shows below
a search."""

import anyio.to_thread
import msgspec

from serena_central.core.clock import utc
from serena_central.web.log_search import LEVELS, LogFound, LogRecord, search_log
from serena_central.web.pages.listing import Column, Columns, Heading, Option, options
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.rendering import bounded
from serena_central.web.pages.time_ranges import QUERY, Ranges, bounds, ranges
from serena_central.web.views import WORDS_CHARS

PATH = "/events/log"

ROWS = 50
BRIEF_ROWS = 10
"""Below the events."""

MOST_TEXT = 600
"""Characters of a record in the table; the file has them all."""

LEAST = LEVELS[1:4]
"""Levels to choose from."""


class LogFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    words: str
    levels: list[Option]
    session: str
    project: str
    ranges: Ranges
    range: dict[str, str]
    sort: str


class LogTable(msgspec.Struct, frozen=True):
    """The newest records that match. `note` says how far was searched; `all_url` is of the page with this
    search."""

    columns: list[Heading]
    rows: list[LogRecord]
    note: str
    file: str
    all_url: str
    filtered: bool


COLUMNS = Columns[LogRecord](
    {
        "when": Column("When", lambda one: -one.at),
        "level": Column("Level", lambda one: -LEVELS.index(one.level)),
        "logger": Column("Logger", lambda one: one.logger, "minor"),
        "text": Column("What"),
    },
    default="when",
)


async def filters(visit: Visit) -> LogFilters:
    query = visit.query
    return LogFilters(
        words=query.get("q", ""),
        levels=options(LEAST, query.get("severity", "")),
        session=query.get("session", ""),
        project=query.get("project", ""),
        ranges=ranges(visit, PATH, all_times=True),
        range={name: query[name] for name in QUERY if query.get(name)},
        sort=query.get("sort", ""),
    )


async def table(visit: Visit) -> LogTable:
    return await _found(visit, ROWS)


async def brief(visit: Visit) -> LogTable:
    """What the events page shows of a search for words; nothing without one."""
    if not visit.query.get("q"):
        return LogTable([], [], "", "", "", filtered=False)
    return await _found(visit, BRIEF_ROWS)


async def _found(visit: Visit, limit: int) -> LogTable:
    query, file = visit.query, visit.parts.places.log_file
    since, until = bounds(visit)

    def search() -> LogFound:
        return search_log(
            file,
            words=query.get("q", "")[:WORDS_CHARS],
            session=query.get("session", ""),
            project=query.get("project", ""),
            level=query.get("severity", ""),
            since=since,
            until=until,
            limit=limit,
        )

    found = await anyio.to_thread.run_sync(search)
    chosen = {name: query[name] for name in ("q", "session", "project", "severity", *QUERY) if query.get(name)}
    return LogTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[
            msgspec.structs.replace(one, text=bounded(one.text, MOST_TEXT))
            for one in COLUMNS.arranged(found.records, visit)
        ],
        note=f"Searched back to {utc(found.searched_to)}." if found.more and found.searched_to is not None else "",
        file=str(file),
        all_url=link(PATH, **chosen),
        filtered=bool(chosen),
    )


PAGE = Page(
    path=PATH,
    title="Server log",
    template="log.html",
    sections={
        "filters": Section("log/_filters.html", filters, every_s=3600),
        "table": Section("log/_table.html", table),
    },
    in_navigation=False,
)
