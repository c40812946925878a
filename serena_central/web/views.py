"""The data shapes of /api, made from the server's parts."""

import hashlib
import statistics
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from serena_central.core.clock import utc
from serena_central.core.errors import StoreError
from serena_central.core.events import Event, EventBus
from serena_central.pool.key import ServerKey
from serena_central.pool.pool import LanguageServerPool
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.sessions.session import Session, ToolStatistics
from serena_central.store.query_results import EventFilter
from serena_central.store.rows import EditRow
from serena_central.store.store import Store, event_row
from serena_central.store.writer import Writer
from serena_central.tools.catalogue import Tool
from serena_central.web.api_answers import EditView, Percentiles, StoreState, ToolUse, ToolView
from serena_central.web.responses import NotFound

WORDS_CHARS = 200
"""Of what is searched for."""


def has_words(words: str, *texts: str) -> bool:
    """Whether all of these words stand in these texts, without regard to case."""
    text = "\n".join(texts).lower()
    return all(word in text for word in words.lower().split())


def edit_view(row: EditRow) -> EditView:
    """One edit; `can_undo` as far as that is known without looking at its files."""
    return {
        "id": row.id,
        "at": row.at,
        "session": row.session,
        "client": row.client,
        "tool": row.tool,
        "project_root": row.project_root,
        "files": row.files,
        "lines_added": sum(file.get("added", 0) for file in row.files),
        "lines_removed": sum(file.get("removed", 0) for file in row.files),
        "symbol": row.symbol,
        "undoes": row.undoes,
        "can_undo": row.patches is not None,
    }


def tool_view(tool: Tool, *, listed: bool = True, refused: str = "") -> ToolView:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.schema,
        "read_only": tool.read_only,
        "listed": listed,
        "refused": refused,
    }


def session_details(session: Session, limit: int, note: str) -> dict[str, Any]:
    """What one session did, earlier runs of the server included: its newest log lines, oldest first, and its tools.
    `note` says why something is missing."""
    lines = session.whole_log[-limit:] if limit else []
    return {
        "log": [line._asdict() for line in lines],
        "tools": tool_statistics(session.earlier.tools, session.tools),
        "note": note,
    }


def tool_statistics(*counters: Mapping[str, ToolStatistics]) -> list[ToolUse]:
    """Calls, errors and durations (ms, of the newest calls) per tool over these counters, most called first."""
    calls: dict[str, int] = {}
    errors: dict[str, int] = {}
    durations: dict[str, list[float]] = {}
    for tools in counters:
        for name, counted in tools.items():
            calls[name] = calls.get(name, 0) + counted.calls
            errors[name] = errors.get(name, 0) + counted.errors
            durations.setdefault(name, []).extend(counted.durations_ms)
    return [
        {"tool": name, "calls": calls[name], "errors": errors[name], **_percentiles(durations[name])}
        for name in sorted(calls, key=lambda name: (-calls[name], name))
    ]


def _percentiles(values: list[float]) -> Percentiles:
    if len(values) < 2:
        return {"p50_ms": round(sum(values), 3), "p95_ms": round(sum(values), 3)}
    points = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50_ms": round(points[9], 3), "p95_ms": round(points[18], 3)}


def server_view(server: ServerSnapshot) -> dict[str, Any]:
    """A language server's run; `id` names its key in URLs, `project` is its root's folder."""
    shown = msgspec.structs.asdict(server)
    del shown["key"]
    return {"id": server_id(server.key), "project": server.root.name, **shown}


def server_named(pool: LanguageServerPool, name: str) -> ServerKey:
    """The key behind a `server_id`.

    Raises:
        NotFound: the pool knows none.
    """
    for server in pool.snapshot():
        if server_id(server.key) == name:
            return server.key
    raise NotFound(f"There is no language server {name!r}. GET /api/v1/servers lists them.")


def server_id(key: ServerKey) -> str:
    """What names a key in URLs."""
    where = f"{key.root}\0{key.settings_digest}\0{key.untrusted or ''}".encode("utf-8", "surrogateescape")
    return f"{key.server}-{hashlib.blake2b(where, digest_size=6).hexdigest()}"


def store_view(writer: Writer) -> StoreState:
    """The state of recording: queued rows, lost rows by table, and why nothing can be written at the moment."""
    return {"queued": writer.queued, "dropped": writer.dropped, "problem": writer.problem}


async def event_pages(
    store: Store,
    bus: EventBus,
    query: Mapping[str, str],
    limit: int,
    *,
    since: float = 0.0,
    until: float | None = None,
    owner: str | None = None,
    own: Collection[str] = (),
    after: int | None = None,
) -> dict[str, Any]:
    """Events from the database, the newest first, or the oldest of those `after` an id; with `owner` those of this
    credential's sessions, of which `own` are remembered; the newest from memory where it fails. A search for words that
    has not looked at all of them says how far it got."""
    before = query.get("before", "")
    wanted = msgspec.structs.replace(
        event_filter(query, limit, since, until),
        owner=owner,
        before=int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None,
        after=after,
    )
    try:
        if store.writer.problem is not None:  # the database can still be read, but lacks what is new
            raise StoreError(store.writer.problem)
        page = await store.ask(lambda queries: queries.events(wanted))
    except StoreError as error:
        events = [event for event in reversed(bus.recent()) if _fits(event, wanted)]
        if owner is not None:
            events = [event for event in events if event.session in own]
        return {
            "events": [event_row(event) for event in events[:limit]],
            "next_before": None,
            "note": f"only the newest: {error}",
        }
    found: dict[str, Any] = {"events": page.events, "next_before": page.next_id}
    if page.searched_to is not None:
        to = utc(page.searched_to)
        found["note"] = (
            f"Searched back to {to}; older events follow on the next page."
            if after is None
            else f"Searched up to {to}; newer events follow on the next page."
        )
    return found


def event_filter(query: Mapping[str, str], limit: int, since: float, until: float | None) -> EventFilter:
    """What the query chooses."""
    return EventFilter(
        kind=query.get("kind"),
        session=query.get("session"),
        project=query.get("project"),
        severity=query.get("severity"),
        words=query.get("q", "")[:WORDS_CHARS],
        since=since,
        until=until,
        limit=limit,
    )


def _fits(event: Event, wanted: EventFilter) -> bool:
    texts = (event.kind, event.message, event.server or "", *map(str, event.data.values()))
    return (
        wanted.kind in (None, event.kind, event.kind.partition(".")[0])
        and wanted.session in (None, event.session)
        and wanted.project in (None, event.project)
        and wanted.severity in (None, event.severity)
        and wanted.since <= event.at
        and (wanted.until is None or event.at < wanted.until)
        and has_words(wanted.words, *texts)
    )
