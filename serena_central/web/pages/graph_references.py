"""The page of references behind a graph: those of a file, folder or module, or those of one edge."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.analysis.analysis_run import GraphRun, Reference, neighbours, references
from serena_central.core.errors import PathError
from serena_central.core.event_kinds import AnalysisEnded
from serena_central.files.boundary import resolve_inside
from serena_central.files.text import read_text
from serena_central.web.pages.analysis_status import GRAPH, root_of
from serena_central.web.pages.graph_view import REFERENCES, references_url
from serena_central.web.pages.listing import Column, Columns, Heading, Pager, paged
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.projects import known
from serena_central.web.pages.references import project_named

MOST_NEIGHBOURS = 40
"""Of each list: the strongest."""

SNIPPET_CHARS = 160


class Neighbour(msgspec.Struct, frozen=True):
    """A file, how many references lead to or from it, and where these are listed."""

    path: str
    count: int
    url: str


class GraphReference(msgspec.Struct, frozen=True):
    """One place; `line` is 1-based. `text` is that line as it is now, "" where there is none any more."""

    path: str
    line: int
    text: str
    name_path: str
    defined_in: str


COLUMNS = Columns[Reference](
    {
        "where": Column("Where", lambda one: (one.path, one.line)),
        "line": Column("Line"),
        "references": Column("References", lambda one: (one.name_path, one.defined_in)),
    },
)


def _neighbour_columns(parameter: str) -> Columns[Neighbour]:
    columns: dict[str, Column[Neighbour]] = {
        "file": Column("File", lambda one: one.path),
        "references": Column("References", lambda one: one.count, "number"),
    }
    return Columns(columns, default="-references", parameter=parameter)


USERS_COLUMNS, USED_COLUMNS = _neighbour_columns("users"), _neighbour_columns("used")


class GraphReferences(msgspec.Struct, frozen=True, kw_only=True):
    """Either of an edge (`source`, `target`) with its `rows`, or `of` one node with its neighbours. `changed`: code is
    not as it was when this was found, so that lines may have moved; None if unknown."""

    name: str
    graph_url: str
    analyzed: bool
    changed: bool | None
    of: str
    users: list[Neighbour]
    more_users: int
    used: list[Neighbour]
    more_used: int
    source: str
    target: str
    users_columns: list[Heading]
    used_columns: list[Heading]
    columns: list[Heading]
    rows: list[GraphReference]
    pager: Pager
    total: int


async def graph_references(visit: Visit) -> GraphReferences:
    root, query = root_of(visit), visit.query
    analysis_run = await visit.parts.analysis_runs.graph(root)
    of, source, target = (query.get(name, "") for name in ("of", "source", "target"))
    users, used, found = await anyio.to_thread.run_sync(_found, analysis_run, of, source, target)
    access = visit.parts.claude.access(root)  # what was found before a rule closed a file is not shown either
    users, used = ({path: one for path, one in ends.items() if not access.hides(path)} for ends in (users, used))
    shown = [one for one in found if not (access.hides(one.path) or access.hides(one.defined_in))]
    rows, pager = paged(COLUMNS.arranged(shown, visit), visit, REFERENCES)

    def listed(counts: Mapping[str, int], *, users: bool) -> list[Neighbour]:
        strongest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NEIGHBOURS]
        return [
            Neighbour(path, count, references_url(str(root), **_ends(path, of) if users else _ends(of, path)))
            for path, count in strongest
        ]

    return GraphReferences(
        name=known(visit, str(root)).name,
        graph_url=link(GRAPH, root=str(root)),
        analyzed=analysis_run is not None,
        changed=await visit.parts.analysis_runs.changed_since(analysis_run) if analysis_run else None,
        of=of,
        users_columns=USERS_COLUMNS.headings(visit, REFERENCES),
        used_columns=USED_COLUMNS.headings(visit, REFERENCES),
        users=USERS_COLUMNS.arranged(listed(users, users=True), visit),
        more_users=max(0, len(users) - MOST_NEIGHBOURS),
        used=USED_COLUMNS.arranged(listed(used, users=False), visit),
        more_used=max(0, len(used) - MOST_NEIGHBOURS),
        source=source,
        target=target,
        columns=COLUMNS.headings(visit, REFERENCES),
        rows=await anyio.to_thread.run_sync(_with_text, root, rows),
        pager=pager,
        total=len(found),
    )


def _ends(source: str, target: str) -> dict[str, str]:
    return {"source": source, "target": target}


def _found(
    analysis_run: GraphRun | None, of: str, source: str, target: str
) -> tuple[Mapping[str, int], Mapping[str, int], list[Reference]]:
    if analysis_run is None:
        return {}, {}, []
    if of:
        found = neighbours(analysis_run, of)
        return found.users, found.used, []
    return {}, {}, references(analysis_run, source, target) if source or target else []


def _with_text(root: Path, found: Sequence[Reference]) -> list[GraphReference]:
    texts = {path: _lines(root, path) for path in {one.path for one in found}}
    return [
        GraphReference(
            one.path,
            one.line + 1,
            texts[one.path][one.line].strip()[:SNIPPET_CHARS] if one.line < len(texts[one.path]) else "",
            one.name_path,
            one.defined_in,
        )
        for one in found
    ]


def _lines(root: Path, path: str) -> list[str]:
    try:
        return read_text(resolve_inside(root, path)).text.content.splitlines()
    except PathError:
        return []


PAGE = Page(
    path=REFERENCES,
    title="References",
    template="graph_references.html",
    sections={
        "references": Section("graph_references/_references.html", graph_references, (AnalysisEnded,), every_s=3600)
    },
    in_navigation=False,
    names=project_named,
)
