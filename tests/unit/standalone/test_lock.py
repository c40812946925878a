"""A lock file that one thread or process has at a time, and others wait for only so long."""

import stat
import threading
from pathlib import Path

import pytest

from serena_central.standalone.lock import locked


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
