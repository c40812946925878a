"""What places of a name stand in is told from tokens that are remembered by the text's content."""

import random
import threading
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.text import whole_word
from serena_central.files import vocabulary as vocabulary_module
from serena_central.files.boundary import OPEN
from serena_central.files.text import FileText, read_text
from serena_central.files.tree import FileTree
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation import candidates as candidates_module
from serena_central.projects.navigation.candidates import CandidateSearch, RecentPlaces, RecentTokens
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols, Symbol
from serena_central.symbols.syntax.lexical import kinds
from tests.support.registries import Registered


def written(path: Path, content: str) -> FileText:
    path.write_text(content, encoding="utf-8")
    return read_text(path)


def test_tokens_belong_to_the_content_and_the_language(tmp_path: Path) -> None:
    known, path = RecentTokens(), tmp_path / "a.py"
    for content, kind in (('"name"', "string"), ("# name", "comment"), ("x.name", "code"), ('"name"', "string")):
        read = written(path, content)
        assert kinds(content, known.of("python", read), [2]) == [kind]
        assert known.of("rust", read) is None
    assert known.of("python", read) is known.of("python", read_text(path))


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    known = RecentTokens(most=6)  # each text counts as one, and each token
    one, two, three = (written(tmp_path / f"{name}.py", f"'{name}' + 'x'") for name in ("one", "two", "three"))
    first, second = known.of("python", one), known.of("python", two)
    assert known.of("python", one) is first
    known.of("python", three)
    assert known.of("python", one) is first
    assert known.of("python", two) == second
    assert known.of("python", two) is not second


def test_a_text_with_more_tokens_than_are_kept_is_told_all_the_same(tmp_path: Path) -> None:
    known = RecentTokens(most=2)
    read = written(tmp_path / "a.py", "'a' + 'b' + 'name'")
    for _ in range(2):
        assert kinds(read.text.content, known.of("python", read), [13]) == ["string"]


def test_places_belong_to_the_content_and_the_word(tmp_path: Path) -> None:
    known, path = RecentPlaces(), tmp_path / "a.py"
    word, other = whole_word("name"), whole_word("NAME", ignore_case=True)
    read = written(path, "name = 'name'")
    first = known.of(read, word)
    assert [span.start.column for span in first] == [0, 8]
    assert known.of(read_text(path), word) is first
    assert known.of(written(path, "names = 1"), word) == []
    assert [span.start.column for span in known.of(written(path, "x.Name"), other)] == [2]
    assert known.of(read, word) is first


def test_of_a_name_with_more_places_than_are_kept_all_are_found_again(tmp_path: Path) -> None:
    known, word = RecentPlaces(most=2), whole_word("name")
    read = written(tmp_path / "a.py", "name + name + name")
    first = known.of(read, word)
    assert known.of(read, word) == first
    assert known.of(read, word) is not first


def symbol_named(name: str, path: str) -> Hit:
    return Hit(path, FileSymbols((Symbol(name, 12, -1, None, 0, 0, 0, 1, 0, 0),)), 0)


@asynccontextmanager
async def searching(root: Path) -> AsyncGenerator[tuple[CandidateSearch, FileTree, ProjectLanguages]]:
    world = Registered(root.parent)
    languages = ProjectLanguages(root, world.pool, world.places, trusted=True, access=OPEN)
    tree = FileTree(root, world.watches)
    tree.subscribe(languages.changed)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.watches.run)
            await tasks.start(tree.run)
            yield CandidateSearch(root, tree, languages), tree, languages
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_places_of_a_name_are_those_of_the_files_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is remembered of files that hold the name, or don't, although their words may say so."""
    monkeypatch.setattr(vocabulary_module, "RACY_NS", 0)
    monkeypatch.setattr(vocabulary_module, "BITS_PER_WORD", 1)  # most files may hold most names
    dice, names = random.Random(7), ["name", "other", "third"]
    root = tmp_path / "root"
    root.mkdir()
    files = [root / f"{letter}.py" for letter in "abcdefgh"]

    def write(file: Path) -> None:
        file.write_text(" ".join(dice.choices([*names, "filler"], k=dice.randint(0, 3))))

    for file in files:
        write(file)
    async with searching(root) as (search, tree, _):
        for _ in range(60):
            for file in dice.sample(files, dice.randint(0, 2)):
                write(file)
            await tree.fresh()
            for name in dice.sample(names, 2):
                found = await search.places_of(symbol_named(name, dice.choice(files).name))
                expected = {file.name: file.read_text().split().count(name) for file in files}
                assert {path: len(spans) for path, spans in found.items()} == {p: n for p, n in expected.items() if n}


@pytest.mark.anyio
async def test_files_that_only_seem_to_hold_a_name_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary_module, "RACY_NS", 0)
    root = tmp_path / "root"
    root.mkdir()
    (root / "holds.py").write_text("name = 1")
    (root / "seems.py").write_text("other = 1")
    (root / "starts.py").write_text("names = 1")
    read: list[str] = []
    lacking = candidates_module.files_lacking

    def counting(root: Path, paths: Iterable[str], *rest: Any, **options: Any) -> list[str]:
        read.extend(paths := list(paths))
        return lacking(root, paths, *rest, **options)

    monkeypatch.setattr(candidates_module, "files_lacking", counting)
    monkeypatch.setattr(vocabulary_module, "_with_word", lambda _filters, paths, _word: list(paths))
    async with searching(root) as (search, tree, _):
        for _ in range(3):
            await tree.fresh()
            assert list(await search.places_of(symbol_named("name", "holds.py"))) == ["holds.py"]
        assert (read.count("seems.py"), read.count("starts.py")) == (1, 1)
        (root / "seems.py").write_text("name = 2")
        await tree.fresh()
        assert list(await search.places_of(symbol_named("name", "holds.py"))) == ["holds.py", "seems.py"]


@pytest.mark.anyio
async def test_few_files_that_are_at_hand_are_read_without_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("name = 'name'")
    threads: list[str] = []
    async with searching(root) as (search, tree, languages):
        await tree.fresh()
        hit = symbol_named("name", "a.py")
        monkeypatch.setattr(languages, "are_at_hand", lambda _paths: False)
        slow = await search.places_of(hit), await search.told(hit, ["a.py"])
        monkeypatch.setattr(languages, "are_at_hand", lambda _paths: True)
        tell = search._tell

        def noting(*some: Any) -> object:
            threads.append(threading.current_thread().name)
            return tell(*some)

        monkeypatch.setattr(search, "_tell", noting)
        assert (await search.places_of(hit), await search.told(hit, ["a.py"])) == slow
        assert threads == [threading.main_thread().name]
        search._tokens = RecentTokens()
        assert await search.told(hit, ["a.py"]) == slow[1]
        assert len(set(threads)) == 2  # to find tokens may take long
