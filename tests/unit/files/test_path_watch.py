"""What is kept is what the files say: no change is missed, and nothing is looked at while there is none."""

import sys
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.files import path_watch
from serena_central.files.path_watch import PathWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is kept")


class Asked:
    """A value that counts how often it was made: what stands in a file."""

    def __init__(self, file: Path, watch: PathWatch) -> None:
        self.file = file
        self.made = 0
        self._watch = watch

    def get(self) -> str | None:
        return self._watch.get("key", lambda: [str(self.file)], self._make)

    def _make(self) -> str | None:
        self.made += 1
        try:
            return self.file.read_text()
        except OSError:
            return None


@pytest.fixture
def watch() -> Generator[PathWatch]:
    with closing(PathWatch()) as watch:
        yield watch


@pytest.fixture
def asked(tmp_path: Path, watch: PathWatch) -> Asked:
    (tmp_path / "a" / "b").mkdir(parents=True)
    asked = Asked(tmp_path / "a" / "b" / "settings.json", watch)
    asked.file.write_text("one")
    return asked


def test_nothing_is_made_again_while_nothing_happens(asked: Asked, tmp_path: Path) -> None:
    assert [asked.get() for _ in range(3)] == ["one"] * 3
    (tmp_path / "a" / "other").write_text("x")
    (tmp_path / "a" / "b" / "other").write_text("x")
    assert asked.get() == "one"
    assert asked.made == 1


def test_what_is_kept_can_be_had_without_a_look(asked: Asked, watch: PathWatch) -> None:
    assert watch.kept("key") is None
    asked.get()
    assert watch.kept("key") == "one"
    asked.file.write_text("two")
    assert watch.kept("key") is None
    assert (asked.get(), watch.kept("key"), asked.made) == ("two", "two", 2)


def replaced(file: Path) -> None:
    other = file.with_name("new")
    other.write_text("two")
    other.replace(file)


def in_another_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("old"))
    file.parent.mkdir()
    file.write_text("two")


def in_another_folder_above(file: Path) -> None:
    above = file.parent.parent
    above.rename(above.with_name("old"))
    file.parent.mkdir(parents=True)
    file.write_text("two")


def appended(file: Path) -> None:
    with file.open("r+") as opened:
        opened.truncate(0)
        opened.write("two")
        opened.flush()


def linked(file: Path) -> None:
    file.unlink()
    (file.parent.parent / "far").write_text("two")
    file.symlink_to("../far")


def behind_a_linked_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("old"))
    other = file.parent.with_name("other")
    other.mkdir()
    (other / file.name).write_text("two")
    file.parent.symlink_to(other)


CHANGES = [replaced, in_another_folder, in_another_folder_above, appended, linked, behind_a_linked_folder]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_counts_at_once(asked: Asked, change: Callable[[Path], None]) -> None:
    assert asked.get() == "one"
    change(asked.file)
    assert asked.get() == "two"
    made = asked.made
    assert asked.get() == "two"
    assert asked.made == made
    # What it is now is watched as well.
    asked.file.write_text("three")
    assert asked.get() == "three"
    asked.file.unlink()
    assert asked.get() is None


def test_a_file_that_appears_with_its_folders(tmp_path: Path, watch: PathWatch) -> None:
    asked = Asked(tmp_path / "x" / "y" / "settings.json", watch)
    assert asked.get() is None
    asked.file.parent.parent.mkdir()
    assert asked.get() is None
    asked.file.parent.mkdir()
    asked.file.write_text("one")
    assert asked.get() == "one"


def test_the_target_of_a_link_that_is_replaced(asked: Asked, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("linked")
    asked.file.unlink()
    asked.file.symlink_to("../../dotfiles/../dotfiles/settings.json")
    assert asked.get() == "linked"
    replaced(real)
    assert asked.get() == "two"


def test_any_file_of_a_folder_counts(tmp_path: Path, watch: PathWatch) -> None:
    folder = tmp_path / "managed.d"

    def names() -> list[str]:
        return watch.get("key", lambda: [f"{folder}/"], lambda: sorted(one.name for one in folder.glob("*")))

    assert names() == []
    folder.mkdir()
    assert names() == []
    (folder / "10.json").write_text("")
    assert names() == ["10.json"]
    (folder / "10.json").unlink()
    assert names() == []


def test_a_file_with_two_names_is_looked_at_each_time(asked: Asked, tmp_path: Path) -> None:
    other = tmp_path / "second"
    other.hardlink_to(asked.file)
    assert asked.get() == "one"
    other.write_text("two")
    assert asked.get() == "two"


def test_a_change_while_it_is_made_is_not_missed(asked: Asked, watch: PathWatch) -> None:

    def make() -> str:
        text = asked.file.read_text()
        watch.get("other", list, lambda: None)  # reads the queue
        asked.file.write_text("two")
        watch.get("another", list, lambda: None)
        return text

    assert watch.get("key", lambda: [str(asked.file)], make) == "one"
    assert watch.get("key", lambda: [str(asked.file)], asked.file.read_text) == "two"


def test_more_events_than_are_read_count_as_a_change(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_watch, "READ_BYTES", 4096)
    assert asked.get() == "one"
    for number in range(200):
        (asked.file.parent / f"noise{number}").write_text("")
    asked.file.write_text("two")
    assert asked.get() == "two"
    made = asked.made
    assert asked.get() == "two"
    assert asked.made == made


def test_where_no_folder_can_be_watched_nothing_is_kept(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PathWatch, "_add", none_left)
    assert asked.get() == "one"
    asked.file.write_text("two")
    assert asked.get() == "two"


def test_loops_of_links_end(tmp_path: Path, watch: PathWatch) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert Asked(tmp_path / "a" / "settings.json", watch).get() is None


def test_nothing_is_kept_after_its_end(asked: Asked, watch: PathWatch) -> None:
    assert asked.get() == "one"
    watch.close()
    asked.file.write_text("two")
    assert asked.get() == "two"
