"""A search that keeps texts answers as one that reads all files, whatever became of them meanwhile."""

import gc
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.files.corpus import Corpora, Corpus
from serena_central.files.search import SearchRequest, SearchResult, Source, search
from serena_central.files.stamp import RACY_NS, Stamp

OLD_NS = time.time_ns() - 10 * RACY_NS


def stamps_of(root: Path) -> dict[str, Stamp]:
    return {
        path.relative_to(root).as_posix(): Stamp.of(path.stat()) for path in sorted(root.rglob("*")) if path.is_file()
    }


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read was written long ago."""
    monkeypatch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))


def kept_by(corpus: Corpus, root: Path) -> set[str]:
    """Reads none of the others, but makes room for them."""
    stamps = stamps_of(root)
    _, missing = corpus.blocks(list(stamps), stamps, lambda _: False)
    return {*stamps}.difference(missing)


def read_all(corpus: Corpus, root: Path) -> None:
    stamps = stamps_of(root)
    corpus.read(stamps, stamps, lambda _: True)


async def both(root: Path, corpora: Corpora, pattern: str, **options: object) -> tuple[SearchResult, SearchResult]:
    stamps = stamps_of(root)
    request = SearchRequest(pattern, **options)  # type: ignore[arg-type]  # each test names the fields it means
    return (
        await search(root, stamps, request),
        await search(root, stamps, request, source=Source(corpora.of(root), stamps)),
    )


CONTENTS = st.sampled_from(
    (
        b"",
        b"one\n",
        b"two three",
        b"x one\r\nthree\r\n",
        b"one\0",
        "größe one".encode(),
        b"\xff one",
        "one".encode("utf-16"),
    )
)
STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | CONTENTS), min_size=1, max_size=12)
PATTERNS = st.sampled_from(("one", "^one|three$", r"t\w+", r"\bone\b", "größe", "^$", "e", "e.*o", "(?i)ONE", "$"))

GLOBS = st.sampled_from(("", "", "a", "{a,b,c}"))


@given(STEPS, st.lists(PATTERNS, min_size=1, max_size=4), st.booleans(), st.sampled_from((5, 25, 10_000)), GLOBS)
def test_what_is_kept_changes_no_answer(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, bytes | None]],
    patterns: list[str],
    multiline: bool,
    max_bytes: int,
    include: str,
) -> None:
    root = tmp_path_factory.mktemp("root")
    corpora = Corpora(max_bytes)

    async def compare() -> None:
        for number, (name, content) in enumerate(steps):
            path = root / name
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
                os.utime(path, ns=(OLD_NS + number, OLD_NS + number))
            for pattern in patterns:
                read, kept = await both(root, corpora, pattern, multiline=multiline, include=include)
                assert kept == read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))
        patch.setattr("serena_central.files.corpus.CHUNK_BYTES", 12)
        anyio.run(compare)


@pytest.mark.usefixtures("aged")
def test_a_file_is_read_once_for_each_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def counting(opener: Callable[[str], int]) -> Callable[[str], int]:
        def opens(path: str) -> int:
            opened.append(Path(path).name)
            return opener(path)

        return opens

    from serena_central.files import corpus as module

    monkeypatch.setattr(module, "open_file", counting(module.open_file))
    for name in "abc":
        (tmp_path / name).write_text(f"text of {name}")
    corpus = Corpora().of(tmp_path)
    read_all(corpus, tmp_path)
    read_all(corpus, tmp_path)
    assert sorted(opened) == ["a", "b", "c"]
    (tmp_path / "b").write_text("another text")
    read_all(corpus, tmp_path)
    assert opened[3:] == ["b"]
    blocks, missing = corpus.blocks(list(stamps_of(tmp_path)), stamps_of(tmp_path), lambda _: True)
    texts = {one.paths[0]: one.data for block in blocks for one in block.singly()}
    assert (texts, missing) == ({"a": b"text of a\n", "b": b"another text\n", "c": b"text of c\n"}, [])


def test_what_may_change_unseen_is_not_kept(tmp_path: Path) -> None:
    for name in ("new", "old", "linked", "wide"):
        (tmp_path / name).write_bytes("one".encode("utf-16" if name == "wide" else "utf-8"))
    os.link(tmp_path / "linked", tmp_path.with_name(f"{tmp_path.name}-other"))
    corpus = Corpora().of(tmp_path)
    read_all(corpus, tmp_path)
    assert kept_by(corpus, tmp_path) == set()  # all were written a moment ago
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))
        read_all(corpus, tmp_path)
    assert kept_by(corpus, tmp_path) == {"new", "old"}


@pytest.mark.usefixtures("aged")
def test_a_second_name_in_the_root_makes_both_be_read(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old")
    corpus = Corpora().of(tmp_path)
    heard = stamps_of(tmp_path)
    corpus.read(heard, heard, lambda _: True)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "two").write_text("new")
    heard["two"] = Stamp.of((tmp_path / "two").stat())  # of the first nobody hears
    assert corpus.read(heard, heard, lambda _: True) == set()
    assert corpus.unheard() == {"one"}
    assert corpus.unheard() == set()


@pytest.mark.usefixtures("aged")
@pytest.mark.parametrize("through", ["a memory map", "a name elsewhere"])
def test_what_was_written_unheard_is_found_by_a_look_at_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    monkeypatch.setattr("serena_central.files.corpus.CHECK_S", 0.0)
    root = tmp_path / "root"
    root.mkdir()
    for name in ("one", "two"):
        (root / name).write_text("old")
    corpus = Corpora().of(root)
    heard = stamps_of(root)
    corpus.read(heard, heard, lambda _: True)
    if through == "a memory map":
        with (root / "one").open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        mapped[:3] = b"new"
        mapped.flush()
    else:
        (tmp_path / "elsewhere").hardlink_to(root / "one")
        (tmp_path / "elsewhere").write_text("new")
    assert corpus.read(heard, heard, lambda _: True) == {"two"}
    assert corpus.unheard() == {"one"}


@pytest.mark.usefixtures("aged")
def test_all_of_them_are_bounded_and_what_was_searched_last_stays(tmp_path: Path) -> None:
    corpora = Corpora(max_bytes=2_500)
    roots = [tmp_path / name for name in ("first", "second", "third")]
    for root in roots:
        root.mkdir()
        (root / "file").write_bytes(b"x" * 1_000)
        read_all(corpora.of(root), root)
        assert corpora.size_bytes <= 2_500
    assert [len(kept_by(corpora.of(root), root)) for root in reversed(roots)] == [1, 1, 0]
    large = tmp_path / "large"
    large.mkdir()
    for number in range(3):
        (large / str(number)).write_bytes(b"y" * 1_000)
    read_all(corpora.of(large), large)
    assert len(kept_by(corpora.of(large), large)) == 2
    assert corpora.size_bytes <= 2_500


@pytest.mark.usefixtures("aged")
def test_of_a_root_that_is_far_too_large_nothing_is_kept_but_what_a_narrow_search_reads(tmp_path: Path) -> None:
    corpora = Corpora(max_bytes=2_300)
    small, large = tmp_path / "small", tmp_path / "large"
    for root, files in ((small, 1), (large, 4)):
        root.mkdir()
        for number in range(files):
            (root / str(number)).write_bytes(b"y" * 1_000)
        read_all(corpora.of(root), root)
    assert kept_by(corpora.of(large), large) == set()
    assert kept_by(corpora.of(small), small) == {"0"}, "room was made for what does not fit"
    stamps = {"1": Stamp.of((large / "1").stat())}
    assert corpora.of(large).read(stamps, stamps, lambda _read: True) == {"1"}


@pytest.mark.usefixtures("aged")
def test_texts_of_deleted_and_changed_files_make_room(tmp_path: Path) -> None:
    corpora = Corpora(max_bytes=3_100)
    for round_ in range(5):
        for number in range(3):
            (tmp_path / f"{round_}-{number}").write_bytes(bytes([65 + round_]) * 1_000)
            (tmp_path / f"{round_ - 1}-{number}").unlink(missing_ok=True)
        read_all(corpora.of(tmp_path), tmp_path)
        assert len(kept_by(corpora.of(tmp_path), tmp_path)) == 3
        assert corpora.size_bytes <= 3_100


@pytest.mark.usefixtures("aged")
def test_idle_ones_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one")
    corpora = Corpora()
    read_all(corpora.of(tmp_path), tmp_path)
    corpora.drop_idle()
    assert corpora.size_bytes > 0
    assert corpora.idle_s >= 0
    corpora.drop()
    assert (corpora.size_bytes, corpora.idle_s) == (0, 0)


@pytest.mark.usefixtures("aged")
def test_texts_of_many_files_are_nothing_that_the_garbage_collector_looks_at(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text("text")
    corpus = Corpora().of(tmp_path)
    gc.collect()
    before = len(gc.get_objects())
    read_all(corpus, tmp_path)
    gc.collect()
    assert len(kept_by(corpus, tmp_path)) == 300
    assert len(gc.get_objects()) - before < 100
