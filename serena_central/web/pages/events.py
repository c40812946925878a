"""The page of events: the lifecycle log of all runs of the server, chosen by its query string, and as JSON lines."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response, StreamingResponse

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import (
    CallFinished,
    EditApplied,
    ProjectEvent,
    ServerEvent,
    SessionEvent,
    StoreEvent,
)
from serena_central.core.events import Severity
from serena_central.store.query_results import EVENTS_SEARCHED, EventBrief
from serena_central.store.rows import EventRow
from serena_central.web.pages import server_log
from serena_central.web.pages.listing import ROWS, Column, Columns, Heading, Option, options
from serena_central.web.pages.long_lists import LongPager, Place, long_pager, newest_pager, place_in, sorted_page
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import PageLink, PageLinks
from serena_central.web.pages.rendering import bounded, milliseconds
from serena_central.web.pages.time_ranges import QUERY, Ranges, bounds, ranges
from serena_central.web.views import event_filter, event_pages

if TYPE_CHECKING:
    from serena_central.store.queries import Queries

PATH = "/events"
EXPORT = f"{PATH}/export"

SUBJECTS = ("session", "server", "project", "call", "edit", "memory", "store")
"""What kinds of events begin with, and sections hear."""

CHOSEN_BY = ("q", "kind", "session", "project", "severity", *QUERY)

MOST_TEXT = 300
"""Characters of an event's words in the table; the export has them all."""

SORTED = 5000
"""The newest events that match, which are sorted: some 25 ms of CPU."""

PART = 1000
"""Events that the export reads at once."""

MOST_EXPORTED = 100_000


class EventsFilters(msgspec.Struct, frozen=True):
    """The form above the table. `export` is the address of the same events as JSON lines."""

    words: str
    kinds: list[Option]
    severities: list[Option]
    session: str
    project: str
    export: str
    log_url: str
    ranges: Ranges
    range: dict[str, str]
    sort: str


class EventLine(msgspec.Struct, frozen=True):
    """An event in a line."""

    id: str
    at: float
    kind: str
    severity: str
    about: list[PageLink]
    text: str


class EventsTable(msgspec.Struct, frozen=True):
    """A page of the events that match. `note` says why some may lack; `filtered`: the query chooses."""

    columns: list[Heading]
    rows: list[EventLine]
    pager: LongPager
    note: str
    filtered: bool


COLUMNS = Columns[EventBrief](
    {
        "when": Column("When", lambda one: -one.at),
        "kind": Column("Kind", lambda one: one.kind),
        "about": Column("About", lambda one: _about(one.server, one.project, one.session)),
        "what": Column("What"),
    },
    default="when",
)


def _about(server: str | None, project: str | None, session: str | None) -> str:
    """Puts together what is about the same."""
    return " ".join((server or "", (project or "").rpartition("/")[2], session or "")).lower()


async def filters(visit: Visit) -> EventsFilters:
    query = visit.query
    return EventsFilters(
        words=query.get("q", ""),
        kinds=options(SUBJECTS, query.get("kind", "")),
        severities=options([severity.value for severity in Severity], query.get("severity", "")),
        session=query.get("session", ""),
        project=query.get("project", ""),
        export=link(EXPORT, **_chosen(visit)),
        log_url=link(server_log.PATH, **{name: value for name, value in _chosen(visit).items() if name != "kind"}),
        ranges=ranges(visit, PATH, all_times=True),
        range={name: query[name] for name in QUERY if query.get(name)},
        sort=query.get("sort", ""),
    )


def _chosen(visit: Visit, *more: str) -> dict[str, str]:
    return {name: visit.query[name] for name in (*CHOSEN_BY, *more) if visit.query.get(name)}


async def table(visit: Visit) -> EventsTable:
    chosen, kept = _chosen(visit), _chosen(visit, "sort")
    by, _, falling = COLUMNS.order(visit)
    if by != "when":
        rows, note, pager = await _sorted(visit, kept)
    elif falling:
        rows, note, pager = await _oldest(visit, kept)
    else:
        found = await _found(visit)
        rows, note = found["events"], found.get("note", "")
        pager = newest_pager(PATH, kept, visit, str(found["next_before"] or ""))
    references = PageLinks(visit.parts)
    return EventsTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[_line(row, references) for row in rows],
        pager=pager,
        note=note,
        filtered=bool(chosen),
    )


async def _found(visit: Visit, *, after: int | None = None) -> dict[str, Any]:
    parts, (since, until) = visit.parts, bounds(visit)
    return await event_pages(parts.store, parts.bus, visit.query, ROWS, since=since, until=until, after=after)


async def _oldest(visit: Visit, kept: Mapping[str, str]) -> tuple[list[EventRow], str, LongPager]:
    begins = place_in(visit)
    found = await _found(visit, after=int(begins.at) if begins else 0)
    last = found["next_before"]
    after = Place("", last, "", last) if last is not None else None
    return found["events"], found.get("note", ""), long_pager(PATH, kept, visit, after)


async def _sorted(visit: Visit, kept: Mapping[str, str]) -> tuple[list[EventRow], str, LongPager]:
    """Those that a database which can't be used lacks are sorted in memory."""
    store, begins = visit.parts.store, place_in(visit)
    note = f"Words are searched for in the newest {EVENTS_SEARCHED:,} events." if visit.query.get("q") else ""
    wanted = event_filter(visit.query, SORTED, *bounds(visit))
    if begins:
        wanted = msgspec.structs.replace(wanted, before=int(begins.newest) + 1)

    def ask(queries: "Queries") -> tuple[list[EventRow], Place | None, int]:
        found = queries.event_briefs(wanted)
        briefs, after = sorted_page(found, COLUMNS, visit, lambda one: (one.id, ""), ROWS)
        return queries.events_with_ids([one.id for one in briefs]), after, len(found)

    if store.writer.problem is None:
        with suppress(StoreError):
            rows, after, found = await store.ask(ask)
            return rows, note, long_pager(PATH, kept, visit, after, found=found, most=SORTED)
    remembered = await _found(visit)
    briefs = {_brief(one, number): one for number, one in enumerate(remembered["events"])}
    return [briefs[one] for one in COLUMNS.arranged(briefs, visit)], remembered.get("note", ""), LongPager()


def _brief(row: EventRow, number: int) -> EventBrief:
    return EventBrief(number, row.at, row.kind, row.server, row.session, row.project)


def _line(row: EventRow, references: PageLinks) -> EventLine:
    number = row.seq if row.id is None else row.id  # what the database has not numbered
    return EventLine(
        id=str(number),
        at=row.at,
        kind=row.kind,
        severity=str(row.severity),
        about=references.of(row),
        text=_text(row),
    )


def _text(row: EventRow) -> str:
    """The event's words; those of its data where it has none."""
    data = row.data
    if row.kind == "call.finished":
        failed = f": {data['error']}" if data.get("error") else ""
        said = f"{failed}: {row.message}" if row.message else failed
        took = milliseconds(data.get("duration_ms", 0))
        return bounded(f"{data.get('tool')} {data.get('outcome')}, {took}{said}", MOST_TEXT)
    said = row.message or ", ".join(f"{name} {value}" for name, value in data.items() if value not in (None, ""))
    return bounded(said, MOST_TEXT)


async def export(visit: Visit) -> Response:
    """The events that match as JSON lines, the newest first."""
    headers = {"content-disposition": 'attachment; filename="serena-central-events.jsonl"'}
    return StreamingResponse(_lines(visit), media_type="application/x-ndjson", headers=headers)


async def _lines(visit: Visit) -> AsyncIterator[bytes]:
    """If rows may be missing, a last line says so."""
    query, left = dict(visit.query), MOST_EXPORTED
    since, until = bounds(visit)
    await visit.parts.store.writer.caught_up()
    while left:
        try:
            found = await event_pages(
                visit.parts.store, visit.parts.bus, query, min(PART, left), since=since, until=until
            )
        except StoreError as error:
            yield msgspec.json.encode({"note": f"the rest could not be read: {error}"}) + b"\n"
            return
        yield msgspec.json.Encoder().encode_lines(found["events"])
        if (note := found.get("note")) and found["next_before"] is None:
            yield msgspec.json.encode({"note": note}) + b"\n"
        if found["next_before"] is None:
            return
        left -= len(found["events"])
        query["before"] = str(found["next_before"])
    yield (
        msgspec.json.encode({"note": f"only the newest {MOST_EXPORTED}; continue with before={query['before']}"})
        + b"\n"
    )


_HEARD = (SessionEvent, ServerEvent, ProjectEvent, CallFinished, EditApplied, StoreEvent)

PAGE = Page(
    path=PATH,
    title="Events",
    template="events.html",
    sections={
        "filters": Section("events/_filters.html", filters, every_s=3600),
        "table": Section("events/_table.html", table, _HEARD, every_s=60, recorded=True),
        "log": Section("log/_brief.html", server_log.brief, every_s=60),
    },
)
