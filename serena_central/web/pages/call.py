"""The page of one call: what it was given and came to, where its time went, and what it changed.

Of a running call it shows what is known, until the call ends. Everything was shortened, and cleared of what looks like
a secret, before it was kept (tools/call_details.py).
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from serena_central.core.errors import StoreError
from serena_central.core.masking import masked
from serena_central.sessions.session import RunningCall, Session
from serena_central.store.query_results import EditFilter, StoredCall
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import PageLink, edit_page, project_page, session_page, tool_page
from serena_central.web.pages.rendering import bounded, percent
from serena_central.web.responses import NotFound

PATH = "/calls/{call}"

MOST_EDITS = 20

PHASES = {
    "scope": "Choosing projects",
    "barrier": "File system barrier",
    "queue": "Waiting for other edits",
    "start": "Waiting for a language server to start",
    "server": "Answers of language servers",
    "syntax": "Reading by syntax",
    "shaping": "Fitting the answer",
    "other": "Own work",
}
"""Names of phases (core/tracing.py), in the order of a call."""


class Argument(msgspec.Struct, frozen=True):
    """`value` is the text itself, or JSON; `long`: it stands in a block of its own."""

    name: str
    value: str
    long: bool


class PhaseTime(msgspec.Struct, frozen=True):
    """`share` is percent of the call's time; phases may overlap."""

    title: str
    spent_ms: float
    share: float


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """A call. `at` is when it ended, of a running one when it began (Unix seconds); `note` says why something lacks."""

    id: str
    tool: str
    tool_url: str
    outcome: str
    at: float
    duration_ms: float
    session: str
    client: str
    session_url: str
    projects: list[PageLink]
    servers: list[str]
    arguments: list[Argument]
    answer: str
    answer_chars: int
    shortened: bool
    error: str
    error_text: str
    notes: list[str]
    columns: list[Heading]
    phases: list[PhaseTime]
    edits: list[PageLink]
    note: str = ""


COLUMNS = Columns[PhaseTime](
    {
        "phase": Column("Phase"),
        "time": Column("Time", lambda one: one.spent_ms, "number"),
        "share": Column("Share"),
    },
)
"""Without a choice in the order of a call."""


async def call(visit: Visit) -> CallShown:
    call_id = visit.path["call"]
    for session in visit.parts.sessions.sessions():
        if call_id in session.running:
            return _running(session, session.running[call_id])
    store = visit.parts.store
    try:
        found = await store.ask(lambda queries: queries.call(call_id))
        if found is None and await store.writer.caught_up():
            found = await store.ask(lambda queries: queries.call(call_id))
    except StoreError as error:
        raise NotFound(f"Calls are not available: {error}") from error
    if found is None:
        raise NotFound(f"There is no call {call_id!r}: it never existed, is no longer stored, or is just being stored.")
    return await _ended(found, visit)


def _running(session: Session, one: RunningCall) -> CallShown:
    return CallShown(
        id=one.id,
        tool=one.tool,
        tool_url=tool_page(one.tool),
        outcome="running",
        at=one.started_at,
        duration_ms=0.0,
        session=session.id,
        client=session.client_name,
        session_url=session_page(session.id),
        projects=[],
        servers=[],
        arguments=[Argument("about", masked(one.about), long=False)] if one.about else [],
        answer="",
        answer_chars=0,
        shortened=False,
        error="",
        error_text="",
        notes=[],
        columns=[],
        phases=[],
        edits=[],
    )


async def _ended(found: StoredCall, visit: Visit) -> CallShown:
    row, detail = found.call, found.detail
    clients = {session.id: session.client_name for session in visit.parts.sessions.sessions()}
    wanted = EditFilter(session=row.session, call=row.id, limit=MOST_EDITS)
    edits = [] if visit.parts.caller.only_reads(row.tool) else await visit.parts.history.edits(wanted, exact=False)
    roots = {one.root for one in visit.parts.projects.snapshots()}
    named = [(root.rpartition("/")[2], root) for root in detail.roots] if detail else [(row.project or "", "")]
    return CallShown(
        id=row.id,
        tool=row.tool,
        tool_url=tool_page(row.tool),
        outcome=row.outcome,
        at=row.at,
        duration_ms=row.duration_ms,
        session=row.session,
        client=clients.get(row.session, row.session),
        session_url=session_page(row.session) if row.session in clients else "",
        projects=[PageLink(name, project_page(root) if root in roots else "") for name, root in named if name],
        servers=detail.servers if detail else [],
        arguments=arguments_shown(detail.arguments) if detail else [],
        answer=detail.answer if detail else "",
        answer_chars=row.answer_chars,
        shortened=detail.shortened if detail else False,
        error=row.error or "",
        error_text=detail.error if detail else "",
        notes=detail.notes if detail else [],
        columns=COLUMNS.headings(visit, f"/calls/{row.id}"),
        phases=COLUMNS.arranged(_phases(detail.phases_ms, row.duration_ms), visit) if detail else [],
        edits=[PageLink(_names(one.files) or one.id, edit_page(one.id)) for one in edits],
        note="" if detail else "Its arguments and answer were not kept.",
    )


def arguments_shown(arguments: Mapping[str, Any]) -> list[Argument]:
    """Arguments as text; other values as JSON."""
    shown: list[Argument] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown.append(Argument(name, text, long=len(text) > 100 or "\n" in text))
    return shown


def _phases(spent_ms: Mapping[str, float], whole_ms: float) -> list[PhaseTime]:
    return [
        PhaseTime(title, spent_ms[name], percent(spent_ms[name], whole_ms))
        for name, title in PHASES.items()
        if spent_ms.get(name)
    ]


def _names(files: list[dict[str, Any]]) -> str:
    return bounded(", ".join(file.get("moved_to") or file["path"] for file in files[:5]), 200)


PAGE = Page(
    path=PATH,
    title="Call {call}",
    template="call.html",
    sections={"call": Section("call/_call.html", call, every_s=2.0)},
    in_navigation=False,
)
