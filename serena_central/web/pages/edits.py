"""The page of all edits, chosen by session, project, file and symbol; and edits in lines, as other pages list them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from serena_central.core.errors import SerenaCentralError, StoreError
from serena_central.core.event_kinds import EditApplied
from serena_central.core.words import counted
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.editing.undo import undo_session
from serena_central.store.query_results import EditFilter
from serena_central.store.rows import EditRow
from serena_central.web.pages.actions import BY
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Option, options
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import edit_page, project_page, session_page
from serena_central.web.pages.time_ranges import QUERY, Ranges, bounds, ranges

PATH = "/edits"

CHOSEN_BY = ("session", "project", "file", "symbol")

ROWS = 25
"""On one page: each has a form."""

FILES = 5
"""Of one edit in its line."""

MOST_PROJECTS = 200
"""In the filter."""

UNDO_S = 3600.0
"""Of a session's newest edits, what its button undoes: those of an hour."""


class EditLine(msgspec.Struct, frozen=True, kw_only=True):
    """An edit in a line. `session_url` and `project_url` are "" for what has no page; `undone_by` is an edit's id;
    `can_undo` as far as that is known without looking at its files."""

    id: str
    url: str
    at: float
    tool: str
    client: str
    session_url: str
    project: str
    project_url: str
    files: list[str]
    more: int
    symbol: str
    added: int
    removed: int
    undoes: str
    undone_by: str
    can_undo: bool


class EditsFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    session: str
    projects: list[Option]
    file: str
    symbol: str
    ranges: Ranges
    range: dict[str, str]


class EditsTable(msgspec.Struct, frozen=True):
    """The newest that match, or those before a time. `session` is the one that the query chose, "" for none."""

    rows: list[EditLine]
    older: str
    newest: str
    note: str
    filtered: bool
    session: str


async def filters(visit: Visit) -> EditsFilters:
    query = visit.query
    names = {one.root: one.name for one in visit.projects()[:MOST_PROJECTS]}
    chosen = query.get("project", "")
    return EditsFilters(
        session=query.get("session", ""),
        projects=options(sorted(names, key=lambda root: names[root]), chosen, shown=lambda root: names.get(root, root)),
        file=query.get("file", ""),
        symbol=query.get("symbol", ""),
        ranges=ranges(visit, PATH, all_times=True),
        range={name: query[name] for name in QUERY if query.get(name)},
    )


async def table(visit: Visit) -> EditsTable:
    query = visit.query
    chosen = {name: query[name] for name in (*CHOSEN_BY, *QUERY) if query.get(name)}
    since, until = bounds(visit)
    try:
        wanted = EditFilter(
            owner=visit.owner,
            session=chosen.get("session"),
            project=chosen.get("project"),
            file=chosen.get("file"),
            symbol=chosen.get("symbol"),
            since=since,
            before=_before(query) or until,
            limit=ROWS + 1,
        )
        rows = await visit.parts.history.edits(wanted)
        lines = await edit_lines(rows[:ROWS], visit)
    except StoreError as error:
        return EditsTable([], "", "", f"Edits are not available: {error}", bool(chosen), "")
    return EditsTable(
        rows=lines,
        older=link(PATH, **chosen, before=f"{lines[-1].at:.6f}") if len(rows) > ROWS else "",
        newest=link(PATH, **chosen) if "before" in query else "",
        note="",
        filtered=bool(chosen),
        session=query.get("session", "") if lines and visit.user is None else "",
    )


def _before(query: Mapping[str, str]) -> float | None:
    text = query.get("before", "")
    return float(text) if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit() else None


async def edit_lines(rows: Sequence[EditRow], visit: Visit) -> list[EditLine]:
    """Edits as pages list them, with what became of them.

    Raises:
        StoreError
    """
    undone = await visit.parts.history.undone([row.id for row in rows])
    clients = {session.id: session.client_name for session in visit.parts.sessions.sessions()}
    names = {one.root: one.name for one in visit.parts.projects.snapshots()}
    lines = [_line(row, clients, names, undone.get(row.id, "")) for row in rows]
    if visit.user is None:
        return lines
    return [msgspec.structs.replace(one, url="", session_url="", project_url="") for one in lines]


def _line(row: EditRow, clients: Mapping[str, str], names: Mapping[str, str], undone_by: str) -> EditLine:
    return EditLine(
        id=row.id,
        url=edit_page(row.id),
        at=row.at,
        tool=row.tool,
        client=clients.get(row.session) or row.client or row.session,
        session_url=session_page(row.session) if row.session in clients else "",
        project=names.get(row.project_root) or row.project_root.rpartition("/")[2],
        project_url=project_page(row.project_root) if row.project_root in names else "",
        files=[_name(file) for file in row.files[:FILES]],
        more=max(0, len(row.files) - FILES),
        symbol=row.symbol,
        added=sum(file.get("added", 0) for file in row.files),
        removed=sum(file.get("removed", 0) for file in row.files),
        undoes=row.undoes or "",
        undone_by=undone_by,
        can_undo=row.patches is not None and not undone_by,
    )


def _name(file: Mapping[str, Any]) -> str:
    return file.get("moved_to") or file["path"]


async def others_of(row: EditRow, history: EditHistory, visit: Visit) -> list[EditLine]:
    """The newest edits of the same files by other sessions."""
    found: dict[str, EditRow] = {}
    for file in row.files[:FILES]:
        wanted = EditFilter(project=row.project_root, file=_name(file), not_session=row.session, limit=FILES)
        found |= {one.id: one for one in await history.edits(wanted)}
    return await edit_lines(sorted(found.values(), key=lambda one: one.at, reverse=True)[: 2 * FILES], visit)


async def _undo_hour(visit: Visit, form: Form) -> str:
    """Undoes what a session edited in the last hour, as far as nobody else has changed it since."""
    parts, session = visit.parts, one_value(form, "session")
    done = await undo_session(session, visit.now - UNDO_S, parts.history, parts.projects, by=BY)
    if not done.undone and not done.refused:
        return "There is nothing to undo: this session made no edits in the last hour, or they were undone."
    said = f"Undone: {counted(len(done.undone), 'edit')}."
    if done.refused:
        edit, error = next(iter(done.refused.items()))
        said += f" Not undone: {counted(len(done.refused), 'edit')}, the first {edit}: {_sentence(error)}"
    return f"{said} There are older ones: undo again." if done.more else said


def _sentence(error: SerenaCentralError) -> str:
    return str(error).rstrip(".") + "."


ACTIONS: dict[str, Action] = {f"{PATH}/undo-hour": _undo_hour}

PAGE = Page(
    path=PATH,
    title="Edits",
    template="edits.html",
    for_users=True,
    sections={
        "filters": Section("edits/_filters.html", filters, every_s=3600),
        "table": Section("edits/_table.html", table, (EditApplied,), every_s=60, recorded=True),
    },
)
