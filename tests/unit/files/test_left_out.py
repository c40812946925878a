"""Files that are left out and that language servers read: they are followed apart from a root's own."""

import errno
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from serena_central.files import inotify, left_out, walk
from serena_central.files.inotify import InotifyWatch
from serena_central.files.mounts import REMOTE, mounted_below
from serena_central.files.tree import Change, FileTree
from serena_central.files.walk import Folder
from serena_central.files.watch import Watches
from tests.unit.files.test_tree import refuse_to_watch

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["watched", "compared"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test with a watch and without."""
    if request.param == "compared":
        refuse_to_watch(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / ".git").mkdir(parents=True)
    return folder


def write(root: Path, *paths: str, text: str = "") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def is_python(name: str) -> bool:
    return name.endswith(".py")


class Heard:
    """What listeners were told since the last time."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.own: list[Change] = []
        self.left_out: list[Change] = []
        self.in_order: list[Change] = []

    async def since(self) -> tuple[dict[str, str], dict[str, str]]:
        await self.tree.fresh()
        own, beside = (
            {one.path: one.kind for one in some if one.path[-1] != "/"} for some in (self.own, self.left_out)
        )
        self.own.clear()
        self.left_out.clear()
        return own, beside


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[Heard]:
    tree = FileTree(root, Watches(), is_read=is_python)
    heard = Heard(tree)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(60):
            await tasks.start(tree._watches.run)
            await tasks.start(lambda *, task_status: tree.run(task_status=task_status))
            tree.subscribe(heard.own.extend)
            tree.subscribe(heard.left_out.extend, for_servers=True)
            for is_left_out in (False, True):
                tree.subscribe(heard.in_order.extend, for_servers=is_left_out)
            yield heard
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("_either_way")
async def test_what_servers_read_of_ignored_files_is_told_apart_from_the_roots_own(root: Path) -> None:
    write(root, ".gitignore", text="_version.py\ngenerated/\n")
    write(root, "pkg/a.py", "pkg/_version.py", "generated/deep/api.py", "generated/deep/api.txt")
    async with running(root) as heard:
        tree = heard.tree
        assert set(tree.files) == {".gitignore", "pkg/a.py"}
        assert set(tree.left_out) == {"pkg/_version.py", "generated/deep/api.py"}
        write(root, "pkg/_version.py", "generated/deep/api.py", "generated/deep/api.txt", text="more")
        write(root, "generated/new.py", "generated/more/new.py")
        assert await heard.since() == (
            {},
            {
                "pkg/_version.py": "changed",
                "generated/deep/api.py": "changed",
                "generated/new.py": "created",
                "generated/more/new.py": "created",
            },
        )
        (root / "pkg/_version.py").unlink()
        (root / "generated").rename(root.parent / "elsewhere")
        gone = ("pkg/_version.py", "generated/deep/api.py", "generated/new.py", "generated/more/new.py")
        assert await heard.since() == ({}, dict.fromkeys(gone, "deleted"))
        (root.parent / "elsewhere").rename(root / "generated")
        assert (await heard.since())[1] == dict.fromkeys(gone[1:], "created")
        shutil.rmtree(root / "generated")
        write(root, "generated/new.py", text="other")
        await heard.since()
        assert set(tree.left_out) == {"generated/new.py"}
        assert tree.is_ignored("generated/new.py")


@pytest.mark.usefixtures("_either_way")
async def test_a_file_that_changes_sides_goes_before_it_comes(root: Path) -> None:
    write(root, "a.py", "part/deep/b.py", "part/deep/c.txt")
    async with running(root) as heard:
        tree = heard.tree
        for ignored in (True, False):
            write(root, ".gitignore", text="part/\na.py\n" if ignored else "")
            heard.in_order.clear()
            await heard.since()
            python = {"a.py", "part/deep/b.py"}
            assert python <= set(tree.left_out if ignored else tree.files)
            assert python.isdisjoint(tree.files if ignored else tree.left_out)
            for path in python:
                assert [one.kind for one in heard.in_order if one.path == path] == ["deleted", "created"]
        write(root, "part/deep/b.py", text="more")
        assert (await heard.since())[0] == {"part/deep/b.py": "changed"}


async def test_what_tools_keep_for_themselves_is_not_followed(root: Path) -> None:
    write(root, ".gitignore", text="*/\n")
    write(root, "node_modules/a.py", "out/.venv/b.py", "env/pyvenv.cfg", "env/c.py", "out/d.py")
    write(root, "target/CACHEDIR.TAG", text="Signature: 8a477f597d28d172789f06886806bc55")
    write(root, "target/debug/e.py")
    async with running(root) as heard:
        assert set(heard.tree.left_out) == {"out/d.py"}
        write(root, "made/debug/f.py")
        assert await heard.since() == ({}, {"made/debug/f.py": "created"})
        write(root, "made/CACHEDIR.TAG")
        await heard.since()
        write(root, "made/g.py", "made/debug/f.py", "node_modules/a.py", text="more")
        assert await heard.since() == ({}, {})
        assert not heard.tree.not_followed


@pytest.mark.usefixtures("_either_way")
async def test_nested_repositories_are_followed_as_long_as_they_are_some(root: Path) -> None:
    write(root, "nested/.git", "nested/deep/a.py")
    async with running(root) as heard:
        tree = heard.tree
        assert set(tree.left_out) == {"nested/deep/a.py"}
        (root / "nested/.git").unlink()
        await heard.since()
        assert "nested/deep/a.py" in tree.files
        assert not tree.left_out
        write(root, "nested/.git")
        await heard.since()
        assert set(tree.left_out) == {"nested/deep/a.py"}
        assert not tree.files


async def test_beyond_its_bounds_it_says_what_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST_FOLDERS", 4)
    monkeypatch.setattr(left_out, "MOST_FILES", 3)
    write(root, ".gitignore", text="out/\nsmall/\n")
    write(root, *(f"out/d{number}/deep/a.py" for number in range(9)), "small/a.py", "own/a.py")
    async with running(root) as heard:
        tree = heard.tree
        assert "small/a.py" in tree.left_out
        assert set(tree.files) == {".gitignore", "own/a.py"}
        assert tree.not_followed
        for number in range(9):
            shutil.rmtree(root / f"out/d{number}")
        shutil.rmtree(root / "out")
        await heard.since()
        assert not tree.not_followed
        write(root, *(f"small/{number}.py" for number in range(9)))
        await heard.since()
        assert len(tree.left_out) == 3
        assert list(tree.not_followed) == ["small/"]


async def test_of_a_folder_of_too_many_entries_nothing_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST_ENTRIES", 5)
    write(root, ".gitignore", text="data/\n")
    write(
        root, "data/a.py", "data/few/a.py", "data/many/deep/a.py", *(f"data/many/{number}.txt" for number in range(5))
    )
    async with running(root) as heard:
        tree = heard.tree
        assert set(tree.left_out) == {"data/a.py", "data/few/a.py"}
        assert list(tree.not_followed) == ["data/many/"]
        write(root, "data/many/b.py")
        assert await heard.since() == ({}, {})


async def test_a_file_system_that_is_mounted_in_an_ignored_folder_is_not_looked_into(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "proc" in mounted_below("/")
    monkeypatch.setattr(walk, "mounted_below", lambda _root: {"data/far"})
    write(root, ".gitignore", text="data/\n")
    write(root, "data/near/a.py", "data/far/a.py")
    async with running(root) as heard:
        assert set(heard.tree.left_out) == {"data/near/a.py"}
        assert list(heard.tree.not_followed) == ["data/far"]


async def test_many_symlinks_are_not_looked_into(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST_LINKS", 3)
    write(root, "data/0.jpg", "data/0.py")
    for number in range(1, 9):
        (root / f"data/{number}.jpg").symlink_to("0.jpg")
    async with running(root) as heard:
        assert not heard.tree.left_out
        assert not heard.tree.not_followed
    for number in range(1, 9):
        (root / f"data/{number}.py").symlink_to("0.py")
    async with running(root) as heard:
        assert len(heard.tree.left_out) == 3
        assert [path.rpartition("/")[0] for path in heard.tree.not_followed] == ["data"]


@pytest.mark.usefixtures("_either_way")
async def test_symlinks_into_a_remote_file_system_are_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = root.parent / "remote"
    write(remote, "a.py", "lib/b.py")
    monkeypatch.setattr(REMOTE, "points", lambda: frozenset({str(remote)}))
    (root / "early.py").symlink_to(remote / "a.py")
    async with running(root) as heard:
        assert not heard.tree.left_out
        assert set(heard.tree.not_followed) == {"early.py"}
        assert set(heard.tree.links) == {"early.py"}
        (root / "way").symlink_to(remote)
        (root / "late").symlink_to("way/../way/lib")
        await heard.tree.fresh()
        assert not heard.tree.left_out
        assert set(heard.tree.links) == {"early.py", "way", "late"}
    monkeypatch.setattr(REMOTE, "points", lambda: frozenset({str(root.parent)}))  # the root's own, too
    async with running(root) as heard:
        assert set(heard.tree.left_out) == {"early.py", "way", "late"}


async def test_less_is_followed_where_each_call_looks_at_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST_FILES", 3 * left_out.SHARE_UNWATCHED)
    refuse_to_watch(monkeypatch)
    write(root, ".gitignore", text="out/\n")
    write(root, *(f"out/{number}.py" for number in range(9)))
    async with running(root) as heard:
        assert len(heard.tree.left_out) == 3
        assert list(heard.tree.not_followed) == ["out/"]


async def test_what_belongs_to_the_root_has_the_watches_before_what_does_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, ".gitignore", text="out/\n")
    write(root, "out/deep/a.py", "out/b.py", "own/a.py")
    most = 4
    add = InotifyWatch.add

    def add_few(self: InotifyWatch, folder: Folder, path: str) -> str | None:
        if len(self.folders) >= most and folder.watch_id < 0:
            raise inotify._unavailable(OSError(errno.ENOSPC, ""))
        return add(self, folder, path)

    monkeypatch.setattr(InotifyWatch, "add", add_few)
    async with running(root) as heard:
        tree = heard.tree
        assert set(tree.left_out) == {"out/b.py", "out/deep/a.py"}
        write(root, "more/c.py")
        assert (await heard.since()) == ({"more/c.py": "created"}, {})
        assert tree.is_watched
        assert list(tree.not_followed) == ["out/"]
        write(root, "more/d.py", "out/b.py")
        assert (await heard.since()) == ({"more/d.py": "created"}, {})


async def test_later_listeners_hear_how_ignored_files_differ_from_what_was_seen(root: Path) -> None:
    write(root, ".gitignore", text="*.py\n")
    write(root, "changed.py", "deleted.py")
    async with running(root) as heard:
        await heard.since()
        seen = heard.tree.seen()
    write(root, "changed.py", "created.py", text="more")
    (root / "deleted.py").unlink()
    told: list[Change] = []
    async with running(root) as heard:
        await heard.tree.tell_since(seen, told.extend)
    assert {one.path: one.kind for one in told if one.path != ".gitignore"} == {
        "changed.py": "changed",
        "created.py": "created",
        "deleted.py": "deleted",
    }


async def told(heard: Heard) -> dict[str, str]:
    await heard.since()
    found = {one.path: one.kind for one in heard.in_order}
    heard.in_order.clear()
    return found


@pytest.mark.usefixtures("_either_way")
async def test_servers_hear_of_symlinks_and_of_changes_by_their_names(root: Path) -> None:
    write(root, "inside/deep/a.py", "other/a.py")
    elsewhere = root.parent / "elsewhere.py"
    write(root.parent, "elsewhere.py", "outside/b.py")
    (root / "early").symlink_to("inside/deep")
    async with running(root) as heard:
        write(root, "inside/deep/a.py", text="more")
        assert await told(heard) == {"inside/deep/a.py": "changed", "early/a.py": "changed"}
        (root / "file.py").symlink_to(elsewhere)
        (root / "late").symlink_to(root / "inside")
        (root / "up").symlink_to(root)
        assert (await told(heard)).items() >= {("file.py", "created"), ("late", "created"), ("up", "created")}
        write(root, "inside/deep/a.py")
        changed = {"inside/deep/a.py", "early/a.py", "late/deep/a.py", "up/inside/deep/a.py"}
        again = {"file.py", "up/file.py"}  # what was new when it was looked at is told once more
        assert {path: kind for path, kind in (await told(heard)).items() if path not in again} == dict.fromkeys(
            changed, "changed"
        )
        write(root.parent, "elsewhere.py", text="more")
        assert set(await told(heard)) == again
        (root / "early").unlink()
        (root / "early").symlink_to("other")
        assert (await told(heard))["early"] == "created"
        write(root, "other/a.py", text="more")
        assert set(await told(heard)) - again == {"other/a.py", "early/a.py", "up/other/a.py"}
        assert not heard.tree.not_followed
        for name in ("early", "up", "late", "file.py"):
            (root / name).unlink()
        (root / "file.py").write_text("")
        assert (await told(heard)).keys() >= {"early", "up", "late", "file.py"}
        write(root, "other/a.py", "file.py", text="much more")
        assert set(await told(heard)) == {"other/a.py", "file.py"}
        (root / "away").symlink_to(root.parent / "outside")
        await heard.since()
        assert list(heard.tree.not_followed) == ["away"]


async def test_servers_hear_of_a_new_folder_before_its_files(root: Path) -> None:
    write(root, "a.py", "known/a.py")
    async with running(root) as heard:
        seen = heard.tree.seen()
        write(root, "new/deep/b.py", "new/deep/c.txt", "known/d.py")
        await heard.since()
        told = [one.path for one in heard.in_order if one.kind == "created"]
        assert [path for path in told if path[-1] == "/"] == ["new/"]
        assert told.index("new/") < told.index("new/deep/b.py")
        (root / "new").rename(root / "other")
        heard.in_order.clear()
        await heard.since()
        assert Change("other/", "created") in heard.in_order
        later: list[Change] = []
        await heard.tree.tell_since(seen, later.extend)
    assert [one.path for one in later if one.path[-1] == "/"] == ["other/"]
    assert {one.path for one in later} >= {"other/deep/b.py", "other/deep/c.txt", "known/d.py"}


def change_something(root: Path, chance: random.Random, *, with_links: bool) -> None:
    """One random change of a tree that is small enough for changes to meet."""
    everything = [path for path in root.rglob("*") if not path.is_symlink()]
    folders = [path for path in everything if path.is_dir() and ".git" not in path.parts] or [root]
    files = [path for path in everything if path.is_file() and ".git" not in path.parts]
    folder, name = chance.choice([root, *folders]), f"{chance.choice('abc')}.py"
    match chance.randrange(9 if with_links else 8):
        case 0 | 1:
            if not (folder / name).is_dir() and not (folder / name).is_symlink():
                (folder / name).write_text("x" * chance.randrange(9))
        case 2 if files:
            chance.choice(files).unlink()
        case 3:
            (folder / chance.choice("de")).mkdir(exist_ok=True)
        case 4 if folders[0] is not root:
            shutil.rmtree(chance.choice(folders))
        case 5 if folders[0] is not root:
            moved, to = chance.choice(folders), folder / chance.choice("dfg")
            if not to.exists() and not to.is_relative_to(moved):
                moved.rename(to)
        case 6:
            (folder / ".gitignore").write_text(chance.choice(["", "a.py\n", "d/\n", "*\n", "/e/d/\nb.py\n", "!a.py\n"]))
        case 8:
            link = folder / chance.choice(["a.py", "h"])
            if not link.is_symlink() and not link.exists():
                link.symlink_to(chance.choice([*files, *folders, root.parent / "gone.py"]))
            elif link.is_symlink():
                link.unlink()
        case _ if folder != root:
            mark = folder / chance.choice([".git", "CMakeCache.txt", "pyvenv.cfg"])
            mark.unlink() if mark.exists() else mark.write_text("")
        case _:
            pass


@pytest.mark.parametrize("with_links", [False, True], ids=["", "with links"])
@pytest.mark.parametrize("seed", range(3))
async def test_after_random_changes_it_is_as_a_new_tree_sees_it(root: Path, seed: int, with_links: bool) -> None:
    chance = random.Random(seed)
    async with running(root) as heard:
        known: dict[str, str] = {}
        for _ in range(120):
            for _ in range(chance.randrange(1, 4)):
                change_something(root, chance, with_links=with_links)
            heard.in_order.clear()
            await heard.since()
            known |= {one.path: one.kind for one in heard.in_order if one.path[-1] != "/"}
            async with running(root) as new:
                assert heard.tree.left_out == new.tree.left_out
                assert heard.tree.files == new.tree.files
            both = {*heard.tree.files, *heard.tree.left_out}
            scan = heard.tree._scan
            assert scan is not None
            assert scan.left_out is not None
            there = {path for path, kind in known.items() if kind != "deleted"}
            assert there >= both.difference(scan.left_out.links) if with_links else there == both
            assert scan.left_out.files == len(heard.tree.left_out)
            assert scan.left_out.folders == sum(folder.left_out for folder in scan.folders.values())
