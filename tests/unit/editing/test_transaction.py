"""Operations on real files: all of them or none, whatever fails."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from serena_central.core.errors import (
    EditTakenOver,
    FileChanged,
    InvalidArguments,
    PathRefused,
    StoreError,
    WriteFailed,
)
from serena_central.editing import journal
from serena_central.editing.change import FileChange, Operation
from serena_central.editing.journal import Entry, Journal, Past
from serena_central.editing.transaction import Applier, writing_after
from serena_central.files.text import digest_of, read_text
from tests.support.editing import FailingDisk, applier_in, contents, operation, replacing

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(f"old {name}\n")
    return folder


async def test_files_are_changed_made_deleted_and_moved_together(root: Path, tmp_path: Path) -> None:
    (root / "d").write_text("moves\n")
    changes = operation(
        replacing(root / "a", "new a\n"),
        replacing(root / "b", None),
        replacing(root / "d", "moved\n", moved_to=root / "deep" / "er" / "d"),
        FileChange(root / "made", None, "made\n"),
    )
    with applier_in(tmp_path / "home") as applier:
        await applier.apply(changes)

    assert contents(root) == {"a": "new a\n", "c": "old c\n", "deep/er/d": "moved\n", "made": "made\n"}


async def test_folders_that_moves_leave_empty_go_along_and_come_back(root: Path, tmp_path: Path) -> None:
    old, new = root / "outer" / "old", root / "outer" / "new"
    for name in ("a", "deep/b"):
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_text(f"{name}\n")
    before = sorted(root.rglob("*"))

    def moves(source: Path, target: Path) -> Operation:
        return operation(*(replacing(source / name, f"{name}\n", moved_to=target / name) for name in ("a", "deep/b")))

    with applier_in(tmp_path / "home") as applier:
        await applier.apply(moves(old, new))
        assert sorted((root / "outer").rglob("*")) == [new, new / "a", new / "deep", new / "deep/b"]
        await applier.apply(moves(new, old))
        assert sorted(root.rglob("*")) == before
        # A folder that something else is in stays, and so does one whose file was deleted.
        (old / "deep/c").touch()
        await applier.apply(moves(old, new))
        await applier.apply(operation(replacing(old / "deep/c", None)))
    assert sorted(old.rglob("*")) == [old / "deep"]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"\xef\xbb\xbfa\r\nb", "utf-8"),
        (b"\xff\xfea\x00\r\x00\n\x00", "utf-8"),
        (b"caf\xe9\n", "latin-1"),
        (b"bad \xff byte\r", "utf-8"),
    ],
)
async def test_mark_encoding_line_ends_and_invalid_bytes_stay(
    root: Path, tmp_path: Path, data: bytes, encoding: str
) -> None:
    path = root / "a"
    path.write_bytes(data)
    read = read_text(path, encoding=encoding)
    with applier_in(tmp_path / "home") as applier:
        await applier.apply(operation(FileChange(path, read, "x" + read.text.content)))
        await applier.apply(operation(FileChange(path, read_text(path, encoding=encoding), read.text.content)))

    assert path.read_bytes() == data


async def test_mode_owner_and_attributes_stay(root: Path, tmp_path: Path) -> None:
    path = root / "a"
    path.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    before = path.stat()
    with applier_in(tmp_path / "home") as applier:
        await applier.apply(operation(replacing(path, "new\n")))
    after = path.stat()

    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


async def test_other_names_of_a_file_keep_its_text_and_are_counted(root: Path, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).hardlink_to(root / "a")
    with applier_in(tmp_path / "home") as applier:
        first = await applier.apply(operation(replacing(root / "a", "new\n"), replacing(root / "b", "new\n")))
        second = await applier.apply(operation(replacing(root / "a", "newer\n")))

    assert [(path.name, one.detached) for path, one in first.items()] == [("a", 2), ("b", 0)]
    assert [one.detached for one in second.values()] == [0]
    assert {(tmp_path / name).read_text() for name in ("x", "y")} == {"old a\n"}


async def test_a_read_only_file_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "b").chmod(0o444)
    with applier_in(tmp_path / "home") as applier, pytest.raises(PathRefused, match="read-only"):
        await applier.apply(operation(replacing(root / "a", "x"), replacing(root / "b", "x")))

    assert contents(root) == {name: f"old {name}\n" for name in "abc"}
    assert stat.S_IMODE((root / "b").stat().st_mode) == 0o444


async def test_a_file_that_changed_since_the_plan_is_left_alone(root: Path, tmp_path: Path) -> None:
    changes = operation(replacing(root / "a", "x"), replacing(root / "b", "x"))
    (root / "b").write_text("outside\n")
    with applier_in(tmp_path / "home") as applier, pytest.raises(FileChanged):
        await applier.apply(changes)

    assert contents(root) == {"a": "old a\n", "b": "outside\n", "c": "old c\n"}


async def test_a_file_is_never_made_over_another(root: Path, tmp_path: Path) -> None:
    with applier_in(tmp_path / "home") as applier:
        for change in (FileChange(root / "a", None, "x"), replacing(root / "b", "x", moved_to=root / "c")):
            with pytest.raises(FileChanged):
                await applier.apply(operation(change))

    assert contents(root) == {name: f"old {name}\n" for name in "abc"}


async def test_a_path_that_became_a_symlink_is_refused(root: Path, tmp_path: Path) -> None:
    change = replacing(root / "a", "x")
    (root / "a").rename(tmp_path / "elsewhere")
    (root / "a").symlink_to(tmp_path / "elsewhere")
    with applier_in(tmp_path / "home") as applier, pytest.raises(FileChanged):
        await applier.apply(operation(change))

    assert (tmp_path / "elsewhere").read_text() == "old a\n"


async def test_a_character_that_the_encoding_lacks_changes_nothing(root: Path, tmp_path: Path) -> None:
    read = read_text(root / "a", encoding="latin-1")
    with applier_in(tmp_path / "home") as applier, pytest.raises(InvalidArguments, match="latin-1, which has no"):
        await applier.apply(operation(replacing(root / "b", "x"), FileChange(root / "a", read, "𝒳")))

    assert contents(root) == {name: f"old {name}\n" for name in "abc"}


async def test_a_text_too_large_to_be_read_again_is_refused(root: Path, tmp_path: Path) -> None:
    with applier_in(tmp_path / "home") as applier, pytest.raises(InvalidArguments, match="MB"):
        await applier.apply(operation(replacing(root / "a", "x" * 20_000_001)))


def _everything(root: Path) -> list[FileChange]:
    return [
        replacing(root / "a", "new a\n"),
        replacing(root / "b", None),
        replacing(root / "c", "new c\n", moved_to=root / "folder" / "moved"),
        FileChange(root / "made", None, "made\n"),
    ]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
async def test_whatever_call_fails_all_files_are_as_before(root: Path, tmp_path: Path, code: int) -> None:
    before = contents(root)
    for failing in range(100):
        count = 0

        def fault(_what: str, _path: Path, failing: int = failing) -> None:
            nonlocal count
            count += 1
            if count == failing + 1:
                raise OSError(code, os.strerror(code))

        with applier_in(tmp_path / "home", FailingDisk(fault)) as applier:
            try:
                await applier.apply(operation(*_everything(root)))
                break
            except WriteFailed as error:
                assert not error.changed  # noqa: PT017 - it may come or not
        assert contents(root) == before
    assert failing >= 9
    assert contents(root) == {"a": "new a\n", "folder/moved": "new c\n", "made": "made\n"}


async def test_what_could_not_be_put_back_is_named_and_mended_by_the_next_start(root: Path, tmp_path: Path) -> None:
    before = contents(root)
    broken = False

    def fault(what: str, path: Path) -> None:
        nonlocal broken
        broken = broken or (what, path.name) == ("replace", "b")
        if broken:
            raise OSError(errno.EIO, "the disk is gone")

    home = tmp_path / "home"
    with (
        applier_in(home, FailingDisk(fault)) as applier,
        pytest.raises(WriteFailed, match="could not be restored") as e,
    ):
        await applier.apply(operation(*(replacing(root / name, f"new {name}\n") for name in "abc")))
    assert e.value.changed == [str(root / "a")]

    (past,) = Applier(Journal(home / "edits.journal")).open()

    assert past.applied
    assert contents(root) == {name: f"new {name}\n" for name in "abc"} != before


async def test_two_operations_on_the_same_files_wait_for_each_other(root: Path, tmp_path: Path) -> None:
    with applier_in(tmp_path / "home") as applier:
        outcomes: list[str] = []

        async def one(number: int, *names: str) -> None:
            try:
                await applier.apply(
                    operation(*(replacing(root / name, f"{number}\n") for name in names), name=f"e{number}")
                )
                outcomes.append("applied")
            except FileChanged:
                outcomes.append("refused")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one, 1, "a", "b")
                tasks.start_soon(one, 2, "b", "a")

        assert sorted(outcomes) == ["applied", "refused"]
        assert len(set(contents(root).values()) - {"old c\n"}) == 1


_CUT_OFF = """
import os, signal, sys
from pathlib import Path
import anyio
from tests.support.editing import FailingDisk, applier_in, operation, replacing
from serena_central.editing.change import FileChange
root, home, die_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
calls = 0
def fault(what, path):
    global calls
    calls += 1
    if calls == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
async def main():
    with applier_in(home, FailingDisk(fault)) as applier:
        await applier.apply(operation(
            replacing(root / "a", "new a\\n"), replacing(root / "b", None),
            replacing(root / "c", "new c\\n", moved_to=root / "moved"),
            replacing(root / "in" / "d", "new d\\n", moved_to=root / "d"),
            FileChange(root / "made" / "deep" / "e", None, "made\\n")))
anyio.run(main)
"""


async def _cut_off(root: Path, home: Path, die_at: int) -> "subprocess.CompletedProcess[bytes]":
    """A process that changes these files and `in/d`, killed before its n-th call that changes the disk."""
    (root / "in").mkdir(exist_ok=True)
    (root / "in/d").write_text("old d\n")
    return await anyio.run_process(
        [sys.executable, "-c", _CUT_OFF, str(root), str(home), str(die_at)],
        check=False,
        stderr=subprocess.STDOUT,
        cwd=Path(__file__).parents[3],
    )


async def test_killed_anywhere_the_next_start_has_all_old_or_all_new(root: Path, tmp_path: Path) -> None:
    old = contents(root) | {"in/d": "old d\n"}
    new = {"a": "new a\n", "d": "new d\n", "moved": "new c\n", "made/deep/e": "made\n"}
    ends: set[bool | None] = set()
    for die_at in range(1, 40):
        home = tmp_path / f"home{die_at}"
        ended = await _cut_off(root, home, die_at)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stdout.decode()

        past = Applier(Journal(home / "edits.journal")).open()

        assert contents(root) == (new if past[0].applied else old)
        assert (root / "in").exists() is not past[0].applied
        assert (root / "made").exists() is past[0].applied
        ends.add(past[0].applied)
        shutil.rmtree(root)
        root.mkdir()
        for name in ("a", "b", "c"):
            (root / name).write_text(old[name])
    else:
        pytest.fail("it never ran to its end")
    assert ends == {True, False}


async def test_a_torn_journal_is_read_up_to_the_tear(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with applier_in(home) as applier:
        await applier.apply(operation(replacing(root / "a", "1\n"), name="e1"))
        await applier.apply(operation(replacing(root / "a", "2\n"), name="e2"))
    file = home / "edits.journal"
    data = file.read_bytes()
    for cut in range(len(data)):
        file.write_bytes(data[:cut] + b"\x07garbage")
        applier = Applier(Journal(file))
        past = applier.open()
        applier.close()
        assert [one.entry.id for one in past] == ["e1", "e2"][: len(past)]
        assert all(one.applied for one in past[:-1])


async def test_what_lies_behind_damage_in_a_journal_is_kept_and_reported(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    with applier_in(home) as applier:
        for name in ("e1", "e2"):
            await applier.apply(operation(replacing(root / "a", f"{name}\n"), name=name))
    file = home / "edits.journal"
    damaged = bytearray(file.read_bytes())
    damaged[damaged.index(b"e1")] ^= 1
    file.write_bytes(damaged)

    applier = Applier(Journal(file))
    assert applier.open() == []
    applier.close()

    (aside,) = home.glob("edits.journal.damaged-*")
    assert aside.read_bytes() == damaged
    assert f"{aside.name}. Edits that were in progress" in caplog.text
    caplog.clear()
    applier = Applier(Journal(file))
    applier.open()
    applier.close()
    assert not caplog.text  # once


async def test_a_last_record_that_was_cut_off_is_no_damage(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    with applier_in(home) as applier:
        await applier.apply(operation(replacing(root / "a", "1\n"), name="e1"))
    file = home / "edits.journal"
    file.write_bytes(file.read_bytes()[:-3])

    applier = Applier(Journal(file))
    applier.open()
    applier.close()

    assert not list(home.glob("edits.journal.damaged-*"))
    assert "damaged" not in caplog.text


async def test_a_file_system_without_second_names_is_good_enough(root: Path, tmp_path: Path) -> None:
    def fault(what: str, _path: Path) -> None:
        if what == "link":
            raise OSError(errno.EPERM, "no links here")

    with applier_in(tmp_path / "home", FailingDisk(fault)) as applier:
        await applier.apply(operation(*_everything(root)))

    assert contents(root) == {"a": "new a\n", "folder/moved": "new c\n", "made": "made\n"}


@pytest.mark.parametrize("room", [0, 10])
async def test_a_journal_that_can_t_be_written_stops_the_edit_and_says_why(
    root: Path, tmp_path: Path, room: int
) -> None:
    with applier_in(tmp_path / "home") as applier:
        size = applier.journal.path.stat().st_size
        change = operation(replacing(root / "a", "x"))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room if room else 0, limits[1]))
        try:
            with pytest.raises(WriteFailed, match=r"edits\.journal.*file too large\. No file was changed"):
                await applier.apply(change)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
        assert applier.journal.path.stat().st_size == size

    assert contents(root) == {name: f"old {name}\n" for name in "abc"}


def test_a_journal_that_can_t_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="journal of edits"):
        Applier(Journal(tmp_path / "missing" / "edits.journal")).open()


async def test_a_long_journal_keeps_what_tells_repetitions_of_its_newest_operations(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROTATE_BYTES", 5000)
    monkeypatch.setattr(journal, "KEPT_WHOLE_BYTES", 1000)
    monkeypatch.setattr(journal, "MOST_KEPT", 30)
    home = tmp_path / "home"
    with applier_in(home) as applier:
        for number in range(100):
            change = replacing(root / "a", f"{number}\n")
            await applier.apply(Operation(f"e{number}", (change,), b"a record" * 10, f"key {number}"))

    assert (home / "edits.journal").stat().st_size < 15_000
    past = Applier(Journal(home / "edits.journal")).open()
    assert [one.entry.id for one in past] == [f"e{number}" for number in range(100 - len(past), 100)]
    assert [one.entry.repeat for one in past] == [f"key {number}" for number in range(100 - len(past), 100)]
    assert all(one.applied for one in past)
    assert len(past) >= 30
    assert past[-1].entry.record == b"a record" * 10
    assert past[0].entry.record == b""


async def test_an_operation_that_is_open_stays_whole_in_a_compacted_journal(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROTATE_BYTES", 2000)
    monkeypatch.setattr(journal, "KEPT_WHOLE_BYTES", 0)
    broken = True

    def fault(what: str, path: Path) -> None:
        if broken and what == "replace" and path.name != "a":
            raise OSError(errno.EIO, "the disk is gone")
        if broken and path.name == "a" and (root / "a").read_text() == "new a\n":
            raise OSError(errno.EIO, "the disk is gone")

    home = tmp_path / "home"
    with applier_in(home, FailingDisk(fault)) as applier:
        with pytest.raises(WriteFailed, match="could not be restored"):
            await applier.apply(operation(*(replacing(root / name, f"new {name}\n") for name in "ab")))
        broken = False
        for number in range(50):
            await applier.apply(operation(replacing(root / "c", f"{number}\n"), name=f"e{number}"))

    past = Applier(Journal(home / "edits.journal")).open()

    assert (past[0].entry.id, past[0].applied) == ("e-1", True)
    assert contents(root) == {"a": "new a\n", "b": "new b\n", "c": "49\n"}


@pytest.mark.parametrize("damage", [b"", None, b"\x07garbage"])
async def test_a_journal_that_was_lost_or_damaged_says_so_until_it_is_mended(
    root: Path, tmp_path: Path, damage: bytes | None
) -> None:
    home = tmp_path / "home"
    file = home / "edits.journal"
    with applier_in(home) as applier:
        await applier.apply(operation(replacing(root / "a", "1\n")))
        applier.journal.add_missing([])
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)

    for _ in range(2):
        found = Journal(file)
        assert found.open() == []
        assert not found.whole
        found.close()
    found = Journal(file)
    found.open()
    lost = Past(Entry("e-1", [], b"", "key"), applied=True, ended=True)
    found.add_missing([lost])
    found.close()

    found = Journal(file)
    assert found.open() == [lost]
    assert found.whole
    found.close()


@pytest.mark.parametrize("when", ["before it was staged", "after its rename"])
async def test_where_nobody_can_know_what_was_done_before_a_kill_nothing_is_said(
    root: Path, tmp_path: Path, when: str
) -> None:
    """Either way the file holds something else afterwards, and nothing stands beside it."""
    home = tmp_path / "home"
    with applier_in(home) as applier:
        await applier.apply(operation(replacing(root / "a", "new a\n")))
    file = home / "edits.journal"
    file.write_bytes(_without_last_record(file.read_bytes()))  # how it ended was not written any more
    (root / "a").write_text("somebody's, on top of the new one\n" if when == "after its rename" else "somebody's\n")

    for _ in range(2):
        (past,) = Applier(Journal(file)).open()
        assert (past.applied, past.ended) == (None, True)


def _without_last_record(data: bytes) -> bytes:
    place = last = 0
    while place < len(data):
        last = place
        place += 12 + int.from_bytes(data[place : place + 4], "little")
    return data[:last]


async def test_a_kill_before_the_rename_is_known_by_the_new_text_whatever_else_changed(
    root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ended = await _cut_off(root, home, 4)  # all is staged, nothing renamed
    assert ended.returncode == -signal.SIGKILL
    (root / "a").write_text("somebody's\n")

    (past,) = Applier(Journal(home / "edits.journal")).open()

    assert past.applied is False
    assert contents(root)["a"] == "somebody's\n"


async def test_a_file_that_was_made_meanwhile_is_not_replaced(root: Path, tmp_path: Path) -> None:
    def fault(what: str, path: Path) -> None:
        if (what, path.name) == ("link", "made"):
            (root / "made").write_text("somebody's\n")

    with applier_in(tmp_path / "home", FailingDisk(fault)) as applier, pytest.raises(FileChanged):
        await applier.apply(operation(replacing(root / "a", "x"), FileChange(root / "made", None, "made\n")))

    assert contents(root) == {"a": "old a\n", "b": "old b\n", "c": "old c\n", "made": "somebody's\n"}


async def test_a_file_that_changes_right_before_its_rename_is_left_alone(root: Path, tmp_path: Path) -> None:
    def fault(what: str, path: Path) -> None:
        if (what, path.name) == ("replace", "a"):
            (root / "b").write_text("somebody's\n")

    with applier_in(tmp_path / "home", FailingDisk(fault)) as applier, pytest.raises(FileChanged):
        await applier.apply(operation(replacing(root / "a", "x"), replacing(root / "b", "x")))

    assert contents(root) == {"a": "old a\n", "b": "somebody's\n", "c": "old c\n"}


async def test_a_file_that_is_deleted_right_after_its_rename_was_written_all_the_same(
    root: Path, tmp_path: Path
) -> None:
    def fault(what: str, path: Path) -> None:
        if (what, path.name) == ("replace", "b"):
            (root / "a").unlink()

    with applier_in(tmp_path / "home", FailingDisk(fault)) as applier:
        written = await applier.apply(operation(replacing(root / "a", "x"), replacing(root / "b", "x")))

    assert contents(root) == {"b": "x", "c": "old c\n"}
    assert {path.name: (one.stamp is None, one.digest) for path, one in written.items()} == {
        "a": (True, digest_of(b"x")),
        "b": (False, digest_of(b"x")),
    }


class Grants:
    """A fence that lets an operation begin, and then has something happen before its first rename."""

    def __init__(self, then: Callable[[Entry], None]) -> None:
        self._then = then
        self.holds = True
        self.ends: list[bool | None] = []

    def check(self, entry: Entry) -> None:
        self._then(entry)

    def still_holds(self, _entry: Entry) -> bool:
        return self.holds

    def ended(self, _entry: Entry, *, applied: bool | None) -> None:
        self.ends.append(applied)


@pytest.mark.parametrize("several", [False, True])
async def test_a_host_that_was_stopped_after_it_was_let_write_writes_nothing_once_another_has_taken_over(
    root: Path, tmp_path: Path, several: bool
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "home").mkdir()

    def taken_over(entry: Entry) -> None:
        other = Applier(Journal(tmp_path / "other/journal"), inherited=[entry])
        (past,) = other.open()
        assert past.applied is False  # it was not begun: nothing was renamed
        other.close()
        fence.holds = False

    fence = Grants(taken_over)
    stopped = Applier(Journal(tmp_path / "home/journal"), fence=fence)
    stopped.open()
    changes = [replacing(root / "a", "late\n"), *([FileChange(root / "made", None, "late\n")] if several else [])]
    with pytest.raises(EditTakenOver, match="unknown"):
        await stopped.apply(operation(*changes))
    stopped.close()
    assert fence.ends == []
    assert contents(root) == {name: f"old {name}\n" for name in "abc"}


async def test_the_one_that_takes_over_completes_what_was_begun_and_the_other_undoes_none_of_it(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "home").mkdir()
    begun: list[Entry] = []
    fence = Grants(begun.append)

    def fault(method: str, path: Path) -> None:
        if method == "replace" and path.name == "b" and fence.holds:  # stopped between two renames
            fence.holds = False
            other = Applier(Journal(tmp_path / "other/journal"), inherited=begun)
            (past,) = other.open()
            assert past.applied is True
            other.close()

    stopped = Applier(Journal(tmp_path / "home/journal"), disk=FailingDisk(fault), fence=fence)
    stopped.open()
    made = FileChange(root / "made", None, "new\n")
    with pytest.raises(EditTakenOver):
        await stopped.apply(operation(made, replacing(root / "a", "new\n"), replacing(root / "b", "new\n")))
    stopped.close()
    assert contents(root) == {"a": "new\n", "b": "new\n", "c": "old c\n", "made": "new\n"}
    assert Applier(Journal(tmp_path / "home/journal")).open()[0].applied is True  # as its own next start finds it


async def test_an_operation_begins_when_what_has_to_come_first_is_done(root: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, list[Past]]] = []

    async def first() -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(((root / "a").read_text(), applier.journal.past()))

    with applier_in(tmp_path / "home") as applier:
        with writing_after(first):
            await applier.apply(operation(replacing(root / "a", "new a\n")))
        assert seen == [("old a\n", [])]
        assert (root / "a").read_text() == "new a\n"
        await applier.apply(operation(replacing(root / "b", "new b\n"), name="e-2"))
    assert len(seen) == 1
