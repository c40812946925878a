"""What happens in a project, for its page: the sessions that work on it, its newest edits, and calls that failed."""

from typing import NamedTuple

import msgspec

from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import CallFinished, EditApplied, SessionEvent
from serena_central.store.query_results import CallFilter, EditFilter
from serena_central.web.pages.edits import EditLine, edit_lines
from serena_central.web.pages.page import Section, Visit, link
from serena_central.web.pages.references import call_page, session_page, shown_state
from serena_central.web.pages.rendering import bounded

SESSIONS = 12
EDITS = 8
FAILURES = 8

FAILED_S = 24 * 3600.0
"""Calls that failed longer ago are not listed."""

MESSAGE_CHARS = 200


class Worker(msgspec.Struct, frozen=True):
    """A session that works on the project."""

    id: str
    url: str
    client: str
    state: str
    doing: str
    last_activity: float


class Failure(msgspec.Struct, frozen=True):
    """A call that did not end well."""

    id: str
    url: str
    tool: str
    outcome: str
    text: str
    at: float


class Activity(msgspec.Struct, frozen=True):
    """The newest of each; `more` sessions are at `more_url`, `note` says why edits and failures lack."""

    sessions: list[Worker]
    more: int
    more_url: str
    edits: list[EditLine]
    edits_url: str
    failures: list[Failure]
    note: str


class _Stored(NamedTuple):
    edits: list[EditLine]
    failures: list[Failure]


async def activity(visit: Visit) -> Activity:
    root = visit.query.get("root", "")
    found = [one for one in visit.parts.sessions.snapshots() if one.project_root == root]
    found.sort(key=lambda one: one.last_activity, reverse=True)
    workers = [
        Worker(
            one.session_id,
            session_page(one.session_id),
            one.client_name,
            shown_state(one),
            ", ".join(f"{call.tool} {call.about}".strip() for call in one.running_calls[:3]),
            round(one.last_activity),
        )
        for one in found[:SESSIONS]
    ]
    stored, note = _Stored([], []), ""
    try:
        stored = await _stored(visit, root)
    except StoreError as error:
        note = f"Edits and calls are not available: {error}"
    return Activity(
        sessions=workers,
        more=max(0, len(found) - SESSIONS),
        more_url=link("/sessions", project=found[0].project_name or "") if found else "",
        edits=stored.edits,
        edits_url=link("/edits", project=root),
        failures=stored.failures,
        note=note,
    )


async def _stored(visit: Visit, root: str) -> _Stored:
    edits = await visit.parts.history.edits(EditFilter(project=root, limit=EDITS), exact=False)
    name = next((one.name for one in visit.parts.projects.snapshots() if one.root == root), "")
    # Calls are stored by their projects' names, which several may have: details tell.
    wanted = CallFilter(project=name, failed=True, since=visit.now - FAILED_S, limit=4 * FAILURES)
    calls = await visit.parts.store.ask(lambda queries: queries.calls(wanted))
    failures = [
        Failure(
            one.call.id,
            call_page(one.call.id),
            one.call.tool,
            one.call.outcome,
            bounded(one.detail.error if one.detail else one.call.error or "", MESSAGE_CHARS),
            one.call.at,
        )
        for one in calls
        if one.detail is None or root in one.detail.roots
    ]
    return _Stored(await edit_lines(edits, visit), failures[:FAILURES])


SECTION = Section(
    "project/_activity.html", activity, (SessionEvent, CallFinished, EditApplied), every_s=30, recorded=True
)
