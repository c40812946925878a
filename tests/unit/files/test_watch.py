"""All roots share one queue of the system: each hears of its own, also when one lies in another."""

import os
import resource
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.files import inotify
from serena_central.files.notification import WatchUnavailable
from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(*roots: Path) -> AsyncIterator[list[FileTree]]:
    watches = Watches()
    trees = [FileTree(root, watches) for root in roots]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(watches.run)
            for tree in trees:
                await tasks.start(tree.run)
            yield trees
            tasks.cancel_scope.cancel()


def instances() -> int:
    links: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(descriptor.readlink()))
        except FileNotFoundError:  # the one that lists them
            continue
    return sum("inotify" in link for link in links)


def folders(parent: Path, names: Iterable[object]) -> list[Path]:
    made = [parent / str(name) for name in names]
    for folder in made:
        folder.mkdir()
    return made


async def test_two_hundred_roots_take_one_instance_and_each_hears_of_its_own(tmp_path: Path) -> None:
    before = instances()
    async with running(*folders(tmp_path, range(200))) as trees:
        assert instances() == before + 1
        for number, tree in enumerate(trees):
            (tree.root / f"{number}.py").touch()
        for number, tree in enumerate(trees):
            await tree.fresh()
            assert set(tree.files) == {f"{number}.py"}
            assert tree.note is None
    assert instances() == before


async def test_of_a_folder_in_two_roots_both_hear_and_one_goes_on_when_the_other_ends(tmp_path: Path) -> None:
    inner = tmp_path / "inner" / "deep"
    inner.mkdir(parents=True)
    watches = Watches()
    outer, nested = FileTree(tmp_path, watches), FileTree(tmp_path / "inner", watches)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(watches.run)
            await tasks.start(nested.run)
            async with anyio.create_task_group() as of_outer:
                await of_outer.start(outer.run)
                (inner / "a.py").touch()
                await nested.fresh()  # reads what the other must hear, too
                await outer.fresh()
                assert (set(nested.files), set(outer.files)) == ({"deep/a.py"}, {"inner/deep/a.py"})
                inner.rename(tmp_path / "away")
                await outer.fresh()
                await nested.fresh()
                assert (set(nested.files), set(outer.files)) == (set(), {"away/a.py"})
                (tmp_path / "away").rename(inner)
                of_outer.cancel_scope.cancel()
            (inner / "b.py").touch()
            await nested.fresh()
            assert set(nested.files) == {"deep/a.py", "deep/b.py"}
            tasks.cancel_scope.cancel()


async def test_who_does_not_read_keeps_no_more_than_a_bound_and_looks_at_everything_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "MOST_UNREAD", 10)
    async with running(*folders(tmp_path, ("busy", "still"))) as (busy, still):
        for number in range(20):
            (busy.root / str(number)).touch()
        scans = busy._scans_begun, still._scans_begun
        await still.fresh()
        await busy.fresh()
        assert len(busy.files) == 20
        assert (busy._scans_begun, still._scans_begun) == (scans[0] + 1, scans[1])


async def test_a_root_that_can_not_be_watched_for_want_of_descriptors_is_compared_and_says_so(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    watches = Watches()
    tree = FileTree(tmp_path, watches)
    async with anyio.create_task_group() as tasks:
        await tasks.start(watches.run)
        spare = [os.dup(0) for _ in range(4)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, hard))
        try:
            taken = _all_descriptors()
            with pytest.raises(WatchUnavailable, match="limit of inotify instances"):
                watches.open(tmp_path)
        finally:
            for descriptor in [*spare, *taken]:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await tasks.start(tree.run)
        assert tree.note is None, "the next one is watched again"
        tasks.cancel_scope.cancel()


def _all_descriptors() -> list[int]:
    taken: list[int] = []
    while True:
        try:
            taken.append(os.dup(0))
        except OSError:
            return taken
