"""Which places are covered: asked of real projects, with a super-repo among them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from serena_central.app import Application
from serena_central.hook.search import Search
from serena_central.hook.suggestions import SearchPlace, calls_instead
from serena_central.projects.coverage import Coverage, coverage
from serena_central.projects.registry import KnownProject
from serena_central.projects.root_settings import SuperRepos
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

CONFIGURATION = """\
name: suite
type: super-repo
default_module: shop
modules:
  shop: {path: modules/shop, languages: [python]}
  bank: {path: modules/bank, languages: [python]}
routing_hints: {money: [bank]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    for name, text in (("shop", "class Cart: ...\n"), ("bank", "class Account: ...\n")):
        (root / "modules" / name).mkdir(parents=True)
        (root / "modules" / name / f"{name}.py").write_text(text)
    (root / "docs").mkdir()
    (root / "docs" / "build.py").write_text("class Builder: ...\n")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text(CONFIGURATION)
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path) as running:
        yield running


def repos_of(central: Application) -> SuperRepos:
    return central.caller._services.super_repos


async def covers(central: Application, path: Path, *globs: str) -> Coverage:
    """What is answered once all that is known is open."""
    answer = await coverage(central.projects, repos_of(central), [str(path)], globs)
    for project in central.projects.snapshots():
        await central.projects.open(Path(project.root))
    return await coverage(central.projects, repos_of(central), [str(path)], globs) if not answer.covered else answer


async def test_a_super_repo_stands_for_its_modules_and_its_own_folders_for_nothing(
    central: Application, suite: Path
) -> None:
    repos_of(central).at(suite)
    assert await covers(central, suite) == Coverage(covered=True, root=str(suite))
    assert await covers(central, suite / "modules", "*.py") == Coverage(
        covered=True, root=str(suite), relative_path="modules"
    )
    assert not (await covers(central, suite, "*.md")).covered
    assert not (await covers(central, suite / "docs")).covered
    bank = suite / "modules" / "bank"
    assert await covers(central, bank / "bank.py") == Coverage(covered=True, root=str(bank), relative_path="bank.py")


async def test_the_call_for_a_search_above_modules_asks_these_modules(central: Application, suite: Path) -> None:
    session = session_of(central, working_folder=str(suite))
    instead = calls_instead(Search("class Account", paths=("modules",)), SearchPlace(str(suite), "modules"), str(suite))
    (call,) = instead.calls
    answer = await central.caller.call(session, call.tool, call.arguments)
    assert '"relative_path":"bank.py"' in answer.blocks[0]


async def test_a_place_is_covered_if_tools_find_all_code_that_lies_there(central: Application, suite: Path) -> None:
    bank = suite / "modules" / "bank"
    assert (await covers(central, bank)).covered
    (bank / "build").mkdir()
    (bank / "build/old.py").write_text("class Old: ...\n")
    (bank / ".gitignore").write_text("build/\n")
    (bank / "sums.f90").write_text("subroutine sums()\nend subroutine\n")
    for project in central.projects.open_projects():
        await project.fresh()
    assert not (await covers(central, bank / "build")).covered
    assert not (await covers(central, bank / "build", "*.py")).covered
    assert await covers(central, bank) == Coverage(covered=True, root=str(bank), unread=["*.f90"])
    assert (await covers(central, bank, "*.py")).unread == []
    (suite / "modules/tool.py").write_text("class Tool: ...\n")
    for project in central.projects.open_projects():
        await project.fresh()
    assert not (await covers(central, suite / "modules")).covered
    assert (await covers(central, suite)).covered
    (bank / "other/.git").mkdir(parents=True)
    for project in central.projects.open_projects():
        await project.fresh()
    assert not (await covers(central, bank)).covered
    assert not (await covers(central, suite)).covered


async def test_a_known_project_that_is_closed_begins_to_open_when_it_is_asked_about(
    central: Application, tmp_path: Path
) -> None:
    root = tmp_path / "app"
    root.mkdir()
    (root / "app.py").write_text("class App: ...\n")
    asked = str(root / "app.py")
    assert not (await coverage(central.projects, repos_of(central), [asked], [])).covered
    central.projects.remember(KnownProject("app", str(root)))
    with anyio.fail_after(60):
        while not (await coverage(central.projects, repos_of(central), [asked], [])).covered:
            await anyio.sleep(0.01)
    assert [project.name for project in central.projects.open_projects()] == ["app"]
    assert not (await coverage(central.projects, repos_of(central), [str(root)], ["*.f90"])).covered
