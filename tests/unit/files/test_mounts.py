"""Where remote file systems are mounted, as threads ask at the same time."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from serena_central.files import mounts
from serena_central.files.mounts import RemoteMounts

SILENT_MOUNT = Path(__file__).parents[2] / "support/silent_mount.py"

_THREADS = 4


def test_threads_may_ask_for_remote_mounts_at_the_same_time() -> None:
    """Two that poll one object are an error of Python's."""
    remote, start = RemoteMounts(), Barrier(_THREADS)

    def ask() -> set[frozenset[str]]:
        start.wait(5)
        return {remote.points() for _ in range(5000)}

    with ThreadPoolExecutor(_THREADS) as threads:
        answers = [running.result() for running in [threads.submit(ask) for _ in range(_THREADS)]]

    assert set().union(*answers) == {remote.points()}


def test_a_process_that_has_looked_at_a_server_that_is_away_can_end(tmp_path: Path) -> None:
    """Its threads that hang in the kernel would keep it, whatever signal it gets."""
    code = (
        "from serena_central.files.mounts import FileSystemAway, check_answers\n"
        "try: check_answers(point + '/project')\n"
        "except FileSystemAway as error: print(error.filename, flush=True)"
    )
    program = [sys.executable, str(SILENT_MOUNT), str(tmp_path), code]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        assert asking.stdout
        assert asking.stderr
        server = asking.stdout.readline()
        if not server:
            said = asking.stderr.read()
            if any(why in said for why in ("PermissionError", "FileNotFoundError", "OSError", "AttributeError")):
                pytest.skip(f"no file system can be mounted here: {said.splitlines()[-1]}")
            pytest.fail(said)
        try:
            assert asking.stdout.readline().strip() == str(tmp_path)
            assert asking.wait(30) == 0
        finally:
            os.kill(int(server), signal.SIGKILL)


def test_where_there_is_no_shell_this_process_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "SHELL", str(tmp_path / "sh"))
    mounts._look_at(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="nothing"):
        mounts._look_at(str(tmp_path / "nothing"))
