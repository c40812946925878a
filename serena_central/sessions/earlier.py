"""Reads from the store what a restored session did in earlier runs of the server, when somebody first looks at it.

Kept apart from what it calls in this run, which the counters of the whole server are made of.
"""

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import SessionKilled
from serena_central.core.quoting import escaped
from serena_central.sessions.session import (
    DURATIONS_KEPT,
    LOG_LINES,
    MESSAGE_CHARS,
    MINUTES_KEPT,
    EarlierCalls,
    LogLine,
    Session,
    ToolStatistics,
    call_line,
)
from serena_central.store.query_results import BriefCall, CallFilter, EventFilter, StoredCall, ToolDurations
from serena_central.store.rows import EventRow
from serena_central.store.store import Store

if TYPE_CHECKING:
    from serena_central.store.queries import Queries

CALLS_OF_HOUR = 20_000
"""The newest of them; more are missing in the plot of the session's last hour."""

KILLS = 20


class _Stored(NamedTuple):
    calls: list[StoredCall]
    kills: list[EventRow]
    tools: list[ToolDurations]
    last_hour: list[BriefCall]


async def read_earlier_calls(session: Session, store: Store) -> str:
    """Fills `session.earlier`, unless that is done. Returns "", or why earlier calls are not known."""
    before = session.calls_in_store_before
    if before is None:
        return ""
    session_id, since = session.id, time.time() - 60 * MINUTES_KEPT

    def stored(queries: "Queries") -> _Stored:
        return _Stored(
            queries.calls(CallFilter(session=session_id, before=before, limit=LOG_LINES)),
            queries.events(EventFilter(session=session_id, kind=SessionKilled.kind, limit=KILLS)).events,
            queries.tools_of_session(session_id, before, DURATIONS_KEPT),
            queries.brief_calls(session_id, since, before, CALLS_OF_HOUR),
        )

    try:
        found = await store.ask(stored)
    except StoreError as error:
        return f"Calls from before the last start of the server are not available: {error}"
    if session.calls_in_store_before is not None:  # else somebody else was quicker
        session.calls_in_store_before = None
        session.earlier = EarlierCalls(_log(found.calls, found.kills, before), _tools(found.tools))
        for call in found.last_hour:
            session.minutes.add(call.at, call.duration_ms, failed=call.outcome != "ok")
    return ""


def _log(calls: list[StoredCall], kills: list[EventRow], before: float) -> list[LogLine]:
    lines = [LogLine(one.at, "warning", f"terminated {one.message}") for one in kills if one.at < before]
    for call, detail in ((one.call, one.detail) for one in calls):
        message = escaped(detail.error[:MESSAGE_CHARS]) if detail else call.error or ""
        text = call_line(call.tool, call.project, call.outcome, call.duration_ms, message)
        lines.append(LogLine(call.at, "info" if call.outcome == "ok" else "warning", text, call.id))
    return sorted(lines)[-LOG_LINES:]


def _tools(found: list[ToolDurations]) -> dict[str, ToolStatistics]:
    return {
        one.tool: ToolStatistics(one.calls, one.errors, deque(one.durations_ms, maxlen=DURATIONS_KEPT)) for one in found
    }
