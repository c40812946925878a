"""A find is complete although the index is not; the one symbol that is meant is found, or the error says what to do."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import AmbiguousSymbol, SymbolNotFound
from serena_central.files.containing import COUNTED_AT_ONCE, files_containing
from serena_central.symbols import finder as finder_module
from serena_central.symbols.finder import Finder
from serena_central.symbols.indexing.incompleteness import NOT_READ_YET, Incompleteness
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.namepath import parse_pattern
from tests.unit.symbols.indexing.test_indexer import World, world

pytestmark = pytest.mark.anyio


def finder(w: World) -> Finder:
    return Finder(w.root, w.tree, w.index, w.indexer)


async def test_only_files_that_hold_the_name_are_asked(tmp_path: Path) -> None:
    for name, text in {"a": "one two", "b": "two", "c": "three", "d": "twofold"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    async with world(tmp_path) as w:
        found = await finder(w).find(parse_pattern("two"), None)
        assert [hit.path for hit in found.hits] == ["a.txt", "b.txt"]
        assert sorted(w.source.asked) == ["a.txt", "b.txt"]
        found = await finder(w).find(parse_pattern("two", substring=True), None)
        assert [hit.name_path for hit in found.hits] == ["two", "two", "twofold"]


async def test_of_many_files_those_are_asked_first_that_name_what_holds_the_symbol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder_module, "MANY_CANDIDATES", 3)
    (tmp_path / "shop").mkdir()
    for name, text in {"a": "cart/buy", "b": "buy", "c": "other/buy", "shop/d": "buy", "e": "cart"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    async with world(tmp_path) as w:
        w.source.parses = True
        found = await finder(w).find(parse_pattern("cart/buy"), None)
        assert ([hit.path for hit in found.hits], found.gaps) == (["a.txt"], [])
        assert w.source.asked == ["a.txt"]
        found = await finder(w).find(parse_pattern("shop.buy"), None)
        assert [hit.path for hit in found.hits] == ["shop/d.txt"]
        assert w.source.asked == ["a.txt", "shop/d.txt"]
        found = await finder(w).find(parse_pattern("none/buy"), None)
        assert (list(found.hits), found.gaps) == ([], [])
        assert sorted(w.source.asked) == ["a.txt", "b.txt", "c.txt", "shop/d.txt"]


async def test_a_server_may_name_what_holds_a_symbol_by_what_no_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder_module, "MANY_CANDIDATES", 2)
    for name, text in {"a": "Companion/buy", "b": "companion/buy", "c": "buy"}.items():
        (tmp_path / f"{name}.kt.txt").write_text(text)
    async with world(tmp_path) as w:
        await w.indexer.ensure(["a.kt.txt"])
        w.source.asked.clear()
        found = await finder(w).find(parse_pattern("Companion/buy"), None)
        assert "a.kt.txt" in [hit.path for hit in found.hits]
        assert sorted(w.source.asked) == ["b.kt.txt", "c.kt.txt"], "either may hold one"


async def test_a_find_stays_within_its_folder_or_file(tmp_path: Path) -> None:
    for path in ("in/a.txt", "in/b.txt", "inside.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("word")
    async with world(tmp_path) as w:
        within = {
            place: [hit.path for hit in (await finder(w).find(parse_pattern("word"), place)).hits]
            for place in ("in", "in/b.txt", None)
        }
        assert within == {
            "in": ["in/a.txt", "in/b.txt"],
            "in/b.txt": ["in/b.txt"],
            None: ["in/a.txt", "in/b.txt", "inside.txt"],
        }


async def test_several_that_fit_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 50)
    async with world(tmp_path) as w:
        with pytest.raises(AmbiguousSymbol, match="matches 50 symbols") as caught:
            await finder(w).find_one(parse_pattern("word"), None)
        assert len(caught.value.candidates) == 50
        assert str(caught.value).endswith("… and 10 more")
        assert (await finder(w).find_one(parse_pattern("word[7]"), None)).name_path == "word[7]"


async def test_what_is_not_found_names_close_matches(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("colour shape")
    async with world(tmp_path) as w:
        await w.indexer.ensure(["a.txt"])
        for within in (None, "a.txt"):
            with pytest.raises(SymbolNotFound, match=r"Close matches: 'colour' \(a\.txt\)\."):
                await finder(w).find_one(parse_pattern("color"), within)


async def test_what_is_not_found_names_the_files_that_could_not_be_asked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word")
    async with world(tmp_path) as w:
        w.source.broken.add("a.txt")
        with pytest.raises(SymbolNotFound, match=r"Incomplete: 1 file could not be indexed: .*no words today"):
            await finder(w).find_one(parse_pattern("word"), None)


async def test_data_is_found_where_it_is_named_and_not_in_the_whole_project(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("word")
    async with world(tmp_path) as w:
        assert [hit.path for hit in (await finder(w).find(parse_pattern("word"), "data/a.txt")).hits] == ["data/a.txt"]
        assert list((await finder(w).find(parse_pattern("word"), None)).hits) == []


@pytest.mark.parametrize("known", [True, False])
async def test_a_file_that_changes_while_another_is_read_is_read_again(tmp_path: Path, known: bool) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("one")
    async with world(tmp_path) as w:
        done: list[bool] = []
        await w.indexer.ensure(["a.txt"] if known else [])

        async def find() -> None:
            found = await finder(w).find(parse_pattern("one"), None)
            done.append([hit.path for hit in found.hits] == ["a.txt", "b.txt"] and not found.gaps)

        async with anyio.create_task_group() as tasks:
            w.source.gate = anyio.Event()
            tasks.start_soon(find)
            while len(w.source.asked) < 2:
                await anyio.wait_all_tasks_blocked()
            (tmp_path / "a.txt").write_text("one more")
            await w.tree.fresh()
            w.source.gate.set()
        assert done == [True]


async def test_files_that_stay_unknown_are_read_once_for_a_name_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("nothing here")
    read: list[str] = []

    def reading(root: Path, paths: list[str], word: str, **how: Any) -> list[str]:
        read.extend(paths)
        return files_containing(root, paths, word, **how)

    monkeypatch.setattr("serena_central.files.containing.files_containing", reading)
    async with world(tmp_path) as w:
        w.source.broken = {"a.txt", "b.txt"}
        await w.indexer.ensure(["a.txt", "b.txt"])
        find = finder(w)
        w.tree.subscribe(find.changed)
        wanted = parse_pattern("wanted")
        for _ in range(3):
            found = await find.find(wanted, None)
            assert ([*found.hits], found.gaps) == ([], [])
        assert sorted(read) == ["a.txt", "b.txt"]
        (tmp_path / "b.txt").write_text("wanted here")
        await w.tree.fresh()
        found = await find.find(wanted, None)
        assert [gap.files for gap in found.gaps] == [1]
        assert sorted(read) == ["a.txt", "b.txt", "b.txt"]


async def test_a_find_answers_by_its_deadline_what_it_knows_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number:03}.txt" for number in range(3 * COUNTED_AT_ONCE)]
    for name in names:
        (tmp_path / name).write_text("wanted" if name in ("000.txt", "149.txt") else "nothing here")
    disk = threading.Event()
    read: list[str] = []

    def reading(root: Path, paths: list[str], word: str, **how: Any) -> list[str]:
        if "149.txt" in paths:
            disk.wait()
        read.extend(paths)
        return files_containing(root, paths, word, **how)

    monkeypatch.setattr("serena_central.files.containing.files_containing", reading)
    wanted = parse_pattern("wanted")
    async with world(tmp_path, policy=IndexingPolicy(look_s=1)) as w:
        find = finder(w)
        w.tree.subscribe(find.changed)
        try:
            found = await find.find(wanted, None)
            looked_at = set(read)
        finally:
            disk.set()
        (gap,) = found.gaps
        assert gap == Incompleteness(NOT_READ_YET, len(names) - len(looked_at), of=len(names))
        assert str(gap).startswith(f"Incomplete: {gap.files} of 150 files not read yet. Reading goes on")
        assert [hit.path for hit in found.hits] == [path for path in ("000.txt",) if path in looked_at]
        w.indexer.policy.look_s = 60
        found = await find.find(wanted, None)
        assert ([hit.path for hit in found.hits], found.gaps) == (["000.txt", "149.txt"], [])
        assert len([path for path in read if path in looked_at]) == len(looked_at)


async def test_files_that_can_not_be_indexed_are_named_instead_of_read_where_they_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "known"):
        (tmp_path / f"{name}.txt").write_text("nothing here")
    read: list[str] = []

    def reading(root: Path, paths: list[str], word: str, **how: Any) -> list[str]:
        read.extend(paths)
        return files_containing(root, paths, word, **how)

    monkeypatch.setattr("serena_central.files.containing.files_containing", reading)
    monkeypatch.setattr("serena_central.symbols.finder.READ_BYTES", 20)
    async with world(tmp_path) as w:
        w.source.broken = {"a.txt", "b.txt"}
        await w.indexer.ensure(w.tree.files)
        for pattern in (parse_pattern("wanted"), parse_pattern("want", substring=True)):
            found = await finder(w).find(pattern, None)
            assert ([*found.hits], [gap.files for gap in found.gaps]) == ([], [2])
        assert read == []


async def test_a_gap_is_told_although_the_find_looked_again(tmp_path: Path) -> None:
    for name in ("a", "b", "broken"):
        (tmp_path / f"{name}.txt").write_text("one")
    async with world(tmp_path) as w:
        w.source.broken.add("broken.txt")
        await w.indexer.ensure(["a.txt"])
        gaps: list[int] = []

        async def find() -> None:
            gaps.extend(gap.files for gap in (await finder(w).find(parse_pattern("one"), None)).gaps)

        async with anyio.create_task_group() as tasks:
            w.source.gate = anyio.Event()
            tasks.start_soon(find)
            while len(w.source.asked) < 3:
                await anyio.wait_all_tasks_blocked()
            (tmp_path / "a.txt").write_text("one more")
            await w.tree.fresh()
            w.source.gate.set()
        assert gaps == [1]


async def test_no_more_files_are_unread_than_were_to_be_read(tmp_path: Path) -> None:
    """A file that could not be looked at in time may be asked about in a later round, and more come meanwhile."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text("one")
    async with world(tmp_path) as w:
        late = finder_module._Late()
        late.paths, late.of = {"a.txt", "b.txt", "c.txt"}, 1
        w.indexer._states.waited_in_vain(["a.txt"])
        found = finder(w)._found(w.index.find(parse_pattern("one")), None, {"a.txt"}, late)
        assert [(gap.files, gap.of) for gap in found.gaps if gap.of] == [(3, 3)]
