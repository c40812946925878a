"""The indexer keeps the index true while files change, servers fail and callers leave."""

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest

from serena_central.core.errors import (
    LanguageServerError,
    PathError,
    PathNotFound,
    RequestFailed,
    ServerCrashed,
    ServerNotInstalled,
)
from serena_central.core.progress import reporting_to
from serena_central.core.text import Position, Range
from serena_central.files.stamp import RACY_NS, Stamp
from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.store.index_cache import IndexCache
from serena_central.symbols.columns import compressed
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.indexing import file_states
from serena_central.symbols.indexing.file_states import IndexProgress, Rate
from serena_central.symbols.indexing.incompleteness import Incompleteness, not_read_yet
from serena_central.symbols.indexing.indexer import MANY_READ, Indexer
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.indexing.symbol_source import Outline, Read
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.grammars import Grammar
from serena_central.symbols.syntax.messages import Packed

pytestmark = pytest.mark.anyio

SPAN = Range(Position(0, 0), Position(0, 1))


class Words:
    """A source whose symbols of a file are the words in it; it can be held up and made to fail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[str] = []
        self.broken: set[str] = set()
        self.crashing: set[str] = set()
        self.crashes_for_ever = False
        self.restarts = 0
        self.lent = 0
        self.server = object()
        self.moved: set[str] = set()
        """Files that another server answers for now."""
        self.hangs: set[str] = set()
        """Files of which the server says nothing."""
        self.kind: int = SymbolKind.VARIABLE
        """Of the words, as the server says."""
        self.decided = True
        self.unknowable: set[str] = set()
        """Files that the syntax knows better than their server."""
        self.missing = ""
        self.stands = "it is asked"
        self.left_alone: set[str] = set()
        self.parsed: list[str] = []
        self.parses = False
        self.parser = anyio.Event()
        self.parser.set()
        self.gate = anyio.Event()
        self.gate.set()

    def is_searched(self, path: str) -> bool:
        return not path.startswith("data/")

    def identity(self, path: str) -> str | None:
        if path in self.unknowable and self.decided:
            return self.instead(path)
        return f"words {2 if path in self.moved else 1}" if path.endswith(".txt") else None

    def place(self, path: str) -> str:
        return path

    def instead(self, path: str) -> str | None:
        return "by syntax words" if path in self.unknowable else None

    def grammar(self, path: str) -> Grammar | None:
        return Grammar("Word", "words", "words") if self.parses and path.endswith(".txt") else None

    async def read_by_syntax(self, paths: Sequence[str]) -> list[Read | LanguageServerError | PathError]:
        await self.parser.wait()
        return [self._parsed(path) for path in paths]

    def _parsed(self, path: str) -> Read | LanguageServerError | PathError:
        self.parsed.append(path)
        try:
            text, stamp = (self.root / path).read_text(), Stamp.of((self.root / path).stat())
        except OSError:
            return PathNotFound(path)
        if "unparsable" in text:
            return LanguageServerError("syntax", "it is too hard.")
        file = flatten([DocumentSymbol(word + "~", SymbolKind.VARIABLE, SPAN, SPAN) for word in text.split()])
        return Read(stamp, Packed(compressed(file), names=file.lookup_names))

    def server_of(self, path: str) -> str | None:
        return self.identity(path)

    def is_left_alone(self, path: str) -> bool:
        return path in self.left_alone

    is_side = is_left_alone

    def standing(self, path: str) -> str:
        return str(ServerNotInstalled("words", "Word", self.missing)) if self.missing else self.stands

    read_retries = 1_000

    @asynccontextmanager
    async def server_for(self, path: str) -> AsyncIterator["WordsServer"]:
        self.lent += 1
        if self.missing:
            raise ServerNotInstalled("words", "Word", self.missing)
        server = WordsServer(self, self.server)
        try:
            yield server
        except ServerCrashed:
            server.lost = True
            self.restarts += 1
            self.server = object()
            if not self.crashes_for_ever:
                self.crashing = set()
            raise

    async def outline(self, path: str) -> Outline:
        self.asked.append(path)
        text = (self.root / path).read_text()
        await self.gate.wait()
        if path in self.hangs:
            await anyio.sleep_forever()
        if path in self.crashing:
            raise ServerCrashed("words", -9, "")
        if path in self.broken:
            raise RequestFailed("words", "documentSymbol", -1, "no words today")
        return Outline([DocumentSymbol(word, self.kind, SPAN, SPAN) for word in text.split()])


class WordsServer:
    def __init__(self, words: Words, run: object) -> None:
        self.run = run
        self.lost = False
        self.outline = words.outline


class World:
    def __init__(self, root: Path, cache: IndexCache | None = None, policy: IndexingPolicy | None = None) -> None:
        self.root = root
        self.watches = Watches()
        self.tree = FileTree(root, self.watches)
        self.index = SymbolIndex()
        self.source = Words(root)
        self.indexer = Indexer(root, self.tree, self.index, self.source, cache, policy)

    def find(self, name: str) -> list[str]:
        return [hit.path for hit in self.index.find(parse_pattern(name))]


@asynccontextmanager
async def world(
    root: Path, cache: IndexCache | None = None, *, policy: IndexingPolicy | None = None
) -> AsyncIterator[World]:
    made = World(root, cache, policy)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.watches.run)
            await tasks.start(made.tree.run)
            made.tree.subscribe(made.indexer.changed)
            await made.indexer.load()
            yield made
            made.source.gate.set()
            tasks.cancel_scope.cancel()


async def test_files_are_indexed_by_need_and_the_rest_in_the_background(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "c.bin").write_text("three")
    async with world(tmp_path) as w, anyio.create_task_group() as tasks:
        assert w.indexer.progress.waiting == 2
        assert await w.indexer.ensure(["a.txt", "c.bin", "gone.txt"]) == []
        assert (w.find("one"), w.indexer.progress.waiting) == (["a.txt"], 1)
        tasks.start_soon(w.indexer.run)
        while w.indexer.progress.waiting:
            await anyio.wait_all_tasks_blocked()
        assert w.find("two") == ["b.txt"]
        tasks.cancel_scope.cancel()


async def test_when_the_background_has_read_many_files_it_says_so_once(tmp_path: Path) -> None:
    for number in range(MANY_READ):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    said: list[int] = []
    async with world(tmp_path) as w, anyio.create_task_group() as tasks:

        async def filled() -> None:
            said.append(w.indexer.progress.waiting)

        w.indexer.on_filled = filled
        tasks.start_soon(w.indexer.run)
        while not said:
            await anyio.wait_all_tasks_blocked()
        (tmp_path / "1.txt").write_text("two")
        await w.tree.fresh()
        while w.find("two") != ["1.txt"]:
            await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert said == [0]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("kind", [1 << 63, -1 << 63 + 1, 1 << 70])
async def test_a_file_whose_symbols_cannot_be_kept_fails_alone(tmp_path: Path, kind: int) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    async with world(tmp_path) as w:
        w.source.kind = kind
        (gap,) = await w.indexer.ensure(["a.txt"])
        assert "cannot be kept" in gap.reason
        w.source.kind = SymbolKind.VARIABLE
        assert await w.indexer.ensure(["b.txt"]) == []
        assert (w.find("one"), w.find("two")) == ([], ["b.txt"])


async def test_a_change_is_pending_until_it_is_asked_about_and_a_deletion_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("one")
    async with world(tmp_path) as w:
        await w.indexer.ensure(["a.txt", "b.txt"])
        (tmp_path / "a.txt").write_text("two")
        (tmp_path / "b.txt").unlink()
        await w.tree.fresh()
        assert (w.find("one"), w.indexer.progress.waiting) == ([], 1)
        await w.indexer.ensure(["a.txt", "b.txt"])
        assert (w.find("two"), len(w.index)) == (["a.txt"], 1)


async def test_an_answer_about_an_older_text_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    async with world(tmp_path) as w, anyio.create_task_group() as tasks:
        w.source.gate = anyio.Event()
        tasks.start_soon(w.indexer.ensure, ["a.txt"])
        await anyio.wait_all_tasks_blocked()
        (tmp_path / "a.txt").write_text("new!")
        await w.tree.fresh()
        w.source.gate.set()
        await w.indexer.ensure(["a.txt"])
        assert (w.find("old"), w.find("new!")) == ([], ["a.txt"])


async def test_callers_at_once_ask_once_and_one_who_leaves_spoils_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    async with world(tmp_path) as w:
        w.source.gate = anyio.Event()
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as leaving:
            leaving.start_soon(w.indexer.ensure, ["a.txt"])
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(w.indexer.ensure, ["a.txt"])
            tasks.start_soon(w.indexer.ensure, ["a.txt"])
            await anyio.wait_all_tasks_blocked()
            assert w.source.asked == ["a.txt"]
            leaving.cancel_scope.cancel()
            w.source.gate.set()
        assert w.find("one") == ["a.txt"]
        assert len(w.source.asked) == 2


async def test_what_could_not_be_indexed_is_said_and_tried_again_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    async with world(tmp_path) as w:
        w.source.broken = {"a.txt", "b.txt"}
        (gap,) = await w.indexer.ensure(["a.txt", "b.txt"])
        assert gap.files == 2
        assert "no words today" in gap.reason
        w.source.broken = set()
        (tmp_path / "a.txt").write_text("one more")
        await w.tree.fresh()
        assert await w.indexer.ensure(["a.txt", "b.txt"]) == [Incompleteness(gap.reason, 1)]
        assert w.find("more") == ["a.txt"]


async def test_a_server_that_crashes_in_the_middle_is_followed_by_one_that_reads_the_rest(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    async with world(tmp_path) as w:
        w.source.crashing = {"17.txt"}
        assert await w.indexer.ensure(list(w.tree.files)) == []
        assert [w.find(f"word{number}") for number in range(30)] == [[f"{number}.txt"] for number in range(30)]


async def test_a_file_that_crashes_every_server_does_not_keep_the_rest_from_being_read(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    async with world(tmp_path) as w:
        w.source.crashing, w.source.crashes_for_ever = {"17.txt"}, True
        gaps = await w.indexer.ensure(list(w.tree.files))
        assert (sum(gap.files for gap in gaps), w.source.restarts) == (w.indexer.progress.waiting, 2)
        assert w.indexer.progress.waiting <= 8
        assert w.find("word39") == ["39.txt"]
        assert w.find("word17") == []


async def test_the_background_gives_way_to_callers(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    async with world(tmp_path, policy=IndexingPolicy(gives_way_s=60)) as w, anyio.create_task_group() as tasks:
        with w.indexer.priority.caller():
            tasks.start_soon(w.indexer.run)
            await anyio.wait_all_tasks_blocked()
            assert await w.indexer.ensure(["7.txt"]) == []
            assert w.source.asked == ["7.txt"]
            await anyio.wait_all_tasks_blocked()
            assert w.source.lent == 1
        while w.indexer.progress.waiting:
            await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()


async def test_the_background_goes_on_beside_a_caller_that_never_ends(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    async with world(tmp_path, policy=IndexingPolicy(gives_way_s=0.01)) as w, anyio.create_task_group() as tasks:
        with w.indexer.priority.caller():
            tasks.start_soon(w.indexer.run)
            while w.indexer.progress.waiting:
                await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()


async def test_a_restart_answers_from_the_cache_what_is_unchanged(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    cache = IndexCache(tmp_path, root)
    for name in ("same", "changed", "gone", "racy", "damaged"):
        (root / f"{name}.txt").write_text(name)
    async with world(root, cache) as w:
        await w.indexer.ensure(list(w.tree.files))
        await w.indexer.save()
    aged = [
        msgspec.structs.replace(file, indexed_at_ns=file.indexed_at_ns + RACY_NS)
        for file in cache.load()
        if file.path != "racy.txt"
    ]
    assert cache.save(aged)
    (damaged,) = [file for file in aged if file.path == "damaged.txt"]
    at = damaged.compressed.index(b"damaged")
    assert cache.save([msgspec.structs.replace(damaged, compressed=_with_another_byte(damaged.compressed, at))])
    (root / "changed.txt").write_text("changed since")
    (root / "gone.txt").unlink()
    async with world(root, cache) as w:
        assert list(w.index.paths()) == ["same.txt"]
        assert sorted(w.indexer.pending_paths()) == ["changed.txt", "damaged.txt", "racy.txt"]
        assert await w.indexer.ensure(["same.txt"]) == []
        assert w.source.asked == []
        await w.indexer.ensure(w.indexer.pending_paths())
        await w.indexer.save()
    assert sorted(file.path for file in cache.load()) == ["changed.txt", "damaged.txt", "racy.txt", "same.txt"]


def _with_another_byte(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


async def test_a_file_that_is_read_on_demand_waits_until_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("Alpha")
    (tmp_path / "b.txt").write_text("Alpha")
    async with world(tmp_path) as w:
        assert w.indexer.pending_paths() == ["b.txt"]
        assert await w.indexer.ensure(["data/a.txt", "b.txt"]) == []
        assert sorted(w.find("Alpha")) == ["b.txt", "data/a.txt"]
        assert "data/a.txt" in w.indexer.on_demand


async def test_without_a_server_files_are_known_by_syntax_and_it_is_said_until_the_server_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.symbols.indexing.cache_sync.RACY_NS", 0)
    root = tmp_path / "root"
    root.mkdir()
    cache = IndexCache(tmp_path, root)
    for name in ("a", "b"):
        (root / f"{name}.txt").write_text(name)
        os.utime(root / f"{name}.txt", (1, 1))
    missing = "The language server words for Word is not installed. To install it: install words"
    async with world(root, cache) as w:
        w.source.missing, w.source.parses = "install words", True
        assert await w.indexer.ensure(["a.txt"]) == [Incompleteness(missing, 1, "Word")]
        assert (w.find("a~"), w.indexer.progress.waiting, w.source.parsed) == (["a.txt"], 1, ["a.txt"])
        assert await w.indexer.ensure(["a.txt", "b.txt"]) == [Incompleteness(missing, 2, "Word")]
        assert w.source.parsed == ["a.txt", "b.txt"]
        (root / "b.txt").unlink()
        await w.tree.fresh()
        assert w.indexer.gaps_within(None, []) == [Incompleteness(missing, 1, "Word")]
        await w.indexer.save()
    made = World(root, cache, IndexingPolicy(failure_holds_s=0))
    made.source.parses = True
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.watches.run)
            await tasks.start(made.tree.run)
            await made.indexer.load()
            assert made.find("a~") == ["a.txt"]
            assert made.indexer.gaps_within(None, []) == [Incompleteness(made.source.stands, 1, "Word")]
            tasks.start_soon(made.indexer.run)
            while not made.find("a"):
                await anyio.sleep(0.001)
            assert (made.find("a~"), made.indexer.gaps_within(None, [])) == ([], [])
            tasks.cancel_scope.cancel()


async def test_a_file_that_its_server_can_not_read_is_read_by_syntax_and_else_both_reasons_are_said(
    tmp_path: Path,
) -> None:
    for name, text in (("good", "good"), ("broken", "broken"), ("hard", "unparsable")):
        (tmp_path / f"{name}.txt").write_text(text)
    async with world(tmp_path) as w:
        w.source.parses = True
        w.source.broken = {"broken.txt", "hard.txt"}
        gaps = await w.indexer.ensure(list(w.tree.files))
        assert [(gap.files, gap.language) for gap in gaps] == [(1, None), (1, "Word")]
        assert "no words today" in gaps[0].reason
        assert gaps[0].reason.endswith("Nor by syntax: it is too hard.")
        assert (w.find("good"), w.find("broken~"), w.indexer.gave_up("hard.txt")) == (
            ["good.txt"],
            ["broken.txt"],
            True,
        )


async def test_a_caller_does_not_wait_for_a_slow_server_where_syntax_answers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    async with world(tmp_path, policy=IndexingPolicy(patience_s=0.01)) as w, anyio.create_task_group() as tasks:
        w.source.parses = True
        w.source.gate = anyio.Event()
        assert await w.indexer.ensure(["a.txt"]) == [Incompleteness(w.source.stands, 1, "Word")]
        assert (w.find("one~"), w.source.asked) == (["a.txt"], ["a.txt"])
        w.indexer.policy.failure_holds_s = 0
        w.source.gate.set()
        tasks.start_soon(w.indexer.run)
        while not w.find("one"):
            await anyio.sleep(0.001)
        assert w.indexer.gaps_within("a.txt", ["a.txt"]) == []
        tasks.cancel_scope.cancel()


async def test_a_caller_reads_by_syntax_what_the_background_fill_hangs_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    async with world(tmp_path, policy=IndexingPolicy(patience_s=0.01)) as w, anyio.create_task_group() as tasks:
        w.source.parses = True
        w.source.gate = anyio.Event()
        tasks.start_soon(w.indexer.run)
        while not w.source.asked:
            await anyio.sleep(0.001)
        assert await w.indexer.ensure(["a.txt"]) == [Incompleteness(w.source.stands, 1, "Word")]
        assert w.find("one~") == ["a.txt"]
        (tmp_path / "a.txt").write_text("two")
        await w.tree.fresh()
        w.source.gate.set()  # the server's late answer is about a text that is no more
        await anyio.wait_all_tasks_blocked()
        assert not w.find("one")
        tasks.cancel_scope.cancel()


async def test_a_server_that_does_not_start_is_asked_for_once_whatever_is_edited(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("one")
    async with world(tmp_path) as w, anyio.create_task_group() as tasks:
        w.source.missing = "install words"
        tasks.start_soon(w.indexer.run)
        await anyio.wait_all_tasks_blocked()
        for number in range(20):
            (tmp_path / "0.txt").write_text(f"word{number}")
            (tmp_path / f"new{number}.txt").write_text("one")
            await w.tree.fresh()
            await anyio.wait_all_tasks_blocked()
            assert len(await w.indexer.ensure(["0.txt", f"new{number}.txt"])) == 1
        assert (w.source.lent, w.source.asked) == (1, [])
        # What is there again is asked at once, for somebody says so.
        w.source.missing = ""
        w.indexer.ask_again()
        while w.indexer.progress.waiting:
            await anyio.wait_all_tasks_blocked()
        assert w.find("word19") == ["0.txt"]
        tasks.cancel_scope.cancel()


async def test_files_that_another_server_may_answer_for_are_looked_at_while_others_get_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.core.pacing.SLICE_S", 0.0)
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text(f"word{number}")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with world(tmp_path) as w, anyio.create_task_group() as tasks:
        await w.indexer.ensure(list(w.tree.files))
        w.source.asked.clear()
        w.source.moved = {"7.txt", "8.txt"}
        (tmp_path / "8.txt").unlink()
        tasks.start_soon(others)
        await anyio.lowlevel.checkpoint()
        before = turns
        w.indexer.doubt(w.tree.files)
        await w.tree.fresh()
        assert await w.indexer.ensure(["0.txt"]) == []
        assert turns - before >= 200
        assert w.indexer.pending_paths() == ["7.txt"]
        assert w.source.asked == []
        assert w.find("word9") == ["9.txt"]
        tasks.cancel_scope.cancel()


async def test_an_edit_makes_the_background_ask_about_the_edited_file_alone(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("one")
    (tmp_path / "good.txt").write_text("one")
    async with world(tmp_path) as w, anyio.create_task_group() as tasks:
        w.source.broken.add("bad.txt")
        tasks.start_soon(w.indexer.run)
        while w.indexer.pending_paths() != ["bad.txt"]:
            await anyio.wait_all_tasks_blocked()
        w.indexer.policy.failure_holds_s = 0  # as if long ago
        asked = w.source.asked.count("bad.txt")
        for number in range(20):
            (tmp_path / "good.txt").write_text(f"word{number}")
            await w.tree.fresh()
            while not w.find(f"word{number}"):
                await anyio.wait_all_tasks_blocked()
        assert w.source.asked.count("bad.txt") == asked == 1
        tasks.cancel_scope.cancel()


async def test_a_row_of_edits_is_written_to_the_cache_once_it_is_over(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one")
    cache = IndexCache(tmp_path, root)
    async with world(root, cache, policy=IndexingPolicy(save_after_s=60)) as w, anyio.create_task_group() as tasks:
        tasks.start_soon(w.indexer.run)
        for number in range(5):
            (root / "a.txt").write_text(f"word{number}")
            await w.tree.fresh()
            while not w.find(f"word{number}"):
                await anyio.wait_all_tasks_blocked()
        assert cache.load() == []
        w.indexer.policy.save_after_s = 0.01
        (root / "a.txt").write_text("last")
        await w.tree.fresh()
        while [file.names for file in cache.load()] != [b"\x001\0last\0"]:
            await anyio.sleep(0.001)
        assert w.find("last") == ["a.txt"]
        tasks.cancel_scope.cancel()


async def test_a_slow_index_is_written_while_it_is_filled(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.txt").write_text(f"word{number}")
    cache = IndexCache(tmp_path, root)
    async with world(root, cache, policy=IndexingPolicy(save_every_s=0)) as w, anyio.create_task_group() as tasks:
        w.source.hangs = {"3.txt"}
        tasks.start_soon(w.indexer.run)
        with anyio.fail_after(60):
            while len(cache.load()) < 4:
                await anyio.sleep(0.001)
        assert "3.txt" in w.indexer.pending_paths()
        tasks.cancel_scope.cancel()


async def test_many_files_are_read_by_syntax_where_their_server_is_slow(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number:02}")
    async with world(tmp_path) as w:
        w.indexer.policy.many_files = 10
        w.indexer.policy.save_every_files = 4
        w.indexer.policy.patience_s = w.indexer.policy.answer_s = 0.2
        w.source.parses = True
        w.source.hangs = set(w.tree.files)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(w.indexer.run)
            while w.indexer.pending_paths():
                await anyio.sleep(0.001)
            assert w.find("word11~") == ["11.txt"]
            assert len(w.source.parsed) == 12
            assert len(set(w.source.asked)) < 4  # of later ones it was not even asked
            tasks.cancel_scope.cancel()


async def test_in_a_large_project_nobody_waits_long_for_a_server_that_has_not_answered_yet(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number:02}")
    async with world(tmp_path) as w:
        w.indexer.policy.many_files = 10
        w.indexer.policy.patience_s = w.indexer.policy.answer_s = 1000
        w.indexer.policy.brief_patience_s = 0.1
        w.source.parses = True
        w.source.hangs = set(w.tree.files)
        await w.indexer.ensure(["11.txt"])
        assert w.find("word11~") == ["11.txt"]


async def test_files_that_nobody_reads_do_not_wait_for_a_server_that_is_slow(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number:02}")
        (tmp_path / f"{number:02}.json").write_text("{}")
    async with world(tmp_path) as w:
        w.indexer.policy.many_files = 10
        w.indexer.policy.patience_s = w.indexer.policy.answer_s = 0.1
        w.source.parses = True
        w.source.hangs = set(w.tree.files)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(w.indexer.run)
            while w.indexer.pending_paths() or len(w.source.asked) < 3:  # it is asked again
                await anyio.sleep(0.001)
            w.indexer.doubt(w.tree.files)
            await anyio.wait_all_tasks_blocked()
            assert (w.indexer.progress.indexed, w.indexer.progress.waiting) == (12, 0)
            assert w.indexer.is_complete
            tasks.cancel_scope.cancel()


async def test_files_that_come_are_read_before_servers_are_asked_about_what_is_known_by_syntax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.symbols.indexing.indexer.IMPROVED_AT_ONCE", 2)
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number:02}")
    async with world(tmp_path) as w:
        w.source.parses = True
        w.source.missing = "not there"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(w.indexer.run)
            while w.indexer.pending_paths():
                await anyio.sleep(0.001)
            w.source.missing, w.source.gate = "", anyio.Event()
            w.indexer.improve()
            while len(w.source.asked) < 2:
                await anyio.sleep(0.001)
            (tmp_path / "new.txt").write_text("new")
            await w.tree.fresh()
            w.source.gate.set()
            while w.indexer.pending_paths() or len(set(w.source.asked)) < 13:
                await anyio.sleep(0.001)
            assert w.source.asked.index("new.txt") < 5
            tasks.cancel_scope.cancel()


async def test_files_that_come_while_others_are_read_go_before_what_is_known_by_syntax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.symbols.indexing.indexer.IMPROVED_AT_ONCE", 2)
    for number in range(12):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number:02}")
    async with world(tmp_path) as w:
        w.source.parses = True
        w.source.missing = "not there"
        w.source.parser = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(w.indexer.run)
            while not w.source.lent:
                await anyio.sleep(0.001)
            await anyio.wait_all_tasks_blocked()
            (tmp_path / "new.txt").write_text("new")
            await w.tree.fresh()
            w.source.missing = ""
            w.indexer.improve()
            w.source.parser.set()
            while w.indexer.pending_paths() or len(set(w.source.asked)) < 13:
                await anyio.sleep(0.001)
            assert w.source.asked[0] == "new.txt"
            tasks.cancel_scope.cancel()


async def test_files_that_are_doubted_while_they_are_read_go_before_what_is_known_by_syntax(tmp_path: Path) -> None:
    paths = [f"{number}.txt" for number in range(4)]
    for path in paths:
        (tmp_path / path).write_text("word")
    policy = IndexingPolicy(many_files=2, patience_s=0.05, answer_s=0.05)
    async with world(tmp_path, policy=policy) as w:
        w.source.parses = True
        w.source.hangs = {*paths}
        await w.indexer.ensure(paths[:2])
        w.source.parser, parsing, read_by_syntax = anyio.Event(), anyio.Event(), w.source.read_by_syntax

        async def reading(paths: Sequence[str]) -> list[Read | LanguageServerError | PathError]:
            parsing.set()
            return await read_by_syntax(paths)

        w.source.read_by_syntax = reading
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(w.indexer.run)
            await parsing.wait()
            w.indexer.doubt(paths[2:])
            await w.indexer.settle()
            w.source.parser.set()
            with anyio.fail_after(5):
                while w.indexer.pending_paths():
                    await anyio.sleep(0.001)
            tasks.cancel_scope.cancel()


async def test_what_a_cancelled_save_leaves_is_saved_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one")
    cache = IndexCache(tmp_path, root)
    async with world(root, cache) as w:
        await w.indexer.ensure(["a.txt"])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await w.indexer.save()
        assert cache.load() == []
        await w.indexer.save()
        assert [file.names for file in cache.load()] == [b"\x001\0one\0"]


async def test_each_file_that_waits_is_counted_once(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("one")
    async with world(tmp_path) as w:
        await w.indexer.ensure(["0.txt", "1.txt"])
        w.indexer.doubt(w.tree.files)
        w.indexer.doubt(w.tree.files)
        progress = w.indexer.progress
        assert (progress.indexed, progress.waiting, w.indexer.is_complete) == (2, 8, False)
        await w.indexer.ensure(w.tree.files)
        progress = w.indexer.progress
        assert (progress.indexed, progress.waiting, progress.seconds_left, w.indexer.is_complete) == (10, 0, 0.0, True)


async def test_who_waits_for_files_is_told_how_far_they_are_and_never_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_states, "TOLD_EVERY_S", 0.001)
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text("one")
    told: list[float | None] = []
    said: list[str] = []

    def listener(message: str, part: float | None) -> None:
        said.append(message)
        told.append(part)
        if len(told) == 3:
            w.source.gate.set()

    async with world(tmp_path) as w:
        w.source.gate = anyio.Event()
        with reporting_to(listener):
            await w.indexer.ensure(w.tree.files)
    parts = [part for part in told if part is not None]
    assert len(parts) == len(told) >= 3
    assert parts == sorted(parts)
    assert said[0] == "reading symbols: 0 of 50 files"


def test_a_rate_is_that_of_the_last_seconds() -> None:
    now = 100.0
    rate = Rate(clock=lambda: now)
    assert rate.per_s == 0
    rate.count()
    assert rate.per_s == 0, "it says nothing yet"
    for _ in range(29):
        rate.count()
    now = 110.0
    assert rate.per_s == 3
    now = 140.0
    assert rate.per_s == 0
    assert IndexProgress(1, 5, rate.per_s).seconds_left is None
    assert IndexProgress(1, 60, 3.0).seconds_left == 20


async def test_a_caller_is_told_what_a_slow_server_has_said_in_time_and_has_the_rest_by_syntax(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number}")
    async with (
        world(tmp_path, policy=IndexingPolicy(patience_s=0.05, answer_s=0.05)) as w,
        anyio.create_task_group() as tasks,
    ):
        w.source.parses = True
        w.source.hangs = {f"{number:02}.txt" for number in range(3, 20)}
        gaps = await w.indexer.ensure(sorted(w.tree.files))
        assert gaps == [Incompleteness(w.source.stands, 17, "Word")]
        assert (w.find("word2"), w.find("word19~")) == (["02.txt"], ["19.txt"])
        w.indexer.policy.failure_holds_s = 0
        w.source.hangs = set()
        tasks.start_soon(w.indexer.run)
        while not w.find("word19"):
            await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()


async def test_what_nobody_could_read_in_time_is_said_and_read_by_the_next_caller(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"word{number}")
    async with world(tmp_path) as w:
        assert await w.indexer.ensure(["00.txt", "01.txt", "02.txt"]) == []
        w.source.hangs = {f"{number:02}.txt" for number in range(3, 20)}
        gaps = await w.indexer.ensure(sorted(w.tree.files), most_s=0.05)
        assert gaps == not_read_yet(17, of=20)
        assert w.find("word2") == ["02.txt"]
        w.source.hangs = set()
        assert await w.indexer.ensure(sorted(w.tree.files), most_s=20) == []
        assert w.find("word19") == ["19.txt"]


async def test_who_wants_an_answer_soon_waits_for_no_parser_beyond_the_deadline(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"word{name}")
    async with world(tmp_path, policy=IndexingPolicy(deadline_s=0.05)) as w:
        w.source.parses, w.source.missing = True, "not installed"
        assert len(await w.indexer.ensure_in_time(["a.txt"], began=anyio.current_time())) == 1
        w.source.parser = anyio.Event()
        gaps = await w.indexer.ensure_in_time(["a.txt", "b.txt", "c.txt"], began=anyio.current_time())
        missing = "The language server words for Word is not installed. To install it: not installed"
        assert gaps == [*not_read_yet(2, of=3), Incompleteness(missing, 1, "Word")]
        w.source.parser.set()
        gaps = await w.indexer.ensure(["a.txt", "b.txt", "c.txt"])
        assert [(gap.files, gap.language) for gap in gaps] == [(3, "Word")]


async def test_who_wants_an_answer_soon_gets_it_though_a_file_changes_right_after_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("old")
    async with world(tmp_path) as w:
        ensure = w.indexer.ensure
        texts = ["newer", "newest"]

        async def changing(paths: Iterable[str], *, most_s: float) -> list[Incompleteness]:
            gaps = await ensure(paths, most_s=most_s)
            if texts:
                (tmp_path / "a.txt").write_text(texts.pop())
                await w.tree.fresh()
            return gaps

        monkeypatch.setattr(w.indexer, "ensure", changing)
        assert await w.indexer.ensure_in_time(["a.txt"], began=anyio.current_time()) == []
        assert w.find("newer") == ["a.txt"]


async def test_what_was_read_by_syntax_instead_of_a_server_stays_so_until_the_server_can_know_the_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "root").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "root" / name).write_text("one")
    cache = IndexCache(tmp_path, tmp_path / "root")
    async with world(tmp_path / "root", cache) as w:
        w.source.unknowable = {"a.txt", "b.txt"}
        assert await w.indexer.ensure(["a.txt", "b.txt"]) == []
        await w.indexer.save()
    cache.save([msgspec.structs.replace(file, indexed_at_ns=file.indexed_at_ns + RACY_NS) for file in cache.load()], [])
    made = World(tmp_path / "root", cache)
    made.source.unknowable, made.source.decided = {"a.txt"}, False  # b's build is known now; of a nothing is decided
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.watches.run)
            await tasks.start(made.tree.run)
            await made.indexer.load()
            entry = made.index.entry("a.txt")
            assert entry is not None
            assert entry.source == "by syntax words"
            assert made.indexer.pending_paths() == ["b.txt"]
            tasks.cancel_scope.cancel()
