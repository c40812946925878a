"""The page of one project, named by the query's `root`: its index, its languages and servers, the modules of a
super-repo, and where the router would send some words."""

from dataclasses import replace
from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.core.errors import ConfigError
from serena_central.core.event_kinds import ProjectEvent, ServerEvent
from serena_central.pool.state import RunState
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.superrepo.router import is_certain
from serena_central.store.index_cache import IndexCache
from serena_central.web.pages import memory, project_activity, project_needs, statistics, trust_section
from serena_central.web.pages.analysis_status import GRAPH, WORK
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.projects import ONE, ProjectRow, known, project_row
from serena_central.web.pages.references import project_named, project_page, server_page
from serena_central.web.pages.rendering import bounded

PROBLEMS = 6
PROBLEM_CHARS = 300

FAILED_FILES = 500
"""Files that were not indexed, of which the reason is looked at."""

MOST_WORDS = 2000
"""Characters of a text to be routed."""


class ServerLink(msgspec.Struct, frozen=True):
    """A language server of the project, or of a root inside it. `lacks` is what its answers lack for want of trust."""

    name: str
    state: str
    url: str
    memory_bytes: int
    lacks: str


class About(msgspec.Struct, frozen=True):
    """`opened_at` is when its files were scanned; since then they are watched, unless the row's note says otherwise.

    `cache_bytes` is its index on disk, 0 where there is none; `problems` are files that are not in it, or by syntax
    only, a sentence for each reason.
    """

    project: ProjectRow
    graph_url: str
    opened_at: float | None
    languages: list[str]
    cache_bytes: int
    servers: list[ServerLink]
    problems: list[str]
    more_problems: int


class ModuleRow(msgspec.Struct, frozen=True):
    """A module of a super-repo; `url` is its own page, "" while it is no known project."""

    name: str
    path: str
    languages: str
    concerns: str
    default: bool
    open: bool
    url: str


class Points(msgspec.Struct, frozen=True):
    """What a module gets for the words, and for what. `share` is percent of the best."""

    module: str
    points: int
    share: float
    reasons: list[str]


class Routing(msgspec.Struct, frozen=True):
    """A super-repo's modules and the router's answer; all empty for other projects, `words` until some are typed.

    `module` is chosen, `certain` enough for an edit. `problems` are what is wrong with the configuration.
    """

    root: str
    is_super_repo: bool
    columns: list[Heading]
    modules: list[ModuleRow]
    words: str
    scores_columns: list[Heading]
    scores: list[Points]
    module: str
    certain: bool
    problems: list[str]


MODULE_COLUMNS = Columns[ModuleRow](
    {
        "name": Column("Module", lambda one: one.name.lower()),
        "languages": Column("Languages", lambda one: one.languages, "minor"),
        "concerns": Column("Concerns", lambda one: one.concerns, "minor"),
        "state": Column("State", lambda one: not one.open),
    },
    parameter="modules",
)
POINTS_COLUMNS = Columns[Points](
    {
        "module": Column("Module", lambda one: one.module.lower()),
        "points": Column("Points", lambda one: one.points, "number"),
        "for": Column("For"),
    },
    default="-points",
    parameter="points",
)


async def about(visit: Visit) -> About:
    parts, root = visit.parts, visit.query.get("root", "")
    snapshot, project = known(visit, root), parts.projects.opened(root)
    cache = IndexCache(parts.places.cache, Path(root)).path
    restricted = project.languages.restricted if project else {}
    problems = [bounded(str(one), PROBLEM_CHARS) for one in project.indexer.problems(FAILED_FILES)] if project else []
    return About(
        project=project_row(snapshot, visit.now),
        graph_url=link(GRAPH, root=root),
        opened_at=round(snapshot.opened_at) if snapshot.opened_at else None,
        languages=sorted(await project.languages_in_use()) if project else [],
        cache_bytes=await anyio.to_thread.run_sync(_size, cache),
        servers=[
            ServerLink(one.server, one.state, server_page(one.key), one.memory_bytes, restricted.get(one.server, ""))
            for one in parts.pool.snapshot()
            if one.root.is_relative_to(root) and one.state is not RunState.DISCONNECTED
        ],
        problems=problems[:PROBLEMS],
        more_problems=max(0, len(problems) - PROBLEMS),
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


async def routing(visit: Visit) -> Routing:
    root, words = visit.query.get("root", ""), visit.query.get("words", "")[:MOST_WORDS]
    known(visit, root)
    try:
        repo = visit.parts.super_repos.at(Path(root))
    except ConfigError as error:
        return Routing(root, False, [], [], "", [], [], "", False, [str(error)])
    if repo is None:
        return Routing(root, False, [], [], "", [], [], "", False, [])
    scores = repo.scores(words)
    default = repo.default_module.name if repo.default_module else ""
    points = [
        Points(one.module, one.points, round(100 * one.points / scores[0].points, 1), list(one.reasons))
        for one in scores
    ]
    return Routing(
        root=root,
        is_super_repo=True,
        columns=MODULE_COLUMNS.headings(visit, ONE),
        modules=MODULE_COLUMNS.arranged(_modules(visit, repo), visit),
        words=words,
        scores_columns=POINTS_COLUMNS.headings(visit, ONE),
        scores=POINTS_COLUMNS.arranged(points, visit),
        module=scores[0].module if scores else default,
        certain=is_certain(scores),
        problems=[str(problem) for problem in repo.problems],
    )


def _modules(visit: Visit, repo: SuperRepo) -> list[ModuleRow]:
    opened = {one.root: one.open for one in visit.parts.projects.snapshots()}
    return [
        ModuleRow(
            name=one.name,
            path=one.path,
            languages=", ".join(one.languages),
            concerns=", ".join(one.concerns),
            default=one == repo.default_module,
            open=opened.get(str(one.root), False),
            url=project_page(str(one.root)) if str(one.root) in opened else "",
        )
        for one in repo.modules.values()
    ]


def _own_calls(visit: Visit) -> dict[str, str]:
    return {"project": known(visit, visit.query.get("root", "")).name}


PAGE = Page(
    path=ONE,
    title="Project",
    template="project.html",
    sections={
        "about": Section("project/_about.html", about, (ProjectEvent, ServerEvent)),
        "missing": project_needs.MISSING,
        "activity": project_activity.SECTION,
        "memories": memory.SECTION,
        "use": statistics.ranged(ONE, of=_own_calls),
        "analysis": replace(WORK, every_s=5),
        "trust": trust_section.SECTION,
        "settings": project_needs.SETTINGS,
        "routing": Section("project/_routing.html", routing, (ProjectEvent,), every_s=60),
    },
    in_navigation=False,
    names=project_named,
)
