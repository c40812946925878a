"""Projects in the dashboard: what is known of them, what people do to them, and where words lead."""

from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from serena_central.web.pages import project, projects
from serena_central.web.pages.listing import Option, Pager
from serena_central.web.pages.page import Visit, link
from serena_central.web.responses import NotFound
from tests.support.browser import Visitor
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

SUPER_REPO = """\
project_name: everything
type: super-repo
default_module: web
modules:
  web: {path: web, languages: [python], concerns: [html pages]}
  store: {path: store, languages: [python, sql], concerns: [database]}
routing_hints:
  query: [store]
  gone: [nobody]
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "all"
    for module in ("web", "store"):
        (root / module).mkdir(parents=True)
        (root / module / "main.py").write_text("def main() -> None: ...\n")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(SUPER_REPO)
    return root


@pytest.fixture
async def central(tmp_path: Path, repo: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"projects": [str(repo)]}) as running:
        yield running


def visit(central: RunningCentral, **query: str) -> Visit:
    return Visit(central.central.dashboard.parts, {}, query, 0.0)


def row(root: Path, name: str) -> projects.ProjectRow:
    """Of a project that is not open."""
    where = link("/projects/one", root=str(root))
    return projects.ProjectRow(where, name, str(root), False, 0, 0, 0, 0, None, 100.0, None, "")


async def test_projects_in_the_table_exactly(central: RunningCentral, repo: Path) -> None:
    known = row(repo, "all")
    shown = await projects.table(visit(central))
    assert shown == projects.ProjectsTable(shown.columns, [known], Pager(1, 1, 1, "", ""), 1, 0)
    none = await projects.table(visit(central, state="open"))
    assert none == projects.ProjectsTable(none.columns, [], Pager(0, 0, 0, "", ""), 1, 0)
    assert (await projects.table(visit(central, q="nothing like it"))).rows == []
    assert await projects.filters(visit(central, q="a", state="open")) == projects.ProjectsFilters(
        "a",
        [Option("", "any", chosen=False), Option("open", "open", chosen=True), Option("known", "known", chosen=False)],
        "",
    )


async def test_a_super_repo_shows_its_modules_and_where_words_lead(central: RunningCentral, repo: Path) -> None:
    shown = await project.routing(visit(central, root=str(repo), words="the SQL query of the store"))
    problem = shown.problems[0]
    assert "'nobody' is not a module" in problem
    assert shown == project.Routing(
        root=str(repo),
        is_super_repo=True,
        columns=shown.columns,
        modules=[
            project.ModuleRow(
                "web", "web", "python", "html pages", True, False, link("/projects/one", root=f"{repo}/web")
            ),
            project.ModuleRow(
                "store", "store", "python, sql", "database", False, False, link("/projects/one", root=f"{repo}/store")
            ),
        ],
        words="the SQL query of the store",
        scores_columns=shown.scores_columns,
        scores=[project.Points("store", 33, 100.0, ["name store +20", "hint query +10", "language sql +3"])],
        module="store",
        certain=True,
        problems=[problem],
    )
    nothing = await project.routing(visit(central, root=str(repo), words="elsewhere"))
    assert (nothing.scores, nothing.module, nothing.certain) == ([], "web", False)


async def test_a_project_that_was_never_opened_says_so(central: RunningCentral, repo: Path) -> None:
    assert await project.about(visit(central, root=str(repo))) == project.About(
        row(repo, "all"), link("/projects/one/graph", root=str(repo)), None, [], 0, [], [], 0
    )
    for root in ("", "/nowhere", str(repo) + "/"):
        with pytest.raises(NotFound, match="No project is known"):
            await project.about(visit(central, root=root))


async def test_a_project_is_warmed_up_indexed_again_and_closed_by_its_buttons(
    central: RunningCentral, visitor: Visitor, repo: Path
) -> None:
    web, page = str(repo / "web"), f"/projects/one?root={quote(str(repo / 'web'))}"
    await visitor.see(f"/projects/one?root={quote(str(repo))}")  # reading the configuration makes its modules known
    quietly = {"hx-request": "true"}
    assert "not open" in (await visitor.act("/projects/index-again", {"root": web}, quietly)).text
    with central.central.bus.subscribe() as news, anyio.fail_after(60):
        assert "being warmed up" in (await visitor.act("/projects/warm", {"root": web}, quietly)).text
        async for event in news:
            if event.kind == "server.moved" and event.data["to"] == "idle":
                break
    html = await visitor.see(page)
    assert "python" in html
    assert "/dashboard/servers/" in html
    assert "being rebuilt" in (await visitor.act("/projects/index-again", {"root": web}, quietly)).text
    assert "was closed" in (await visitor.act("/projects/close", {"root": web}, quietly)).text
    assert central.central.projects.open_projects() == []
    assert (await visitor.act("/projects/warm", {"root": "/etc"})).status_code == 404


@pytest.mark.parametrize("action", ["warm", "close", "index-again"])
async def test_actions_on_projects_need_the_browsers_token(visitor: Visitor, repo: Path, action: str) -> None:
    refused = await visitor.act(f"/projects/{action}", {"root": str(repo), "csrf": "0" * 64})
    assert refused.status_code == 403
