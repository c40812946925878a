"""The page of one session: its identity, running calls, history, edits and resources."""

import msgspec

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import CallFinished, EditApplied, SessionEvent
from serena_central.core.masking import masked
from serena_central.sessions.earlier import read_earlier_calls
from serena_central.sessions.session import Session
from serena_central.store.query_results import EditFilter
from serena_central.store.rows import ToolCallRow
from serena_central.web.pages import session_conversation
from serena_central.web.pages.edits import EditLine, edit_lines
from serena_central.web.pages.listing import Column, Columns, Heading, Pager, paged
from serena_central.web.pages.overview import LoadCard, hour
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import call_page, project_page, session_named, shown_state
from serena_central.web.pages.rendering import milliseconds
from serena_central.web.views import WORDS_CHARS, has_words, tool_statistics

LINES = 20
"""Of the log on one page."""

CALLS = 30
"""In the strip, the newest."""

EDITS = 15

TOOLS = 10
"""On one page of their table."""

LEVELS = ("info", "warning")


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """Who a session is and what it holds. Times are Unix seconds."""

    id: str
    client: str
    era: str
    identified_by: str
    shared: bool
    state: str
    created_at: float
    last_activity: float
    project: str
    project_url: str
    root: str
    folder: str
    context: str
    modes: list[str]
    calls: int
    errors: int
    edits: int
    terminated_by: str
    terminated_at: float | None
    until: float | None
    """When the kill is lifted by itself."""
    symbols_seen: int
    memories_seen: int
    servers: list[str]
    """Language servers of its project, which it shares with `others` sessions."""
    others: int


class Running(msgspec.Struct, frozen=True):
    """A call in flight."""

    id: str
    url: str
    tool: str
    about: str
    started_at: float


class RunningCalls(msgspec.Struct, frozen=True):
    session: str
    calls: list[Running]


class ToolUse(msgspec.Struct, frozen=True):
    """One tool in this session. `share` is its part of the most used one's calls, in percent."""

    tool: str
    calls: int
    errors: int
    p50_ms: float
    p95_ms: float
    share: float


class Tools(msgspec.Struct, frozen=True):
    columns: list[Heading]
    used: list[ToolUse]
    pager: Pager


COLUMNS = Columns[ToolUse](
    {
        "name": Column("Tool", lambda one: one.tool),
        "calls": Column("Calls", lambda one: one.calls, "number"),
        "errors": Column("Failed", lambda one: one.errors, "number"),
        "p50": Column("p50", lambda one: one.p50_ms, "number minor"),
        "p95": Column("p95", lambda one: one.p95_ms, "number"),
    },
)


class CallMark(msgspec.Struct, frozen=True):
    """A call in the strip; `x` and `width` are in thousandths of it, `height` in percent."""

    url: str
    x: float
    width: float
    height: float
    outcome: str
    says: str


class Timeline(msgspec.Struct, frozen=True):
    """The newest calls, from `since` to `until`; `note` says what is missing."""

    calls: list[CallMark]
    since: float | None
    until: float
    note: str


class Line(msgspec.Struct, frozen=True):
    """`url` is of the call's page, "" for what is about none."""

    at: float
    level: str
    text: str
    url: str


class Log(msgspec.Struct, frozen=True):
    """The newest lines of one level and above, newest first. `levels` are (name, url, chosen); `note` says what is
    missing."""

    lines: list[Line]
    pager: Pager
    levels: list[tuple[str, str, bool]]
    note: str
    words: str
    level: str


class SessionEdits(msgspec.Struct, frozen=True):
    session: str
    newest: list[EditLine]
    all_url: str
    note: str


async def details(visit: Visit) -> Details:
    sessions = visit.parts.sessions
    session = _session(visit)
    await visit.parts.views.load(session)
    shown = sessions.snapshot(session)
    root = shown.project_root
    killed = session.termination
    return Details(
        id=session.id,
        client=f"{session.client_name} {session.client_version}".strip(),
        era=session.era,
        identified_by=session.identified_by.value,
        shared=session.shared,
        state=shown_state(shown),
        created_at=round(session.created_at),
        last_activity=round(session.last_activity),
        project=shown.project_name or "",
        project_url=project_page(root) if root else "",
        root=root or "",
        folder=session.working_folder or "",
        context=session.context or "",
        modes=list(session.modes),
        calls=session.calls,
        errors=session.errors,
        edits=session.edits,
        terminated_by=killed.by if killed else "",
        terminated_at=killed.at if killed else None,
        until=killed.until if killed else None,
        symbols_seen=len(session.views),
        memories_seen=len(session.memories_seen),
        servers=[one.server for one in visit.parts.pool.snapshot() if str(one.root) == root and one.pid],
        others=sum(1 for other in sessions.sessions() if other is not session and other.attached_root == root)
        if root
        else 0,
    )


async def running(visit: Visit) -> RunningCalls:
    session = _session(visit)
    calls = [
        Running(call.id, call_page(call.id), call.tool, masked(call.about), call.started_at)
        for call in session.running.values()
    ]
    return RunningCalls(session.id, calls)


async def tools(visit: Visit) -> Tools:
    session = _session(visit)
    await read_earlier_calls(session, visit.parts.store)
    used = tool_statistics(session.earlier.tools, session.tools)
    most = max((one["calls"] for one in used), default=1)
    rows = [ToolUse(**one, share=round(100 * one["calls"] / most, 1)) for one in used]
    path = f"/sessions/{session.id}"
    shown, pager = paged(COLUMNS.arranged(rows, visit), visit, path, size=TOOLS, parameter="tools-page")
    return Tools(COLUMNS.headings(visit, path), list(shown), pager)


async def timeline(visit: Visit) -> Timeline:
    session = _session(visit)
    try:
        newest = await visit.parts.store.ask(lambda queries: queries.calls_of_session(session.id, CALLS))
    except StoreError as error:
        return Timeline([], None, 0.0, f"Calls are not available: {error}")
    since = newest[-1].at - newest[-1].duration_ms / 1000 if newest else None
    until = newest[0].at if newest else 0.0
    return Timeline([_mark(row, since or 0.0, until) for row in reversed(newest)], since, until, "")


def _mark(row: ToolCallRow, since: float, until: float) -> CallMark:
    span = max(until - since, 0.001)
    width = min(1000.0, max(3.0, row.duration_ms / span))
    # Slower calls stand higher, by the digits of their milliseconds.
    height = min(100.0, 20.0 + 16 * max(0, len(str(int(row.duration_ms)))))
    says = f"{row.tool} {row.project or ''} {row.outcome} {milliseconds(row.duration_ms)}"
    return CallMark(
        call_page(row.id),
        round(min(1000 * (row.at - since) / span, 1000) - width, 1),
        round(width, 1),
        height,
        row.outcome,
        says,
    )


async def load(visit: Visit) -> LoadCard:
    session = _session(visit)
    await read_earlier_calls(session, visit.parts.store)
    return hour(session.minutes.last_hour(visit.now))


async def log(visit: Visit) -> Log:
    level, words = visit.query.get("level", LEVELS[0]), visit.query.get("q", "")[:WORDS_CHARS]
    session = _session(visit)
    note = await read_earlier_calls(session, visit.parts.store)
    lines = [
        line
        for line in session.whole_log
        if (level not in LEVELS or _at_least(line.level, level)) and has_words(words, line.text)
    ]
    path = f"/sessions/{visit.path['session']}"
    shown, pager = paged(lines[::-1], visit, path, size=LINES, parameter="log-page")
    return Log(
        lines=[Line(line.at, line.level, line.text, call_page(line.call) if line.call else "") for line in shown],
        pager=pager,
        levels=[(one, link(path, q=words, level=one if one != LEVELS[0] else ""), one == level) for one in LEVELS],
        note=note,
        words=words,
        level="" if level == LEVELS[0] else level,
    )


def _at_least(level: str, least: str) -> bool:
    return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(least)


async def edits(visit: Visit) -> SessionEdits:
    session = _session(visit)
    try:
        wanted = EditFilter(session=session.id, limit=EDITS)
        lines = await edit_lines(await visit.parts.history.edits(wanted, exact=False), visit)
    except StoreError as error:
        return SessionEdits(session.id, [], "", f"Edits are not available: {error}")
    return SessionEdits(session.id, lines, link("/edits", session=session.id), "")


def _session(visit: Visit) -> Session:
    return visit.parts.sessions.get(visit.path["session"])


PAGE = Page(
    path="/sessions/{session}",
    title="Session {session}",
    template="session.html",
    sections={
        "details": Section("session/_details.html", details, (SessionEvent, CallFinished, EditApplied)),
        "running": Section("session/_running.html", running, (SessionEvent, CallFinished), every_s=1.0),
        "tools": Section("session/_tools.html", tools, (CallFinished,)),
        "timeline": Section("session/_timeline.html", timeline, (CallFinished,), recorded=True),
        "load": Section("overview/_load.html", load),
        "conversation": session_conversation.SECTION,
        "edits": Section("session/_edits.html", edits, (EditApplied,), every_s=60.0, recorded=True),
        "log": Section("session/_log.html", log, (CallFinished, SessionEvent)),
    },
    in_navigation=False,
    names=session_named,
)
