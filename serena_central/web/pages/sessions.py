"""The page of all sessions: filtered, searched, sorted and paged by its query string, killed in bulk."""

from collections import Counter

import msgspec

from serena_central.core.event_kinds import CallFinished, EditApplied, SessionEvent
from serena_central.sessions.session import SessionState
from serena_central.sessions.session_snapshot import SessionSnapshot
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import SHOWN_STATES, session_page, shown_state
from serena_central.web.views import has_words

PATH = "/sessions"

COLUMNS = Columns[SessionSnapshot](
    {
        "client": Column("Client", lambda one: (one.client_name.lower(), one.client_version)),
        "project": Column("Project", lambda one: one.project_name or ""),
        "state": Column("State", lambda one: SHOWN_STATES.index(shown_state(one))),
        "age": Column("Age", lambda one: -one.created_at),
        "activity": Column("Last activity", lambda one: -one.last_activity),
        "calls": Column("Calls", lambda one: one.tool_call_count, "number"),
        "errors": Column("Failed", lambda one: one.error_count, "number"),
        "edits": Column("Edits", lambda one: one.edit_count, "number"),
    },
    default="activity",
)
"""Times sort as ages do: the shortest first."""

PROJECTS = 30
"""To choose from, those that most sessions work in; the search finds all."""


class SessionsFilters(msgspec.Struct, frozen=True):
    """The form above the table: the words searched for, and the choices there are."""

    words: str
    states: list[Option]
    projects: list[Option]
    sort: str


class SessionRow(msgspec.Struct, frozen=True):
    """A session in the table. Times are Unix seconds, rounded: what differs in less is not news."""

    id: str
    url: str
    client: str
    version: str
    user: str
    project: str
    folder: str
    state: str
    created_at: float
    last_activity: float
    calls: int
    errors: int
    edits: int
    running: int
    can_kill: bool


class SessionsTable(msgspec.Struct, frozen=True):
    """One page of the sessions that match."""

    columns: list[Heading]
    rows: list[SessionRow]
    pager: Pager
    total: int


async def filters(visit: Visit) -> SessionsFilters:
    query = visit.query
    found = visit.sessions()
    busiest = Counter(one.project_name for one in found if one.project_name).most_common(PROJECTS)
    return SessionsFilters(
        words=query.get("q", ""),
        states=options(SHOWN_STATES, query.get("state", "")),
        projects=options(sorted(name for name, _ in busiest), query.get("project", "")),
        sort=query.get("sort", ""),
    )


async def table(visit: Visit) -> SessionsTable:
    found = visit.sessions()
    chosen = [one for one in found if _matches(one, visit)]
    chosen.sort(key=lambda one: one.last_activity, reverse=True)
    rows, pager = paged(COLUMNS.arranged(chosen, visit), visit, PATH)
    return SessionsTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[_row(one, has_page=visit.user is None) for one in rows],
        pager=pager,
        total=len(found),
    )


def _matches(one: SessionSnapshot, visit: Visit) -> bool:
    state, project, words = (visit.query.get(name, "") for name in ("state", "project", "q"))
    if (state and shown_state(one) != state) or (project and one.project_name != project):
        return False
    where = (one.client_name, one.client_version, one.user, one.session_id, one.project_name, one.project_root)
    return has_words(words, *filter(None, (*where, one.working_folder)))


def _row(one: SessionSnapshot, *, has_page: bool) -> SessionRow:
    return SessionRow(
        id=one.session_id,
        url=session_page(one.session_id) if has_page else "",
        client=one.client_name,
        version=one.client_version,
        user=one.user,
        project=one.project_name or "",
        folder=one.project_root or one.working_folder or "",
        state=shown_state(one),
        created_at=round(one.created_at),
        last_activity=round(one.last_activity),
        calls=one.tool_call_count,
        errors=one.error_count,
        edits=one.edit_count,
        running=len(one.running),
        can_kill=one.state is not SessionState.TERMINATED,
    )


PAGE = Page(
    path=PATH,
    title="Sessions",
    template="sessions.html",
    for_users=True,
    sections={
        "filters": Section("sessions/_filters.html", filters, every_s=3600),
        "table": Section("sessions/_table.html", table, (SessionEvent, CallFinished, EditApplied), of_calls=True),
    },
)
