"""A large repository, as it is opened, indexed, switched to another branch and met again: right at every moment."""

import json
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.repository import IGNORED, OTHER, changed_by_other, checkout, generate, is_gone, path_of, successor_of
from serena_central.app import Application
from serena_central.files.stamp import RACY_NS
from serena_central.projects.project import Project
from tests.support.central import running_parts, session_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FILES = 12_000
BY_SERVER, BY_SYNTAX = 4_400, 4_403
"""A Python file and a Java one, which the other branch leaves alone."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, on a machine that has git and Python's language server."""
    root = generate(tmp_path / "large", FILES, 1_000)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return root


async def places(central: Application, root: Path, name: str) -> tuple[list[str], str]:
    """Files that define a name, and the notes of that answer."""
    asked = {"project": str(root), "name_path_pattern": name}
    answer = await central.caller.call(session_of(central), "find_symbol", asked)
    hits: list[dict[str, Any]] = json.loads(answer.blocks[0])
    return [hit["relative_path"] for hit in hits], "\n".join(answer.blocks[1:])


async def opened(central: Application, root: Path) -> Project:
    return await central.projects.open(central.projects.check(root))


async def await_index(project: Project, files: int) -> None:
    while len(project.index) < files:
        await anyio.sleep(0.05)


def indexed_at(project: Project) -> dict[str, int]:
    """When each file's symbols were asked for."""
    entries = {path: project.index.entry(path) for path in project.index.paths()}
    return {path: entry.indexed_at_ns for path, entry in entries.items() if entry is not None}


def asked_again(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {path for path, at in after.items() if before.get(path) != at}


def too_young(root: Path, indexed: dict[str, int]) -> set[str]:
    """Files that were indexed so soon after their change that another change may leave the same stamp."""
    changed = {path: max((status := (root / path).stat()).st_mtime_ns, status.st_ctime_ns) for path in indexed}
    return {path for path, at in indexed.items() if at - changed[path] < RACY_NS}


async def until_old(root: Path, paths: Iterable[str]) -> None:
    """Until the clock is so far behind these files' changes that their stamps can be believed."""
    newest = max((root / path).stat().st_ctime_ns for path in paths)
    while time.time_ns() - newest <= RACY_NS:
        await anyio.sleep(0.1)


async def test_every_answer_is_right_before_the_index_is_complete_after_a_checkout_and_after_a_restart(
    tmp_path: Path, root: Path
) -> None:
    changed = {path_of(number) for number in changed_by_other(FILES)}
    later = {successor_of(number) for number in changed_by_other(FILES) if is_gone(number)}
    with anyio.fail_after(900):
        await until_old(root, (path_of(number) for number in range(FILES)))
        async with running_parts(tmp_path) as central:
            project = await opened(central, root)
            with project.indexer.priority.caller():  # the fill gives way, so that this is asked before it ends
                assert (await places(central, root, f"only_{BY_SERVER}_3"))[0] == [path_of(BY_SERVER)]
                found, note = await places(central, root, f"only_{BY_SYNTAX}_3")
                assert found == [path_of(BY_SYNTAX)]
                assert "By syntax only (tree-sitter): " in note
                (shown,) = central.projects.snapshots()
                assert shown.indexed + shown.pending >= FILES
                assert 0 < shown.indexed < FILES
            await await_index(project, FILES)
            first = indexed_at(project)
            for number in range(7, FILES, FILES // 20):
                assert (await places(central, root, f"only_{number}_3"))[0] == [path_of(number)]

            checkout(root, OTHER)
            for number in [*changed_by_other(FILES)[:3], *changed_by_other(FILES)[-3:]]:
                assert (await places(central, root, f"only_{number}_3"))[0] == []
            assert (await places(central, root, "other_21_3"))[0] == [path_of(21)]
            assert (await places(central, root, "other_210_3"))[0] == [successor_of(210)]
            assert (await places(central, root, f"only_{BY_SYNTAX}_3"))[0] == [path_of(BY_SYNTAX)]
            await await_index(project, FILES)
            second = indexed_at(project)
            assert asked_again(first, second) == changed.intersection(second) | later

        young = too_young(root, second)
        async with running_parts(tmp_path) as central:
            project = await opened(central, root)
            assert (await places(central, root, f"only_{BY_SYNTAX}_3"))[0] == [path_of(BY_SYNTAX)]
            await await_index(project, FILES)
            assert asked_again(second, indexed_at(project)) == young
            assert young <= changed | later


async def test_ignored_trees_are_never_walked(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    scandir = os.scandir

    def listing(path: str) -> Any:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listing)
    with anyio.fail_after(300):
        async with running_parts(tmp_path) as central:
            project = await opened(central, root)
            assert len(project.tree.files) == FILES + 2
            assert (await places(central, root, "Ignored"))[0] == []
    own = [Path(path).relative_to(root).as_posix() for path in listed if Path(path).is_relative_to(root)]
    assert len(own) == FILES // 100 + -(-FILES // 5_000) + 1
    assert not [path for path in own if path.startswith(IGNORED) or "node_modules" in path]
