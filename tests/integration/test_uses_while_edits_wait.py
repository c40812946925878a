"""A refactoring goes by the references that there are when it is written, however long it waited before."""

from collections.abc import AsyncGenerator, Callable, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from serena_central.app import Application
from serena_central.core.errors import EditRefused
from serena_central.editing.change import Author, FileChange
from serena_central.projects.editing.joint_edits import learning_before_edits
from tests.support.central import running_parts, session_of
from tests.support.superrepo import platform

pytestmark = pytest.mark.anyio

AUTHOR = Author(session="s", client="c", tool="t", call="c-1")
USE = "from a import target\n\n\ndef use() -> int:\n    return target()\n"
DELETE = {"tool": "safe_delete_symbol", "name_path": "target", "relative_path": "a.py"}
RENAME = {"tool": "rename_symbol", "name_path": "target", "relative_path": "a.py", "new_name": "goal"}
TOTAL = {"name_path": "py_total", "relative_path": "scoring/risk.py"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text("def target() -> int:\n    return 0\n\n\ndef other() -> int:\n    return 1\n")
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    with anyio.fail_after(120):
        async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
            yield central


async def call(central: Application, project: Any, tool: str, **arguments: Any) -> str:
    answer = await central.caller.call(session_of(central), tool, {"project": project, **arguments})
    return "\n".join(answer.blocks)


@asynccontextmanager
async def held(central: Application, root: Path, path: str) -> AsyncGenerator[Callable[[], bool]]:
    """Another edit holds the file; tells whether one more waits for it."""
    edits = (await central.projects.open(root)).edits
    planning, ended = anyio.Event(), anyio.Event()

    async def plan() -> list[FileChange]:
        planning.set()
        await ended.wait()
        return []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(edits.change_files, [path], plan, AUTHOR)
        await planning.wait()
        try:
            yield lambda: edits.queued(path) > 1
        finally:
            ended.set()


@contextmanager
def written_after_the_plan(root: Path, path: Path, text: str) -> Generator[None]:
    """Has a file written once an edit of a root is planned, before that is written."""
    written: list[Path] = []

    async def learn(about: Path, _files: Collection[str]) -> None:
        if about == root and not written:
            written.append(path)
            path.write_text(text)

    with learning_before_edits(learn):
        yield
    assert written


async def test_a_symbol_that_is_used_while_its_deletion_waits_stays(central: Application, root: Path) -> None:
    refused: list[str] = []

    async def delete() -> None:
        with pytest.raises(EditRefused) as error:
            await call(central, str(root), **DELETE)
        refused.append(str(error.value))

    async with anyio.create_task_group() as tasks, held(central, root, "a.py") as is_waited_for:
        tasks.start_soon(delete)
        while not is_waited_for():
            await checkpoint()
        await call(central, str(root), "create_text_file", relative_path="c.py", content=USE)
    assert "It is referenced in c.py:0, c.py:4 in use." in refused[0]
    assert "target" in (root / "a.py").read_text()


async def test_a_symbol_that_is_used_once_its_deletion_is_planned_stays(central: Application, root: Path) -> None:
    with written_after_the_plan(root, root / "c.py", USE), pytest.raises(EditRefused, match=r"referenced in c\.py:0"):
        await call(central, str(root), **DELETE)
    assert "target" in (root / "a.py").read_text()


async def test_a_rename_reaches_what_was_written_once_it_was_planned(central: Application, root: Path) -> None:
    with written_after_the_plan(root, root / "c.py", USE):
        await call(central, str(root), **RENAME)
    assert (root / "c.py").read_text() == USE.replace("target", "goal")


async def test_a_module_that_begins_to_use_a_symbol_while_its_rename_waits_is_not_left_behind(
    central: Application, tmp_path: Path
) -> None:
    modules = platform(tmp_path) / "modules"
    risk, jobs = modules / "scoring/scoring/risk.py", modules / "scan/scan/jobs.py"
    using = jobs.read_text()
    jobs.write_text("")
    refused: list[str] = []

    async def rename() -> None:
        with pytest.raises(EditRefused) as error:
            await call(central, str(modules.parent), "rename_symbol", **where, new_name="score")
        refused.append(str(error.value))

    where = TOTAL | {"relative_path": "modules/scoring/scoring/risk.py"}
    async with (
        anyio.create_task_group() as tasks,
        held(central, modules / "scoring", "scoring/risk.py") as is_waited_for,
    ):
        tasks.start_soon(rename)
        while not is_waited_for():
            await checkpoint()
        jobs.write_text(using)
    assert "Other modules of the super-repo reference it: scan" in refused[0]
    assert "def py_total" in risk.read_text()


@pytest.mark.parametrize("module", ["scan", "scoring"])
async def test_a_rename_of_several_modules_reaches_what_was_written_once_one_had_planned(
    central: Application, tmp_path: Path, module: str
) -> None:
    modules = platform(tmp_path) / "modules"
    late = modules / module / module / "late.py"
    using = "from scoring.risk import py_total\n\nLATE = py_total()\n"
    roots = [str(modules / "scan"), str(modules / "scoring")]
    with written_after_the_plan(modules / "scoring", late, using):  # the last one that plans
        await call(central, roots, "rename_symbol", **TOTAL, new_name="score")
    assert late.read_text() == using.replace("py_total", "score")
    assert "def score" in (modules / "scoring/scoring/risk.py").read_text()


@pytest.mark.parametrize("change", [DELETE, RENAME], ids=["deletion", "rename"])
async def test_a_symbol_that_another_module_uses_once_its_change_is_planned_stays(
    central: Application, tmp_path: Path, change: dict[str, str]
) -> None:
    modules = platform(tmp_path) / "modules"
    scoring, scan = modules / "scoring", modules / "scan"
    extra = scoring / "scoring/extra.py"
    extra.write_text("def _target() -> int:\n    return 0\n")
    use = "from scoring.extra import _target\n\nLATE = _target()\n"
    with (
        written_after_the_plan(scoring, scan / "scan/late.py", use),
        pytest.raises(EditRefused, match=r"scan/late\.py"),
    ):
        await call(central, str(scoring), **change | {"name_path": "_target", "relative_path": "scoring/extra.py"})
    assert "def _target" in extra.read_text()
