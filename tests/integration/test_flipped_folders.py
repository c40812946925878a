"""A folder that is a symlink every other moment: nothing outside is read, written or left behind."""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core import nofollow
from serena_central.core.errors import PathError, SerenaCentralError, WriteFailed
from serena_central.editing.change import FileChange
from serena_central.editing.journal import Entry, Journal, Past, Step
from serena_central.editing.transaction import Applier
from serena_central.files.containing import files_containing
from serena_central.files.listing import list_folder
from serena_central.files.repository import OuterRules
from serena_central.files.search import SearchRequest, search
from serena_central.files.text import digest_of, read_text
from serena_central.files.walk import TEMPORARY, TreeScan
from serena_central.files.words import words_of
from tests.support.central import RunningCentral, running_central
from tests.support.editing import applier_in, contents, operation, replacing
from tests.support.flipping import flipped

pytestmark = pytest.mark.anyio

CANARY = "canary"
"""Stands in every text and name outside, and nowhere in the project."""


@pytest.fixture(params=["openat2", "part by part"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "part by part":
        monkeypatch.setattr(nofollow, "_strategy", lambda: nofollow._by_parts)
    elif nofollow._strategy() is nofollow._by_parts:
        pytest.skip("this system has no openat2")


class World:
    """A project with a folder that flips, and what lies outside of it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.outside = folder / "project", folder / "outside"
        self.folder = self.root / "dir"
        for place, word in ((self.folder, "inside"), (self.outside, CANARY)):
            (place / "deep").mkdir(parents=True)
            for name in ("a.py", "b.py", "deep/c.py"):
                (place / name).write_text(f"class Needle:\n    word = '{word}'\n")
        (self.outside / f"{CANARY}.py").write_text(f"class Needle:\n    word = '{CANARY}'\n")

    def _seen_outside(self) -> list[tuple[str, int, bytes]]:
        """The times of folders tell also of what was put there and removed again."""
        return [
            (str(path), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in (self.outside, *sorted(self.outside.rglob("*")))
        ]

    @contextmanager
    def flipping(self) -> Generator[None]:
        """Afterwards all is outside as it was, and there is nothing in the project that came from there."""
        before = self._seen_outside()
        with flipped(self.folder, self.outside):
            yield
        assert self._seen_outside() == before
        assert not [path for path in self.root.rglob("*") if TEMPORARY in path.name or path.name.endswith(".tmp")]
        assert CANARY not in repr(contents(self.root))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _look(world: World) -> list[str]:
    """All that is found by every way of reading, each once."""
    root, paths = world.root, ["dir/a.py", "dir/b.py", "dir/deep/c.py", f"dir/{CANARY}.py"]
    found: list[str] = []
    for path in paths:
        try:
            found.append(read_text(root / path).text.content)
        except PathError:
            found.append("")
    found += files_containing(root, paths, CANARY)
    found += [path for path, words in words_of(root, paths, [CANARY]).items() if words.counts]
    listed = list_folder(root, "", recursive=True, hidden=lambda _path: False)
    found += [path for path in listed.files + listed.folders if CANARY in path]
    outer = OuterRules(root)
    analysis_run = TreeScan(root, outer, use_git=True)
    analysis_run.look_everywhere(outer)
    found += [path for path in analysis_run.take() if CANARY in path]
    return found


async def _read_by_turns(world: World, readings: int) -> None:
    request = SearchRequest("word = .*")
    texts: list[str] = []
    with world.flipping():
        for _ in range(readings // 10 + 1):
            texts += await anyio.to_thread.run_sync(_look, world)
            found = await search(world.root, ["dir/a.py", f"dir/{CANARY}.py", "dir/deep/c.py"], request)
            texts += [json.dumps(found.hits, default=list)]
    assert not [text for text in texts if CANARY in text]
    assert any("inside" in text for text in texts)
    assert "" in texts  # it was flipped while it was looked at


@pytest.mark.usefixtures("strategy")
async def test_nothing_outside_is_read(world: World) -> None:
    await _read_by_turns(world, 2000)


@pytest.mark.slow
@pytest.mark.usefixtures("strategy")
async def test_nothing_outside_is_read_in_ten_thousand_readings(world: World) -> None:
    await _read_by_turns(world, 10_000)


def _changes(world: World, number: int) -> tuple[FileChange, ...]:
    """Every kind of change, by turns. Raises PathError where the folder is the symlink just now."""
    folder, made = world.folder, world.folder / f"made{number // 6}.py"
    match number % 6:
        case 0:
            return (FileChange(made, None, "made\n"),)
        case 1:
            return (replacing(folder / "a.py", f"inside {number}\n"),)
        case 2:
            return replacing(folder / "b.py", f"inside {number}\n"), replacing(folder / "deep" / "c.py", f"{number}\n")
        case 3:
            return (FileChange(folder / f"new{number}" / "er" / "x.py", None, "made\n"),)
        case 4:
            return (replacing(made, "moved\n", moved_to=folder / "deep" / made.name),)
        case _:
            return (replacing(folder / "deep" / made.name, None),)


async def _write_by_turns(world: World, applier: Applier, writes: int) -> None:
    done = refused = 0
    with world.flipping():
        for number in range(writes):
            try:
                await applier.apply(operation(*_changes(world, number), name=f"e-{number}"))
                done += 1
            except WriteFailed as error:
                assert not error.changed  # noqa: PT017 - it may come or not
                refused += 1
            except SerenaCentralError:
                refused += 1
    assert done
    assert refused


@pytest.mark.usefixtures("strategy")
async def test_nothing_outside_is_written_and_nothing_left_behind(world: World, tmp_path: Path) -> None:
    with applier_in(tmp_path / "home") as applier:
        await _write_by_turns(world, applier, 600)
    assert all(past.applied is not None for past in Journal(tmp_path / "home" / "edits.journal").open())


@pytest.mark.slow
@pytest.mark.usefixtures("strategy")
async def test_nothing_outside_is_written_in_ten_thousand_edits(world: World, tmp_path: Path) -> None:
    with applier_in(tmp_path / "home") as applier:
        await _write_by_turns(world, applier, 10_000)


# --- all of it, by the tools -----------------------------------------------------------------------


def _calls(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    made = f"dir/made{number}.py"
    needle = {"substring_pattern": "word = .*"}
    yield "read_file", {"relative_path": "dir/a.py"}
    yield "read_file", {"relative_path": f"dir/{CANARY}.py"}
    yield "search_for_pattern", needle
    yield "search_for_pattern", {**needle, "skip_ignored_files": False}
    yield "search_for_pattern", {**needle, "relative_path": "dir", "skip_ignored_files": False}
    yield "list_dir", {"relative_path": "dir", "recursive": True}
    yield "find_file", {"file_mask": "*.py", "relative_path": "dir"}
    yield "get_symbols_overview", {"relative_path": "dir/b.py"}
    yield "find_symbol", {"name_path_pattern": "Needle", "include_body": True}
    yield "create_text_file", {"relative_path": made, "content": f"made = {number}\n"}
    yield "replace_content", {"relative_path": made, "needle": "made", "repl": "kept", "mode": "literal"}
    yield "insert_after_symbol", {"relative_path": "dir/b.py", "name_path": "Needle", "body": f"n{number} = 1"}
    yield "write_memory", {"memory_name": f"note{number}", "content": "inside"}
    yield "read_memory", {"memory_name": CANARY}
    yield "list_memories", {}
    yield "rename_memory", {"old_name": f"note{number}", "new_name": f"renamed{number}"}
    yield "delete_memory", {"memory_name": f"renamed{number}"}


async def _call_by_turns(central: RunningCentral, world: World, rounds: int) -> tuple[list[str], list[str]]:
    """What the calls answered, and with what they were refused."""
    answers: list[str] = []
    refusals: list[str] = []

    async with central.http() as http:
        for number in range(rounds):
            for tool, arguments in _calls(number):
                given = {"arguments": {"project": str(world.root), **arguments}, "session": "one"}
                answer = await http.post(f"/api/v1/tools/{tool}", json=given)
                assert answer.status_code < 500, answer.text
                (answers if answer.status_code == 200 else refusals).append(answer.text)
                if found := re.search(r'"(e-[^"\\]+)', answer.text):
                    undone = await http.post(f"/api/v1/edits/{found[1]}/undo?by=me")
                    assert undone.status_code < 500, undone.text
                    (answers if undone.status_code == 200 else refusals).append(undone.text)
    return answers, refusals


async def _use_by_turns(world: World, tmp_path: Path, rounds: int) -> None:
    memories, others = world.root / ".serena" / "memories", world.outside / "deep"
    memories.mkdir(parents=True)
    (others / f"{CANARY}.md").write_text(f"word = '{CANARY}'\n")
    (memories / "own.md").write_text("inside\n")
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}, patience_s=600 + 5 * rounds) as central:
        with world.flipping(), flipped(memories, others, seed=1):
            answers, refusals = await _call_by_turns(central, world, rounds)
    assert any("inside" in answer for answer in answers)
    assert not [answer for answer in answers if CANARY in answer]
    assert not [refusal for refusal in refusals if f"word = '{CANARY}'" in refusal]
    assert any("symlink" in refusal or "outside" in refusal for refusal in refusals)


async def test_no_tool_reads_or_writes_outside(world: World, tmp_path: Path) -> None:
    await _use_by_turns(world, tmp_path, 10)


@pytest.mark.slow
async def test_no_tool_reads_or_writes_outside_in_ten_thousand_calls(world: World, tmp_path: Path) -> None:
    await _use_by_turns(world, tmp_path, 600)


# --- after a crash ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("strategy")
def test_what_a_crash_left_is_not_mended_behind_a_link_but_when_the_folder_is_back(
    world: World, tmp_path: Path
) -> None:
    """Outside, everything has the names and contents that recovery looks for."""
    folder = world.folder
    steps = [
        Step(str(folder / name), digest_of(b"old"), digest_of(b"new"), f"{folder}/{TEMPORARY}{name}.new", None)
        for name in ("a.py", "b.py")
    ]
    for place in (folder, world.outside):
        (place / "a.py").write_bytes(b"new")
        (place / "b.py").write_bytes(b"old")
        (place / f"{TEMPORARY}b.py.new").write_bytes(b"new")
    before = contents(world.outside)
    file = tmp_path / "edits.journal"
    journal = Journal(file)
    journal.open()
    journal.begin(Entry("e-1", steps, b""))
    journal.close()

    folder.rename(world.root / "aside")
    folder.symlink_to(world.outside)
    (past,) = _recovered(file)
    assert past.applied is None
    assert contents(world.outside) == before

    folder.unlink()
    (world.root / "aside").rename(folder)
    (past,) = _recovered(file)
    assert past.applied
    assert contents(folder) == {"a.py": "new", "b.py": "new", "deep/c.py": (folder / "deep" / "c.py").read_text()}
    assert contents(world.outside) == before


def _recovered(file: Path) -> list[Past]:
    applier = Applier(Journal(file))
    try:
        return applier.open()
    finally:
        applier.close()


# --- links that stay -------------------------------------------------------------------------------


async def test_a_search_of_ignored_files_shows_no_secrets_behind_links(world: World, tmp_path: Path) -> None:
    async with running_central(tmp_path) as central, central.http() as http:
        token = central.central.token.header().removeprefix("Bearer ")
        ignored = world.root / "node_modules"
        ignored.mkdir()
        for name, target in {
            "passwd": "/etc/passwd",
            "etc": "/etc",
            "token": str(tmp_path / "home" / "token"),
            "home": str(tmp_path / "home"),
            "magic": "/proc/self/root",
            "again.py": "../dir/a.py",
        }.items():
            (ignored / name).symlink_to(target)
        assert (ignored / "token").read_text().strip() == token

        for where in ("", "node_modules"):
            given = {"substring_pattern": ".", "skip_ignored_files": False, "relative_path": where}
            answer = await http.post(
                "/api/v1/tools/search_for_pattern", json={"arguments": {"project": str(world.root), **given}}
            )
            assert answer.status_code == 200, answer.text
            assert "root:" not in answer.text
            assert token not in answer.text
            assert "symlinks that lead outside the folder, such as 'node_modules/" in answer.text
        for path in ("passwd", "etc/passwd", "token", "home/token", "magic/etc/passwd"):
            for tool, given in (("read_file", {}), ("search_for_pattern", {"substring_pattern": "."})):
                arguments = {"project": str(world.root), "relative_path": f"node_modules/{path}", **given}
                answer = await http.post(f"/api/v1/tools/{tool}", json={"arguments": arguments})
                assert answer.status_code == 400, answer.text
        listed = await http.post(
            "/api/v1/tools/list_dir",
            json={"arguments": {"project": str(world.root), "relative_path": "node_modules", "recursive": True}},
        )
        names = json.loads(listed.json()["blocks"][0])
        assert not [path for path in names["dirs"] + names["files"] if path.count("/") > 1]
