"""A text is read once as long as its file stays, and never older than the call."""

import os
import threading
import time
from pathlib import Path

import pytest

from serena_central.core.errors import PathNotFound
from serena_central.files import text
from serena_central.files.text import RecentTexts


def written(path: Path, content: str, *, seconds_ago: float = 10.0) -> Path:
    path.write_text(content)
    changed = time.time() - seconds_ago
    os.utime(path, (changed, changed))
    return path


@pytest.fixture(autouse=True)
def old_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a file's last change of state can't be set: what was written just now counts as old."""
    monkeypatch.setattr(text, "RACY_NS", -(10**12))


def test_a_file_that_stays_is_read_once(tmp_path: Path) -> None:
    texts, file = RecentTexts(), written(tmp_path / "a.py", "one")
    assert texts.read(file) is texts.read(file)
    assert texts.read(file, encoding="latin-1") is not texts.read(file)


def test_a_change_is_seen_by_the_next_reading(tmp_path: Path) -> None:
    texts, file = RecentTexts(), written(tmp_path / "a.py", "one")
    texts.read(file)
    written(file, "two", seconds_ago=5)
    assert texts.read(file).text.content == "two"
    written(tmp_path / "b.py", "six").replace(file)
    assert texts.read(file).text.content == "six"
    file.unlink()
    with pytest.raises(PathNotFound):
        texts.read(file)


def test_a_text_is_known_only_while_its_file_is_the_one_that_was_read(tmp_path: Path) -> None:
    texts, file = RecentTexts(), written(tmp_path / "a.py", "one")
    assert texts.known(file) is None
    read = texts.read(file)
    assert texts.known(file) is read
    assert texts.known(file, encoding="latin-1") is None
    written(file, "two", seconds_ago=5)
    assert texts.known(file) is None
    texts.read(file)
    file.unlink()
    assert texts.known(file) is None


def test_what_changed_lately_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "RACY_NS", 3600 * 10**9)
    texts, file = RecentTexts(), tmp_path / "a.py"
    file.write_text("one")
    assert texts.read(file) is not texts.read(file)


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_CHARS", 10)
    texts = RecentTexts()
    files = [written(tmp_path / name, "1234") for name in "abc"]
    first, second = texts.read(files[0]), texts.read(files[1])
    assert texts.read(files[0]) is first
    texts.read(files[2])
    assert texts.read(files[0]) is first
    assert texts.read(files[1]) is not second
    huge = written(tmp_path / "huge", "1" * 11)
    assert texts.read(huge) is not texts.read(huge)


def test_threads_may_read_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_CHARS", 30)
    texts = RecentTexts()
    files = [written(tmp_path / str(number), str(number) * 5) for number in range(10)]
    wrong: list[str] = []

    def read() -> None:
        for turn in range(300):
            file = files[turn % 10]
            if texts.read(file).text.content != file.name * 5:
                wrong.append(file.name)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not wrong
    assert texts._texts._size == sum(len(one.text.content) for one in texts._texts.values()) <= 30


def test_while_an_answer_is_made_more_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_CHARS", 4)
    texts = RecentTexts()
    files = [written(tmp_path / name, "1234") for name in "abc"]
    with texts.holding():
        with texts.holding():
            read = [texts.read(file) for file in files]
        assert [texts.read(file) is known for file, known in zip(files, read, strict=True)] == [True] * 3
    assert [texts.holds(file) for file in files] == [False, False, True]
    assert texts.read(files[2]) is read[2]


def test_all_texts_are_forgotten_unless_an_answer_is_being_made_of_them(tmp_path: Path) -> None:
    texts, file = RecentTexts(), written(tmp_path / "a.py", "one")
    with texts.holding():
        read = texts.read(file)
        texts.forget()
        assert texts.read(file) is read
    texts.forget()
    assert not texts.holds(file)
    assert texts.read(file) is not read


def test_few_short_texts_that_are_remembered_are_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "FEW_FILES", 2)
    monkeypatch.setattr(text, "FEW_CHARS", 7)
    texts = RecentTexts()
    one, two, three = (written(tmp_path / name, "x" * length) for name, length in zip("abc", (3, 4, 5), strict=True))
    assert texts.are_at_hand([])
    assert not texts.are_at_hand([one])
    for file in (one, two, three):
        texts.read(file)
    assert texts.are_at_hand([one, two])
    assert not texts.are_at_hand([one, three])  # too long together
    monkeypatch.setattr(text, "FEW_CHARS", 100)
    assert not texts.are_at_hand([one, two, three])
    assert not texts.are_at_hand([one], encoding="latin-1")
