"""The page of all known projects, with the actions on them."""

from pathlib import Path

import msgspec

from serena_central.core.event_kinds import ProjectEvent, ServerInstallEvent, SessionEvent
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectSnapshot
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import project_page
from serena_central.web.responses import NotFound
from serena_central.web.views import has_words

PATH = "/projects"
ONE = f"{PATH}/one"

STATES = ("open", "known")


COLUMNS = Columns[ProjectSnapshot](
    {
        "name": Column("Project", lambda one: one.name.lower()),
        "state": Column("State", lambda one: not one.open),
        "indexed": Column("Files indexed", lambda one: one.indexed, "number"),
        "files": Column("Files", lambda one: one.files, "number minor"),
        "sessions": Column("Sessions", lambda one: one.sessions, "number minor"),
        "used": Column("Last used", lambda one: -(one.last_used or 0), "minor"),
    },
)
"""Without a choice open ones come first, those with the most sessions before the others."""


class ProjectRow(msgspec.Struct, frozen=True):
    """A project in the table. `share` is how much of its index is there, in percent; times are Unix seconds."""

    url: str
    name: str
    root: str
    open: bool
    sessions: int
    files: int
    indexed: int
    pending: int
    seconds_left: int | None
    share: float
    last_used: float | None
    note: str
    installing: list[str] = []
    """Installations of language servers that it misses, one sentence each."""


class ProjectsFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    words: str
    states: list[Option]
    sort: str


class ProjectsTable(msgspec.Struct, frozen=True):
    """One page of the projects that match, open ones first."""

    columns: list[Heading]
    rows: list[ProjectRow]
    pager: Pager
    total: int
    open: int


async def filters(visit: Visit) -> ProjectsFilters:
    query = visit.query
    return ProjectsFilters(query.get("q", ""), options(STATES, query.get("state", "")), query.get("sort", ""))


async def table(visit: Visit) -> ProjectsTable:
    found = visit.parts.projects.snapshots()
    state, words = visit.query.get("state", ""), visit.query.get("q", "")
    chosen = [
        one for one in found if state in ("", "open" if one.open else "known") and has_words(words, one.name, one.root)
    ]
    chosen.sort(key=lambda one: (not one.open, -one.sessions, one.name))
    rows, pager = paged(COLUMNS.arranged(chosen, visit), visit, PATH)
    return ProjectsTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[project_row(one, visit.now) for one in rows],
        pager=pager,
        total=len(found),
        open=sum(one.open for one in found),
    )


def project_row(one: ProjectSnapshot, now: float) -> ProjectRow:
    done, expected = one.indexed, one.indexed + one.pending
    return ProjectRow(
        url=project_page(one.root),
        name=one.name,
        root=one.root,
        open=one.open,
        sessions=one.sessions,
        files=one.files,
        indexed=done,
        pending=one.pending,
        seconds_left=None if one.seconds_left is None else round(one.seconds_left),
        share=round(100 * done / expected, 1) if expected else 100.0,
        last_used=round(one.last_used) if one.last_used else None,
        note=" ".join([*([one.note] if one.note else []), *_given_up(one)]),
        installing=[installation.text(now) for installation in one.installing],
    )


def _given_up(one: ProjectSnapshot) -> list[str]:
    return [f"{server} is not available: {why}." for server, why in one.given_up.items()]


def known(visit: Visit, root: str) -> ProjectSnapshot:
    """The project of this root.

    Raises:
        NotFound
    """
    found = next((one for one in visit.parts.projects.snapshots() if one.root == root), None)
    if found is None:
        raise NotFound(f"No project is known at {root!r}.")
    return found


# --- actions ----------------------------------------------------------------------------------------------------------


def _named(visit: Visit, form: Form) -> ProjectSnapshot:
    return known(visit, one_value(form, "root"))


async def _warm(visit: Visit, form: Form) -> str:
    parts, one = visit.parts, _named(visit, form)
    chosen = await parts.warm_up.by.choose(Path(one.root))
    parts.warm_up.start(chosen)
    return f"{one.name} is being warmed up: its language servers are started and its index is filled."


async def _close(visit: Visit, form: Form) -> str:
    one = _named(visit, form)
    visit.parts.projects.close(Path(one.root), "closed in the dashboard")
    return f"{one.name} was closed. The next call to it reopens it."


async def _index_again(visit: Visit, form: Form) -> str:
    one = _named(visit, form)
    project: Project | None = visit.parts.projects.opened(one.root)
    if project is None:
        return f"{one.name} is not open here. Warm it up to index it."
    project.index_again()
    return f"The index of {one.name} is being rebuilt. Until then, answers are correct but slower."


ACTIONS: dict[str, Action] = {
    f"{PATH}/warm": _warm,
    f"{PATH}/close": _close,
    f"{PATH}/index-again": _index_again,
}

PAGE = Page(
    path=PATH,
    title="Projects",
    template="projects.html",
    sections={
        "filters": Section("projects/_filters.html", filters, every_s=3600),
        "table": Section("projects/_table.html", table, (ProjectEvent, SessionEvent, ServerInstallEvent)),
    },
)
