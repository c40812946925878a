"""The page of all edits, chosen by session, project, file and symbol; and edits in lines, as other pages list them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from serena_central.core.errors import SerenaCentralError, StoreError
from serena_central.core.event_kinds import EditApplied
from serena_central.core.words import counted
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.editing.undo import undo_session
from serena_central.store.query_results import EditBrief, EditFilter
from serena_central.store.rows import EditRow
from serena_central.web.pages.actions import BY
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading, Option, options
from serena_central.web.pages.long_lists import LongPager, Place, long_pager, newest_pager, place_in, sorted_page
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import edit_page, project_page, session_page
from serena_central.web.pages.time_ranges import QUERY, Ranges, bounds, ranges

PATH = "/edits"

CHOSEN_BY = ("session", "project", "file", "symbol")

ROWS = 25
"""On one page: each has a form."""

SORTED = 2000
"""The newest edits that match, which are sorted: some 20 ms of CPU."""

ROUNDED_S = 1e-5
"""SQLite writes times into JSON, by which briefs are read, with 15 digits."""

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
    sort: str


class EditsTable(msgspec.Struct, frozen=True):
    """A page of the edits that match. `session` is the one that the query chose, "" for none."""

    columns: list[Heading]
    rows: list[EditLine]
    pager: LongPager
    note: str
    filtered: bool
    session: str


class _Sorted(msgspec.Struct, frozen=True):
    """What an edit is sorted by, as its line shows it."""

    id: str
    at: float
    files: str
    symbol: str
    lines: int
    tool: str
    client: str
    project: str


COLUMNS = Columns[_Sorted](
    {
        "when": Column("When", lambda one: -one.at),
        "files": Column("Files", lambda one: one.files),
        "symbol": Column("Symbol", lambda one: one.symbol),
        "lines": Column("Lines", lambda one: one.lines, "number"),
        "tool": Column("Tool", lambda one: one.tool),
        "by": Column("By", lambda one: one.client.lower()),
        "project": Column("Project", lambda one: one.project.lower()),
        "undo": Column("Undo", css="unseen"),
    },
    default="when",
)


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
        sort=query.get("sort", ""),
    )


async def table(visit: Visit) -> EditsTable:
    query = visit.query
    chosen = {name: query[name] for name in (*CHOSEN_BY, *QUERY) if query.get(name)}
    kept = chosen | ({"sort": query["sort"]} if query.get("sort") else {})
    by, _, falling = COLUMNS.order(visit)
    make = _sorted if by != "when" else _oldest if falling else _newest
    columns = COLUMNS.headings(visit, PATH)
    try:
        rows, pager = await make(visit, kept)
        lines = await edit_lines(rows, visit)
    except StoreError as error:
        return EditsTable(columns, [], LongPager(), f"Edits are not available: {error}", bool(chosen), "")
    session = query.get("session", "") if lines and visit.user is None else ""
    return EditsTable(columns, lines, pager, "", bool(chosen), session)


Found = tuple[list[EditRow], LongPager]


async def _newest(visit: Visit, kept: Mapping[str, str]) -> Found:
    wanted = _wanted(visit)
    before = _before(visit.query)
    rows = await visit.parts.history.edits(wanted if before is None else replace(wanted, before=before), exact=False)
    more = repr(rows[ROWS - 1].at) if len(rows) > ROWS else ""
    return rows[:ROWS], newest_pager(PATH, kept, visit, more)


async def _oldest(visit: Visit, kept: Mapping[str, str]) -> Found:
    begins = place_in(visit)
    behind = (begins.at, begins.id) if begins else None
    rows = await visit.parts.history.edits(replace(_wanted(visit), oldest_first=True, behind=behind), exact=False)
    last = rows[ROWS - 1] if len(rows) > ROWS else None
    after = Place("", last.at, last.id, last.at) if last else None
    return rows[:ROWS], long_pager(PATH, kept, visit, after)


async def _sorted(visit: Visit, kept: Mapping[str, str]) -> Found:
    wanted, begins, history = replace(_wanted(visit), limit=SORTED), place_in(visit), visit.parts.history
    if begins:
        wanted = replace(wanted, before=begins.newest + ROUNDED_S)
    found = _as_shown(await history.edit_briefs(wanted), visit)
    page, after = sorted_page(found, COLUMNS, visit, lambda one: (one.at, one.id), ROWS)
    rows = await history.edits_with_ids([one.id for one in page])
    return rows, long_pager(PATH, kept, visit, after, found=len(found), most=SORTED)


def _wanted(visit: Visit) -> EditFilter:
    query, (since, until) = visit.query, bounds(visit)
    return EditFilter(
        owner=visit.owner,
        session=query.get("session") or None,
        project=query.get("project") or None,
        file=query.get("file") or None,
        symbol=query.get("symbol") or None,
        since=since,
        before=until,
        limit=ROWS + 1,
    )


def _as_shown(briefs: Sequence[EditBrief], visit: Visit) -> list[_Sorted]:
    clients, names = _clients(visit), _names(visit)
    return [
        _Sorted(
            id=one.id,
            at=one.at,
            files=_name(one.files[0]) if one.files else "",
            symbol=one.symbol,
            lines=sum(file.get("added", 0) + file.get("removed", 0) for file in one.files),
            tool=one.tool,
            client=clients.get(one.session) or one.client or one.session,
            project=names.get(one.project_root) or one.project_root.rpartition("/")[2],
        )
        for one in briefs
    ]


def _clients(visit: Visit) -> dict[str, str]:
    return {session.id: session.client_name for session in visit.parts.sessions.sessions()}


def _names(visit: Visit) -> dict[str, str]:
    return {one.root: one.name for one in visit.parts.projects.snapshots()}


def _before(query: Mapping[str, str]) -> float | None:
    text = query.get("before", "")
    return float(text) if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit() else None


async def edit_lines(rows: Sequence[EditRow], visit: Visit) -> list[EditLine]:
    """Edits as pages list them, with what became of them.

    Raises:
        StoreError
    """
    undone = await visit.parts.history.undone([row.id for row in rows], exact=False)
    clients, names = _clients(visit), _names(visit)
    lines = [_line(row, clients, names, undone.get(row.id, "")) for row in rows]
    if visit.user is None:
        return lines
    return [replace(one, url="", session_url="", project_url="") for one in lines]


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
        found |= {one.id: one for one in await history.edits(wanted, exact=False)}
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
