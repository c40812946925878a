import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serena_central.files import vocabulary as vocabulary_module
from serena_central.files.containing import find_containing
from serena_central.files.stamp import Stamp
from serena_central.files.vocabulary import Vocabulary, _filter_of, _with_word, _words
from serena_central.files.words import PIECE_BYTES

pytestmark = pytest.mark.anyio


@pytest.fixture
def _clocks_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written a moment ago is kept, too."""
    monkeypatch.setattr(vocabulary_module, "RACY_NS", 0)


def written(root: Path, name: str, data: bytes) -> Stamp:
    path = root / name
    path.write_bytes(data)
    return Stamp.of(path.stat())


async def holding(root: Path, name: str, *, encoding: str | None = None) -> list[str]:
    files = {path.name: Stamp.of(path.stat()) for path in sorted(root.iterdir())}
    return await Vocabulary(root, encoding).holding(files, list(files), name)


@pytest.mark.usefixtures("_clocks_are_exact")
async def test_files_that_hold_a_word_are_named_and_most_others_not(tmp_path: Path) -> None:
    for number in range(100):
        written(tmp_path, f"{number:02}.py", b"other words %d\n" % number)
    written(tmp_path, "x.py", b"def wanted(): ...\n")
    found = await holding(tmp_path, "wanted")
    assert "x.py" in found
    assert len(found) < 20


async def test_other_encodings_are_read_as_what_they_are(tmp_path: Path) -> None:
    written(tmp_path, "wide.py", "\ufeffdef größe(): ...".encode("utf-16-le"))
    written(tmp_path, "latin.py", "def größe(): ...".encode("latin-1"))
    written(tmp_path, "utf8.py", "def größe(): ...".encode())
    assert await holding(tmp_path, "größe", encoding="latin-1") == ["latin.py", "utf8.py", "wide.py"]


@pytest.mark.usefixtures("_clocks_are_exact")
async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    vocabulary = Vocabulary(tmp_path, None)
    stamp = written(tmp_path, "a.py", b"first")
    assert await vocabulary.holding({"a.py": stamp}, ["a.py"], "first") == ["a.py"]
    assert await vocabulary.holding({"a.py": stamp}, ["a.py"], "second") == []
    stamp = written(tmp_path, "a.py", b"second words")
    assert await vocabulary.holding({"a.py": stamp}, ["a.py"], "second") == ["a.py"]


async def test_a_file_that_was_written_just_now_is_never_left_out(tmp_path: Path) -> None:
    (tmp_path / "young.py").write_bytes(b"first")
    vocabulary = Vocabulary(tmp_path, None)
    stamp = Stamp.of((tmp_path / "young.py").stat())
    assert await vocabulary.holding({"young.py": stamp}, ["young.py"], "second") == ["young.py"]


@pytest.mark.usefixtures("_clocks_are_exact")
async def test_a_binary_file_holds_no_word_unless_texts_may_be_in_utf16(tmp_path: Path) -> None:
    written(tmp_path, "django.mo", b"\xde\x12\x04\x95\0\0 find")
    written(tmp_path, "wide.py", "find".encode("utf-16-le"))
    written(tmp_path, "narrow.py", b"find 9find")
    assert await holding(tmp_path, "find") == ["narrow.py"]
    assert {"narrow.py", "wide.py"} <= set(await holding(tmp_path, "find", encoding="utf-16"))


async def test_operators_stand_in_all_files_as_far_as_can_be_told(tmp_path: Path) -> None:
    written(tmp_path, "a.rb", b"def ==(other)")
    assert await holding(tmp_path, "==") == ["a.rb"]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.binary(min_size=1, max_size=20), max_size=400))
def test_no_word_of_a_file_is_ever_missed(words: set[bytes]) -> None:
    filters = {"a.py": (Stamp.of(Path(__file__).stat()), _filter_of(words))}
    assert all(_with_word(filters, ["a.py"], hash(word)) for word in words)


@pytest.mark.usefixtures("_clocks_are_exact")
@pytest.mark.parametrize("name", ["filter", "größe", "函数", "é2", "ß"])
async def test_letters_and_marks_beyond_ascii_hide_no_name_beside_them(tmp_path: Path, name: str) -> None:
    texts = [
        f"“{name}”",
        f"\ufeff{name} = 1",
        f"→{name}…",
        f"«{name}»",
        f"\xa0{name}\u2028",
        f"a.{name}—b",
        f"𝒳 {name}(é)",
    ]
    for number, text in enumerate(texts):
        written(tmp_path, f"{number}.py", text.encode())
    for number, text in enumerate(texts):
        written(tmp_path, f"latin{number}.py", text.encode("latin-1", "ignore"))
    everywhere = sorted(path.name for path in tmp_path.iterdir())
    exact = await find_containing(tmp_path, everywhere, name, encoding="latin-1")
    assert set(exact.files) <= set(await holding(tmp_path, name, encoding="latin-1"))
    assert {f"{number}.py" for number in range(len(texts))} <= set(exact.files)


async def test_more_than_can_be_read_in_time_is_searched_for_the_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary_module, "READ_BYTES", 10)
    written(tmp_path, "a.py", b"def wanted(): ...\n")
    written(tmp_path, "b.py", b"def unwanted(): ...\n")
    assert await holding(tmp_path, "wanted") == ["a.py"]


@pytest.mark.parametrize("mark", ["", "„"])
@pytest.mark.parametrize("before", range(PIECE_BYTES - 7, PIECE_BYTES + 2))
def test_the_words_of_a_large_text_are_whole_wherever_it_is_divided(before: int, mark: str) -> None:
    between = " " * 2 * PIECE_BYTES
    assert {b"deploy", b"other"} <= _words(f"{' ' * before}{mark}deploy{between}other".encode()) <= {
        b"deploy", b"other", mark.encode()
    }  # fmt: skip


def test_a_large_text_is_looked_through_in_pieces() -> None:
    """A pattern keeps the interpreter's lock until it is through, and everybody waits."""
    text = b"ab " * (40 * PIECE_BYTES // 3)
    tracemalloc.start()
    try:
        words = _words(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words == {b"ab"}
    assert peak < len(text), "all its words stood in memory at once"


@pytest.mark.usefixtures("_clocks_are_exact")
async def test_names_in_other_characters_are_found_beside_a_very_long_word(tmp_path: Path) -> None:
    files = {"a.py": written(tmp_path, "a.py", b"DATA = '" + b"0f" * 1_000_000 + "'\ndef ﬁnd(): ...\n".encode())}
    vocabulary = Vocabulary(tmp_path, None)
    assert await vocabulary.holding(files, ["a.py"], "absent") == []
    assert await vocabulary.may_be_respelled(files, ["a.py"], "find")
    assert not await vocabulary.may_be_respelled(files, ["a.py"], "bind")


@pytest.mark.usefixtures("_clocks_are_exact")
async def test_a_file_of_names_in_other_characters_may_hold_any_and_none_is_kept(tmp_path: Path) -> None:
    names = "\n".join(f"ﬁ{number} = 1" for number in range(2000))
    files = {"a.py": written(tmp_path, "a.py", names.encode())}
    vocabulary = Vocabulary(tmp_path, None)
    await vocabulary.holding(files, ["a.py"], "absent")
    assert await vocabulary.may_be_respelled(files, ["a.py"], "anything")
    assert sum(map(len, vocabulary._respelled.values())) == 1
