"""One tree for all who follow a folder."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from serena_central.files.shared_trees import SharedTrees
from serena_central.files.tree import Change
from serena_central.files.watch import Watches

pytestmark = pytest.mark.anyio


@pytest.fixture
async def trees() -> AsyncGenerator[SharedTrees]:
    watches = Watches()
    shared = SharedTrees(watches)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(watches.run)
            await tasks.start(shared.run)
            yield shared
            tasks.cancel_scope.cancel()


async def test_followers_of_a_folder_share_a_tree_until_the_last_one_leaves(trees: SharedTrees, tmp_path: Path) -> None:
    heard: dict[str, list[Change]] = {"first": [], "second": []}
    first = await trees.follow(tmp_path, heard["first"].extend)
    second = await trees.follow(tmp_path, heard["second"].extend)
    assert first.tree is second.tree is not None
    (tmp_path / "a.py").write_text("")
    await first.tree.fresh()
    assert heard == {"first": [Change("a.py", "created")], "second": [Change("a.py", "created")]}
    first.end()
    first.end()
    (tmp_path / "a.py").unlink()
    await first.tree.fresh()
    assert [len(changes) for changes in heard.values()] == [1, 2]
    second.end()
    third = await trees.follow(tmp_path, heard["first"].extend)
    assert third.tree is not first.tree


async def test_a_folder_that_is_not_there_is_followed_without_a_tree_or_without_files(
    trees: SharedTrees, tmp_path: Path
) -> None:
    following = await trees.follow(tmp_path / "missing", lambda _: None)
    assert following.tree is None or not following.tree.files
    following.end()


async def test_who_gives_up_before_the_files_are_known_follows_nothing(trees: SharedTrees, tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await trees.follow(tmp_path, lambda _: None)
    following = await trees.follow(tmp_path, lambda _: None)
    assert following.tree is not None
    (tmp_path / "a.py").write_text("")
    await following.tree.fresh()
    assert list(following.tree.files) == ["a.py"]
