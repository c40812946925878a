"""The list of clients' sessions with a search over their text, and one transcript with tool calls folded."""

from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from serena_central.web.pages.listing import Column, Columns, Heading, Option, options
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.transcripts import (
    TranscriptEntry,
    TranscriptLine,
    TranscriptList,
    TranscriptPage,
    list_transcripts,
    show_transcript,
)

if TYPE_CHECKING:
    from serena_central.transcripts.reports import SessionUsage

PATH = "/usage/transcripts"

CLIENTS = ("claude-code", "codex", "gemini", "messages")

ROWS = 25

NOT_READ = 5
"""Of the files and folders that cannot be read, those that are named; the usage page counts the others."""

ENTRIES = 100
"""On one page of a transcript."""


COLUMNS: "Columns[SessionUsage]" = Columns(
    {
        "when": Column("When", lambda one: -one.last_at),
        "prompt": Column("Prompt"),
        "project": Column("Project", lambda one: one.project),
        "client": Column("Client", lambda one: one.client),
        "requests": Column("Requests", lambda one: one.requests, "number"),
        "cost": Column("Cost", lambda one: one.cost, "number"),
    },
    default="when",
)


class Filters(msgspec.Struct, frozen=True):
    """The form above the table."""

    clients: list[Option]
    project: str
    text: str
    sort: str


class Row(msgspec.Struct, frozen=True):
    line: TranscriptLine
    url: str


class Table(msgspec.Struct, frozen=True):
    """Sessions from number `first` on of `total`; `later` and `earlier` are the pages beside, "" for none."""

    columns: list[Heading]
    rows: list[Row]
    total: int
    first: int
    later: str
    earlier: str
    not_searched: int
    not_read: list[str]
    filtered: bool


class Shown(msgspec.Struct, frozen=True):
    """Entries of a transcript, counted from `first` on; `before` and `after` are the pages beside."""

    client: str
    session: str
    project: str
    entries: list[TranscriptEntry]
    first: int
    before: str
    after: str


def transcript_page(client: str, session: str) -> str:
    """The address of a transcript's page."""
    return link(f"{PATH}/{client}/{session}")


async def filters(visit: Visit) -> Filters:
    query = visit.query
    clients = options(CLIENTS, query.get("client", ""))
    return Filters(clients, query.get("project", ""), query.get("q", ""), query.get("sort", ""))


async def table(visit: Visit) -> Table:
    query = visit.query
    chosen = {name: query[name] for name in ("client", "project", "q", "sort") if query.get(name)}
    start = _number(query.get("from", ""))

    def read() -> TranscriptList:
        return list_transcripts(
            visit.parts,
            client=chosen.get("client", ""),
            project=chosen.get("project", ""),
            text=chosen.get("q", ""),
            start=start,
            limit=ROWS,
            arranged=lambda found: COLUMNS.arranged(found, visit),
        )

    found = await anyio.to_thread.run_sync(read)
    return Table(
        columns=COLUMNS.headings(visit, PATH),
        rows=[Row(one, transcript_page(one.client, one.session)) for one in found.sessions],
        total=found.total,
        first=start + 1,
        later=_at(PATH, start - ROWS, **chosen) if start else "",
        earlier=_at(PATH, start + ROWS, **chosen) if start + ROWS < found.total else "",
        not_searched=found.not_searched,
        not_read=found.not_read[:NOT_READ],
        filtered=bool(chosen.keys() - {"sort"}),
    )


async def shown(visit: Visit) -> Shown:
    client, session = visit.path["client"], visit.path["conversation"]
    start = _number(visit.query.get("from", ""))

    def read() -> TranscriptPage:
        return show_transcript(visit.parts, client, session, start=start, limit=ENTRIES)

    found = await anyio.to_thread.run_sync(read)
    here = f"{PATH}/{client}/{session}"
    return Shown(
        client=client,
        session=session,
        project=found.project,
        entries=found.entries,
        first=start + 1,
        before=_at(here, start - ENTRIES) if start else "",
        after=_at(here, start + ENTRIES) if found.more else "",
    )


def _at(path: str, start: int, **query: str) -> str:
    return link(path, **query, **{"from": max(start, 0) or None})


def _number(text: str) -> int:
    return min(int(text), 10**9) if text.isdecimal() and len(text) < 12 else 0


PAGE = Page(
    path=PATH,
    title="Transcripts",
    template="transcripts.html",
    sections={
        "filters": Section("transcripts/_filters.html", filters),
        "table": Section("transcripts/_table.html", table, every_s=60),
    },
    in_navigation=False,
    live=False,
)

ONE = Page(
    path=PATH + "/{client}/{conversation}",
    title="Transcript {conversation}",
    template="transcript.html",
    sections={"shown": Section("transcript/_shown.html", shown)},
    in_navigation=False,
    live=False,
)
