"""Which places are covered: asked of real projects, with a super-repo among them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from serena_central.app import Central
from serena_central.hook.instead import Place, calls_instead
from serena_central.hook.search import Search
from serena_central.projects.coverage import Coverage, coverage
from serena_central.projects.registry import KnownProject
from serena_central.projects.superrepo.known import SuperRepos
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
async def central(tmp_path: Path) -> AsyncGenerator[Central]:
    async with running_parts(tmp_path) as running:
        yield running


def repos_of(central: Central) -> SuperRepos:
    return central.caller._services.super_repos


async def covers(central: Central, path: Path, *globs: str) -> Coverage:
    """What is answered once all that is known is open."""
    answer = await coverage(central.projects, repos_of(central), str(path), globs)
    for project in central.projects.snapshots():
        await central.projects.open(Path(project.root))
    return await coverage(central.projects, repos_of(central), str(path), globs) if not answer.covered else answer


async def test_a_super_repo_stands_for_its_modules_and_its_own_folders_for_nothing(
    central: Central, suite: Path
) -> None:
    repos_of(central).at(suite)
    assert await covers(central, suite) == Coverage(covered=True, root=str(suite))
    assert await covers(central, suite / "modules", "*.py") == Coverage(covered=True, root=str(suite))
    assert not (await covers(central, suite, "*.md")).covered
    assert not (await covers(central, suite / "docs")).covered
    bank = suite / "modules" / "bank"
    assert await covers(central, bank / "bank.py") == Coverage(covered=True, root=str(bank), relative_path="bank.py")


async def test_the_call_for_a_search_in_all_of_a_super_repo_is_led_to_a_module(central: Central, suite: Path) -> None:
    session = session_of(central, working_folder=str(suite))
    (call, *_) = calls_instead(Search("class Account", paths=("modules/bank",)), Place(str(suite), ""), str(suite))
    answer = await central.caller.call(session, call.tool, call.arguments)
    assert '"relative_path":"bank.py"' in answer.blocks[0]


async def test_a_known_project_that_is_closed_begins_to_open_when_it_is_asked_about(
    central: Central, tmp_path: Path
) -> None:
    root = tmp_path / "app"
    root.mkdir()
    (root / "app.py").write_text("class App: ...\n")
    asked = str(root / "app.py")
    assert not (await coverage(central.projects, repos_of(central), asked, [])).covered
    central.projects.remember(KnownProject("app", str(root)))
    with anyio.fail_after(30):
        while not (await coverage(central.projects, repos_of(central), asked, [])).covered:
            await anyio.sleep(0.01)
    assert [project.name for project in central.projects.open_projects()] == ["app"]
    assert not (await coverage(central.projects, repos_of(central), str(root), ["*.f90"])).covered
