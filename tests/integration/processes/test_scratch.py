"""Temporary folders of language servers: one each, private, and gone with them, whoever is killed and how."""

import os
import signal
import stat
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from serena_central.processes import scratch
from serena_central.processes.child import supervised
from serena_central.standalone.lock import lock_at_once
from serena_central.standalone.private import user_umask
from tests.support.child import until_gone

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds all descendants"),
]

CHECKOUT = Path(__file__).parents[3]

FILLING = """
import os, sys, time
folder = os.environ["TMPDIR"]
assert folder == os.environ["TMP"] == os.environ["TEMP"]
os.makedirs(folder + "/proc-macro-srv/deep")
open(folder + "/proc-macro-srv/deep/file", "w").close()
os.chmod(folder + "/proc-macro-srv/deep", 0o500)
print(f"{folder} {os.umask(0):o}", flush=True)
time.sleep(3600)
"""

PARENT = """
import sys, anyio
from pathlib import Path
from serena_central.processes.child import supervised

async def main():
    async with supervised([sys.executable, "-c", sys.argv[2]], Path("/"), temporary=Path(sys.argv[1])) as process:
        sys.stdout.write((await process.stdout.receive()).decode())
        sys.stdout.flush()
        await anyio.sleep_forever()

anyio.run(main, backend_options={"use_uvloop": True})
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "tmp"


async def until_removed(folder: Path) -> None:
    with anyio.fail_after(60):
        while folder.exists():
            await anyio.sleep(0.01)


@asynccontextmanager
async def killable(base: Path) -> AsyncGenerator[tuple[psutil.Process, Path]]:
    """Another process with a supervised one below it, and that one's folder."""
    command = [sys.executable, "-c", PARENT, str(base), FILLING]
    async with await anyio.open_process(command, cwd=CHECKOUT, stderr=None) as parent:
        assert parent.stdout
        with anyio.fail_after(60):
            folder = Path((await parent.stdout.receive()).decode().split()[0])
        try:
            yield psutil.Process(parent.pid), folder
        finally:
            if parent.returncode is None:
                parent.kill()


async def test_a_program_has_a_private_folder_that_is_gone_when_it_is_ended(base: Path) -> None:
    async with supervised([sys.executable, "-c", FILLING], Path("/"), temporary=base) as process:
        folder, umask = (await process.stdout.receive()).decode().split()
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
        assert Path(folder).parent in {base, Path(tempfile.gettempdir()) / f"serena-central-{os.geteuid()}"}
        assert int(umask, 8) == user_umask()
        assert len(folder) <= scratch.MAX_PATH_BYTES
    assert not Path(folder).exists()


async def test_what_is_private_makes_files_for_its_user_alone(base: Path) -> None:
    async with supervised(["/bin/sh", "-c", "umask"], Path("/"), temporary=base, private=True) as process:
        assert int(await process.stdout.receive(), 8) == 0o077


async def test_the_folder_of_a_killed_program_is_removed(base: Path) -> None:
    async with supervised([sys.executable, "-c", FILLING], Path("/"), temporary=base) as process:
        folder = Path((await process.stdout.receive()).decode().split()[0])
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
    assert not folder.exists()


async def test_the_folder_of_a_killed_supervisor_is_removed(base: Path) -> None:
    async with supervised([sys.executable, "-c", FILLING], Path("/"), temporary=base) as process:
        folder = Path((await process.stdout.receive()).decode().split()[0])
        assert process.pid
        os.kill(psutil.Process(process.pid).ppid(), signal.SIGKILL)
        await process.wait()
    assert not folder.exists()


async def test_the_supervisor_removes_the_folder_when_the_server_is_killed(base: Path) -> None:
    async with killable(base) as (parent, folder):
        assert folder.exists()
        parent.kill()
        await until_removed(folder)


async def test_a_sweep_takes_what_is_left_of_all_that_were_killed_and_nothing_that_is_used(base: Path) -> None:
    base.mkdir()
    async with killable(base) as (other, used), killable(base) as (parent, folder):
        supervisor = parent.children()[0]
        doomed = [supervisor, *supervisor.children(recursive=True)]
        supervisor.suspend()  # so that it can't tidy up before it is killed, too
        parent.kill()
        for process in doomed:
            process.kill()
        await until_gone([process.pid for process in doomed])
        assert folder.exists()
        assert used.exists()
        scratch.sweep(base)
        assert not folder.exists()
        assert used.exists()
        assert other.is_running()


async def test_a_folder_stays_locked_while_what_was_started_in_it_lives(base: Path) -> None:
    async with killable(base) as (parent, folder):
        parent.suspend()
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            assert not lock_at_once(descriptor)
        finally:
            os.close(descriptor)
            parent.resume()


def test_a_long_home_gets_a_place_where_sockets_have_room(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    with scratch.borrowed(deep / "tmp") as folder:
        assert len(os.fsencode(folder)) <= scratch.MAX_PATH_BYTES
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_somebody_elses_folder_in_the_shared_one_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, deep = tmp_path / "shared", tmp_path / ("d" * 80)
    planted = shared / f"serena-central-{os.geteuid()}"
    planted.mkdir(parents=True, mode=0o755)
    planted.chmod(0o777)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    with scratch.borrowed(deep / "tmp") as folder:
        assert folder.parent == deep / "tmp"
    assert not list(planted.iterdir())
