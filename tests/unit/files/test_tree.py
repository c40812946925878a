"""After `fresh()` the tree shows the disk, whatever another process did just before; and the listeners were told."""

import errno
import mmap
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.files.inotify import InotifyWatch
from serena_central.files.notification import WatchUnavailable
from serena_central.files.path_watch import PathWatch
from serena_central.files.stamp import Stamp
from serena_central.files.tree import Change, FileTree
from serena_central.files.watch import Watches

pytestmark = pytest.mark.anyio

OTHER_PROGRAM = """
import os, random, shutil, sys
def folders(): return [name for name in os.listdir('.') if name.startswith('d')]
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class OtherProcess:
    """Runs Python statements in another process, in the root; a call returns when the statement is through."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", OTHER_PROGRAM],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __call__(self, statement: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(statement + "\n")
        assert self.process.stdout.readline() == "done\n"

    def write(self, path: str, content: str = "") -> None:
        self(f"os.makedirs(os.path.dirname({path!r}) or '.', exist_ok=True); open({path!r}, 'w').write({content!r})")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def other(root: Path) -> Iterator[OtherProcess]:
    other = OtherProcess(root)
    with other.process:
        yield other
        assert other.process.stdin is not None
        other.process.stdin.close()


@asynccontextmanager
async def running(tree: FileTree) -> AsyncIterator[list[Change]]:
    """Runs the tree; yields what a listener hears."""
    heard: list[Change] = []
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(60):
            await tasks.start(tree._watches.run)
            await tasks.start(lambda *, task_status: tree.run(task_status=task_status))
            end = tree.subscribe(heard.extend)
            yield heard
        end()
        tasks.cancel_scope.cancel()


def on_disk(root: Path) -> dict[str, Stamp]:
    return {
        path.relative_to(root).as_posix(): Stamp.of(path.lstat())
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture(params=["watched", "compared"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Runs a test with a watch and without."""
    if request.param == "compared":
        refuse_to_watch(monkeypatch)
    return request.param == "watched"


def refuse_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Watches, root: Path) -> None:
        raise WatchUnavailable("a test says so")

    monkeypatch.setattr(Watches, "open", refuse)


async def test_what_another_process_did_is_seen_at_once(root: Path, other: OtherProcess, watched: bool) -> None:
    (root / "old.py").write_text("old")
    (root / "gone.py").write_text("gone")
    tree = FileTree(root, Watches())
    async with running(tree) as heard:
        assert tree.files == on_disk(root)
        assert (tree.note is None) == watched
        other.write("new.py")
        other.write("a/b/c/deep.py", "deep")
        other.write("old.py", "older")
        other("os.unlink('gone.py')")
        await tree.fresh()
        assert tree.files == on_disk(root)
        assert sorted((change.path, change.kind) for change in heard) == [
            ("a/b/c/deep.py", "created"),
            ("gone.py", "deleted"),
            ("new.py", "created"),
            ("old.py", "changed"),
        ]


CHANGES = """
open(f'f{n % 5}', 'a').write('x')
held = open('held', 'a'); held.write(str(n)); held.flush()
os.path.exists(f'f{n % 5}') and os.unlink(f'f{n % 5}')
os.path.exists('f1') and os.replace('f1', f'f{n % 5}')
os.path.exists('f2') and os.utime('f2', ns=(n, n))
os.makedirs(f'd{n}/e/g', exist_ok=True); open(f'd{n}/e/g/new', 'w').write('x'); open(f'd{n}/top', 'w').close()
[os.rename(name, f'../out_{n}_{i}') for i, name in enumerate(folders())]
[os.rename(f'../{name}', f'd_{n}_{name}') for name in os.listdir('..') if name.startswith('out')]
[os.rename(name, f'd_{n}_{i}_') for i, name in enumerate(folders())]
[shutil.rmtree(name) for name in folders()[1:]]
os.makedirs('x/y', exist_ok=True); os.rename('x', f'd__{n}'); open(f'd__{n}/y/after', 'w').close()
[(os.makedirs(f'{d}/in/in2', exist_ok=True), open(f'{d}/in/in2/f', 'a').write('x')) for d in folders()]
[os.rename(folders()[0], f'{folders()[-1]}/moved{n}') for _ in folders()[1:2]]
os.path.isdir('s') and shutil.rmtree('s'); open('s', 'w').close()
os.path.isfile('s') and os.unlink('s'); os.makedirs('s/t', exist_ok=True); open('s/t/u', 'w').close()
""".strip().splitlines()


@pytest.mark.parametrize("seed", range(4))
async def test_hundreds_of_random_changes_are_never_missed(root: Path, other: OtherProcess, seed: int) -> None:
    dice = random.Random(seed)
    tree = FileTree(root, Watches())
    async with running(tree) as heard:
        shown = dict(tree.files)
        for number in range(100):
            for step in range(dice.choice((1, 1, 3))):
                other(f"n = {number * 3 + step}; {dice.choice(CHANGES)}")
            await tree.fresh()
            assert tree.files == on_disk(root), f"after step {number}"
            apply(shown, heard, tree)
            assert shown == tree.files == tree.snapshot
            assert tree.snapshot is tree.snapshot
            assert list(tree.below("")) == sorted(shown)
            for folder in {path.rpartition("/")[0] for path in shown} - {""}:
                assert list(tree.below(folder)) == sorted(path for path in shown if path.startswith(f"{folder}/"))
            for path in shown:
                others = [one for one in shown if one.rpartition("/")[0] == path.rpartition("/")[0] and one != path]
                assert tree.beside(path) == sorted(others)


def apply(shown: dict[str, Any], heard: list[Change], tree: FileTree) -> None:
    """Keeps a copy by what the listener heard; a change that contradicts the copy fails."""
    for change in heard:
        if change.kind == "deleted":
            del shown[change.path]
        else:
            assert (change.path in shown) == (change.kind == "changed")
            shown[change.path] = tree.files[change.path]
    heard.clear()


async def test_folders_that_appear_while_they_are_filled_are_seen_whole(root: Path) -> None:
    writer = (
        "import os\n"
        "for n in range(150):\n"
        "    os.makedirs(f'n{n}/a/b', exist_ok=True)\n"
        "    for name in ('n{}/f', 'n{}/a/f', 'n{}/a/b/f'): open(name.format(n), 'w').close()\n"
    )
    tree = FileTree(root, Watches())
    async with running(tree), await anyio.open_process([sys.executable, "-I", "-c", writer], cwd=root) as process:
        while process.returncode is None and not (root / "n149/a/b/f").exists():
            await tree.fresh()
            await anyio.lowlevel.checkpoint()
        await process.wait()
        await tree.fresh()
        assert tree.files == on_disk(root)
        assert len(tree.files) == 450


async def test_thousands_of_files_at_once_are_seen_also_when_the_queue_overflows(
    root: Path, other: OtherProcess
) -> None:
    limit = int(await anyio.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    tree = FileTree(root, Watches())
    count = limit // 2 + 100  # each is created and written to: two events
    async with running(tree) as heard:
        scans = tree._scans_begun
        other(f"[open(f'f{{n}}', 'w').write('x') for n in range({count})]")
        await tree.fresh()
        assert tree._scans_begun > scans, "the queue must have overflowed"
        assert len(tree.files) == count
        assert len(heard) == len(tree.files)
        other("[os.unlink(name) for name in os.listdir('.')]")
        await tree.fresh()
        assert not tree.files


async def test_ignored_folders_are_not_watched_and_ignore_files_are_obeyed_as_they_change(
    root: Path, other: OtherProcess, watched: bool
) -> None:
    await anyio.run_process(["git", "init", "-q"], cwd=root)
    for path in ("src/a.py", "src/a.log", "node_modules/x/y.js"):
        other.write(path)
    other.write(".gitignore", "node_modules/\n")
    tree = FileTree(root, Watches())
    async with running(tree) as heard:
        assert set(tree.files) == {".gitignore", "src/a.py", "src/a.log"}
        assert tree.is_ignored("node_modules/x/y.js")
        assert tree.is_ignored(".git/config")
        other.write("node_modules/x/z.js")
        await tree.fresh()
        assert heard == []
        other.write("src/.gitignore", "*.log\n")
        await tree.fresh()
        assert [change.kind for change in heard if change.path == "src/a.log"] == ["deleted"]
        assert tree.is_ignored("src/b.log")
        assert not tree.is_ignored("b.log")
        other.write(".gitignore", "!node_modules/\n")
        other.write(".git/info/exclude", "*.py\n")
        await tree.fresh()
        assert set(tree.files) == {".gitignore", "src/.gitignore", "node_modules/x/y.js", "node_modules/x/z.js"}
        other("shutil.rmtree('.git'); os.unlink('src/.gitignore'); open('.gitignore', 'w').close()")
        await tree.fresh()
        assert set(tree.files) == {".gitignore", "src/a.py", "src/a.log"}


@pytest.mark.parametrize("path_watch", [PathWatch(), PathWatch(watches=False)], ids=["notified", "by stat"])
async def test_rules_above_the_root_are_obeyed_as_they_change_and_go(tmp_path: Path, path_watch: PathWatch) -> None:
    above, root = tmp_path / "above", tmp_path / "above/part"
    root.mkdir(parents=True)
    (root / "a.py").touch()
    (root / "a.log").touch()
    tree = FileTree(root, Watches(), path_watch=path_watch)
    with closing(path_watch):
        async with running(tree):
            (above / ".gitignore").write_text("*.log\n")
            await tree.fresh()
            assert set(tree.files) == {"a.py", "a.log"}  # no repository
            await anyio.run_process(["git", "init", "-q"], cwd=above)
            for rules, files in (("*.log\n", {"a.py"}), ("*.py\n", {"a.log"}), ("*.py\n*.log\n", set[str]())):
                (above / ".gitignore").write_text(rules)
                await tree.fresh()
                assert set(tree.files) == files
            (above / "new").write_text("")
            (above / "new").replace(above / ".gitignore")
            (above / ".git/info/exclude").write_text("*.log\n")
            await tree.fresh()
            assert set(tree.files) == {"a.py"}
            shutil.rmtree(above / ".git")
            await tree.fresh()
            assert set(tree.files) == {"a.py", "a.log"}


async def test_ignored_and_nested_folders_are_neither_listed_nor_watched(
    root: Path, other: OtherProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("src/a.py", "node_modules/x/y.js", "vendored/z/b.py", "nested/deep/c.py"):
        other.write(path)
    await anyio.run_process(["git", "init", "-q"], cwd=root)
    await anyio.run_process(["git", "init", "-q"], cwd=root / "nested")
    other.write(".gitignore", "node_modules/\n/vendored/\n")
    listed: list[str] = []
    watched: list[str] = []
    scandir, add = os.scandir, InotifyWatch.add

    def list_folder(descriptor: Any) -> Any:
        listed.append(os.path.relpath(Path(f"/proc/self/fd/{descriptor}").readlink(), root))
        return scandir(descriptor)

    def watch_folder(self: InotifyWatch, folder: Any, path: str) -> str | None:
        watched.append(os.path.relpath(path, root))
        return add(self, folder, path)

    monkeypatch.setattr(os, "scandir", list_folder)
    monkeypatch.setattr(InotifyWatch, "add", watch_folder)
    async with running(FileTree(root, Watches())):
        # The nested repository's own folder tells when it ceases to be one.
        assert set(listed) == {".", "src", "nested"}
        assert set(watched) <= {".", "src", "nested"}


async def test_a_folder_that_becomes_a_repository_leaves_and_comes_back(
    root: Path, other: OtherProcess, watched: bool
) -> None:
    other.write("sub/a.py")
    tree = FileTree(root, Watches())
    async with running(tree):
        other("os.mkdir('sub/.git')")
        await tree.fresh()
        assert tree.files == {}
        assert tree.is_ignored("sub/a.py")
        other("os.rmdir('sub/.git'); open('sub/b.py', 'w')")
        await tree.fresh()
        assert set(tree.files) == {"sub/a.py", "sub/b.py"}


async def test_a_root_that_is_replaced_deleted_or_moved_is_followed_by_its_path(
    root: Path, other: OtherProcess, watched: bool
) -> None:
    other.write("a.py")
    tree = FileTree(root, Watches())
    async with running(tree):
        other("os.rename('../root', '../elsewhere')")
        await tree.fresh()
        assert tree.files == {}
        other("os.mkdir('../root'); open('../root/b.py', 'w').close()")
        await tree.fresh()
        assert set(tree.files) == {"b.py"}
        other("open('../root/c.py', 'w').close()")
        await tree.fresh()
        assert set(tree.files) == {"b.py", "c.py"}


async def test_listeners_hear_without_anybody_asking(root: Path, other: OtherProcess) -> None:
    tree = FileTree(root, Watches())
    told = anyio.Event()
    async with running(tree):
        tree.subscribe(lambda changes: told.set())
        other.write("a.py")
        with anyio.fail_after(60):
            await told.wait()
        assert "a.py" in tree.files


async def test_a_listener_that_fails_spoils_nothing_for_the_others(
    root: Path, other: OtherProcess, caplog: pytest.LogCaptureFixture
) -> None:
    tree = FileTree(root, Watches())

    def fail(changes: object) -> None:
        raise RuntimeError("on purpose")

    tree.subscribe(fail)
    async with running(tree) as heard:
        other.write("a.py")
        await tree.fresh()
        assert [change.path for change in heard] == ["a.py"]
    assert "on purpose" in caplog.text


async def test_when_watches_run_out_the_tree_goes_on_by_comparing(
    root: Path, other: OtherProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.write("a/a.py")
    tree = FileTree(root, Watches())
    add = InotifyWatch.add

    def run_out(self: InotifyWatch, folder: Any, path: str) -> str | None:
        if "/new" in path:
            raise WatchUnavailable(os.strerror(errno.ENOSPC))
        return add(self, folder, path)

    monkeypatch.setattr(InotifyWatch, "add", run_out)
    async with running(tree) as heard:
        assert tree.note is None
        other.write("new/b.py")
        other("shutil.rmtree('a')")
        await tree.fresh()
        assert set(tree.files) == {"new/b.py"}
        assert tree.note is not None
        other.write("c.py")
        await tree.fresh()
        assert set(tree.files) == {"new/b.py", "c.py"}
        assert [change.path for change in heard] == ["a/a.py", "new/b.py", "c.py"]


async def test_calls_that_arrive_during_a_comparison_share_the_next_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_watch(monkeypatch)
    tree = FileTree(root, Watches())
    async with running(tree), anyio.create_task_group() as tasks:
        begun = tree._scans_begun
        for _ in range(10):
            tasks.start_soon(tree.fresh)
        await anyio.wait_all_tasks_blocked()
        await tree.fresh()
        assert tree._scans_begun - begun <= 3


async def test_a_cancelled_caller_loses_nothing_for_the_next(root: Path, other: OtherProcess) -> None:
    tree = FileTree(root, Watches())
    async with running(tree):
        for number in range(20):
            other.write(f"folder{number}/file")
            with anyio.CancelScope() as scope:
                scope.cancel()
                await tree.fresh()
            await tree.fresh()
            assert f"folder{number}/file" in tree.files


async def test_a_root_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    tree = FileTree(tmp_path / "later", Watches())
    async with running(tree):
        assert tree.files == {}
        (tmp_path / "later").mkdir()
        shutil.copy(__file__, tmp_path / "later" / "a.py")
        await tree.fresh()
        assert set(tree.files) == {"a.py"}


async def test_a_second_change_within_one_step_of_the_clock_is_told_although_the_stamp_is_the_same(
    root: Path, other: OtherProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stamp, "of", classmethod(lambda cls, status: cls(3, now, now, status.st_ino)))
    now = time.time_ns() + 10**12
    tree = FileTree(root, Watches())
    async with running(tree) as heard:
        for content in ("one", "two"):
            other.write("a.py", content)
            await tree.fresh()
        assert [(change.path, change.kind) for change in heard] == [("a.py", "created"), ("a.py", "changed")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell nothing of a map that is closed")
async def test_what_was_written_through_a_memory_map_is_seen_when_it_is_closed(root: Path) -> None:
    (root / "a.py").write_text("old")
    tree = FileTree(root, Watches())
    async with running(tree):
        with (root / "a.py").open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        mapped[:3] = b"new"
        mapped.close()
        await tree.fresh()
        assert tree.files == on_disk(root)


async def test_files_that_nothing_told_of_are_examined_on_request(root: Path, tmp_path: Path) -> None:
    (root / "below").mkdir()
    (root / "below/a.py").write_text("old")
    (tmp_path / "elsewhere").hardlink_to(root / "below/a.py")
    tree = FileTree(root, Watches())
    async with running(tree) as heard:
        (tmp_path / "elsewhere").write_text("longer")
        await tree.examine(["below/a.py", "gone/none.py"])
        assert tree.files == on_disk(root)
        assert [(change.path, change.kind) for change in heard] == [("below/a.py", "changed")]


async def test_a_later_tree_tells_what_has_changed_since_an_earlier_one_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns() + 10**12

    def stamp_of(status: os.stat_result) -> Stamp:
        at = now if status.st_size == 3 else 0  # 3 bytes: within one step of the clock
        return Stamp(status.st_size, at, at, status.st_ino)

    monkeypatch.setattr(Stamp, "of", stamp_of)
    for name, content in (("kept", "a"), ("changed", "a"), ("deleted", "a"), ("just stamped", "abc")):
        (root / name).write_text(content)
    earlier, later = FileTree(root, Watches()), FileTree(root, Watches())
    async with running(earlier):
        pass
    for name, content in (("created", "a"), ("changed", "ab"), ("just stamped", "xyz")):
        (root / name).write_text(content)
    (root / "deleted").unlink()
    async with running(later) as heard:
        await later.tell_since(earlier.seen(), heard.extend)
    assert sorted((change.path, change.kind) for change in heard) == [
        ("changed", "changed"),
        ("created", "created"),
        ("deleted", "deleted"),
        ("just stamped", "changed"),
    ]


DEEP = """
os.chdir("deep") if os.path.isdir("deep") else (os.mkdir("deep"), os.chdir("deep"))
for _ in range(45): os.mkdir("d" * 100); os.chdir("d" * 100); open("x.py", "w").close()
"""


async def test_what_lies_deeper_than_a_path_may_be_long_is_left_out(root: Path, other: OtherProcess) -> None:
    """A clone makes such folders: git goes from one to the next."""
    (root / "a.py").write_text("")
    for statement in DEEP.strip().splitlines():
        other(statement)
    try:
        tree = FileTree(root, Watches())
        async with running(tree):
            paths = sorted(tree.files)
            assert paths[0] == "a.py"
            assert 30 < len(paths) < 42
            assert all((root / path).stat() for path in paths)
            (root / "b.py").write_text("")
            await tree.fresh()
            assert "b.py" in tree.files
    finally:
        other(f"os.chdir({str(root)!r}); shutil.rmtree('deep')")
