"""A lock file that one thread or process has at a time, and others wait for only so long."""

import os
import stat
import threading
from pathlib import Path

import pytest

from serena_central.standalone.lock import is_locked, locked


def test_one_thread_has_it_and_another_waits_and_then_gives_up(tmp_path: Path) -> None:
    file, order = tmp_path / "x.lock", list[str]()

    def second() -> None:
        with locked(file):
            order.append("second")

    with locked(file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with pytest.raises(TimeoutError, match=r"locked by another process.*x\.lock"), locked(file, 0.0):
            order.append("never")
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_symlink_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "x.lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_it_is_told_who_has_it_and_nothing_else_holds_up_who_asks(tmp_path: Path) -> None:
    file, pipe = tmp_path / "x.lock", tmp_path / "pipe"
    os.mkfifo(pipe)
    assert not is_locked(file)
    with locked(file):
        (tmp_path / "link").symlink_to(file)
        assert is_locked(file)
        assert not any(map(is_locked, (tmp_path / "link", pipe, tmp_path)))
    assert not is_locked(file)
