"""A file is written whole or not at all."""

from pathlib import Path

import pytest

from serena_central.files.atomic import write_whole


def test_a_file_is_made_with_its_folders(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b.md", b"text")
    assert (tmp_path / "a" / "b.md").read_bytes() == b"text"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.md"]


def test_a_file_is_the_users_alone_whatever_was_there(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for _ in range(2):
        write_whole(file, b"new")
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o666)


def test_the_mode_of_a_shared_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    file.chmod(0o640)
    write_whole(file, b"new", shared=True)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("serena_central.files.atomic.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]
