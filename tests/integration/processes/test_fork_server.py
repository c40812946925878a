"""Commands whose supervisors are forked: as all children they end with all that they start, whatever ends first."""

import os
import resource
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from serena_central.processes.child import Ended, run, supervised
from serena_central.processes.fork_server import ForkServer
from serena_central.processes.ladder import AT_ONCE
from serena_central.processes.output import Head, Lines, Nothing, Tail
from tests.integration.processes.test_child import CHECKOUT, FAMILY, PATIENCE_S, python
from tests.support.child import alive, until_gone

pytestmark = pytest.mark.anyio

SERVER = """
import os, sys, anyio
from pathlib import Path
from serena_central.processes.child import run
from serena_central.processes.fork_server import ForkServer
from serena_central.processes.output import Lines

async def main():
    forks = ForkServer()
    def tell(line):
        os.write(1, b"%s %d\\n" % (line, forks.pid))
    await run([sys.executable, "-c", sys.argv[1]], Path("/"), deadline_s=None, stdout=Lines(tell), forks=forks)

anyio.run(main, backend_options={"use_uvloop": True})
"""


@pytest.fixture
async def forks() -> AsyncGenerator[ForkServer]:
    server = ForkServer()
    try:
        yield server
    finally:
        await server.close()


async def ended(forks: ForkServer, folder: Path, *command: str) -> tuple[Ended, str, str]:
    stdout, stderr = Head(10_000_000), Tail(1000)
    end = await run(command, folder, deadline_s=PATIENCE_S, stdout=stdout, stderr=stderr, forks=forks)
    return end, stdout.text, stderr.text


async def test_a_command_has_its_input_output_errors_code_folder_and_environment(
    forks: ForkServer, tmp_path: Path
) -> None:
    line = 'cat; pwd; echo "$NAME"; echo wrong >&2; exit 3'
    stdout, stderr = Head(10_000_000), Tail(1000)
    end = await run(
        ["sh", "-c", line],
        tmp_path,
        deadline_s=PATIENCE_S,
        given=b"x" * 1_000_000,
        stdout=stdout,
        stderr=stderr,
        environment={"PATH": os.defpath, "NAME": "a\nb"},
        forks=forks,
    )
    assert (end, stderr.text) == (Ended(3), "wrong")
    assert stdout.text == "x" * 1_000_000 + f"{tmp_path}\na\nb\n"


async def test_how_a_command_ended_is_told_apart(forks: ForkServer, tmp_path: Path) -> None:
    assert (await ended(forks, tmp_path, "sh", "-c", "kill -SEGV $$"))[0] == Ended(signal=signal.SIGSEGV)
    assert (await ended(forks, tmp_path, "sh", "-c", "exit 127"))[0] == Ended(127)
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await ended(forks, tmp_path, "no-such-program")
    with pytest.raises(PermissionError):
        await ended(forks, tmp_path, "/etc/passwd")
    with pytest.raises(FileNotFoundError):
        await ended(forks, tmp_path / "missing", "true")
    with pytest.raises(ValueError, match="null"):
        await ended(forks, tmp_path, "echo", "a\0b")


async def test_it_has_no_descriptors_but_its_own(forks: ForkServer, tmp_path: Path) -> None:
    lines: list[bytes] = []
    listing = python("import os; print(*sorted(map(int, os.listdir('/dev/fd'))))")
    async with supervised(python("import time; time.sleep(3600)"), tmp_path, ladder=AT_ONCE, forks=forks):
        await run(listing, tmp_path, deadline_s=PATIENCE_S, stdout=Lines(lines.append), forks=forks)
    assert lines[0].split()[:-1] == [b"0", b"1", b"2"]


async def test_many_at_once_leave_no_descriptor_and_no_process(forks: ForkServer, tmp_path: Path) -> None:
    await ended(forks, tmp_path, "true")
    before = len(list(Path("/dev/fd").iterdir()))

    async def one(number: int) -> None:
        assert await ended(forks, tmp_path, "sh", "-c", f"echo {number}; exit {number}") == (
            Ended(number),
            f"{number}\n",
            "",
        )

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(one, number)
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert forks.pid
    await until_gone([child.pid for child in psutil.Process(forks.pid).children(recursive=True)])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds what has left its process group")
async def test_a_command_whose_time_is_over_is_ended_with_all_that_it_started(
    forks: ForkServer, tmp_path: Path
) -> None:
    family: list[int] = []
    async with supervised(python(FAMILY), tmp_path, ladder=AT_ONCE, forks=forks) as child:
        said = b""
        with anyio.fail_after(PATIENCE_S):
            while said.count(b"\n") < 2:
                said += await child.stdout.receive()
        family = [int(line) for line in said.split()]
        assert child.pid in family
    assert child.ended
    assert not any(map(alive, family))


async def test_a_signal_reaches_the_command_by_its_supervisor(forks: ForkServer, tmp_path: Path) -> None:
    trap = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print(flush=True); signal.pause()"
    async with supervised(python(trap), tmp_path, forks=forks) as child:
        await child.stdout.receive()
        child.send_signal(signal.SIGTERM)
        with anyio.fail_after(PATIENCE_S):
            assert await child.wait() == 7


async def test_runs_outlive_a_killed_fork_server_and_the_next_one_starts_another(
    forks: ForkServer, tmp_path: Path
) -> None:
    async with supervised(["cat"], tmp_path, forks=forks) as child:
        first = forks.pid
        assert first
        await child.stdin.send(b"here\n")
        assert await child.stdout.receive() == b"here\n"
        os.kill(first, signal.SIGKILL)
        await until_gone([first])
        assert (await ended(forks, tmp_path, "true"))[0] == Ended(0)
        assert forks.pid not in (first, None)
        await child.stdin.send(b"still there\n")
        assert await child.stdout.receive() == b"still there\n"
        await child.close_input()
        with anyio.fail_after(PATIENCE_S):
            assert await child.wait() == 0


async def test_a_killed_supervisor_is_seen_and_leaves_nothing(forks: ForkServer, tmp_path: Path) -> None:
    async with supervised(["sleep", "3600"], tmp_path, forks=forks) as child:
        while (pid := child.pid) is None:
            await anyio.sleep(0.001)
        child.kill_supervisor()
        with anyio.fail_after(PATIENCE_S):
            assert await child.wait() == -signal.SIGKILL
        await until_gone([pid])


async def test_closing_ends_the_fork_server(tmp_path: Path) -> None:
    forks = ForkServer()
    await run(["true"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing(), forks=forks)
    pid = forks.pid
    assert pid
    await forks.close()
    assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds what has left its process group")
async def test_a_killed_server_leaves_neither_command_nor_fork_server() -> None:
    async with await anyio.open_process([sys.executable, "-c", SERVER, FAMILY], cwd=CHECKOUT, stderr=None) as server:
        assert server.stdout
        said = b""
        with anyio.fail_after(PATIENCE_S):
            while said.count(b"\n") < 2:
                said += await server.stdout.receive()
        pids = sorted({int(word) for word in said.split()})
        assert len(pids) == 3
        server.kill()
        await until_gone(pids)


@contextmanager
def only_so_many_more(count: int) -> Generator[None]:
    """Descriptors that this process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0) for _ in range(50)]
    for descriptor in taken[:count]:  # the lowest: what is opened gets those
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken[count:]:
            os.close(descriptor)


def descriptors() -> set[str]:
    """Those that this process has open, and one by which that is read."""
    return {file.name for file in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": uvloop}) for uvloop in (False, True)])
@pytest.mark.parametrize(("forked", "counts"), [(False, range(16)), (True, range(12))])
async def test_where_descriptors_are_scarce_a_command_that_fails_leaves_none_open(
    forks: ForkServer, tmp_path: Path, forked: bool, counts: range
) -> None:
    await ended(forks, tmp_path, "true")
    before = descriptors()
    for count in counts:
        with only_so_many_more(count), pytest.raises(OSError, match="Too many open files"):
            await run(["true"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing(), forks=forks if forked else None)
    assert descriptors() == before


@pytest.mark.parametrize("is_forked", [False, True])
async def test_a_server_with_more_than_a_thousand_open_files_runs_commands(*, is_forked: bool) -> None:
    """Each client takes some of them: the numbers that a supervisor is handed are larger than `select` takes."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], min(limits[1], 4096)), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(1100)]
    forks, said = ForkServer() if is_forked else None, Head(100)
    try:
        ended = await run(["/bin/sh", "-c", "echo ran"], Path("/"), deadline_s=60, stdout=said, forks=forks)
    finally:
        for one in opened:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        if forks is not None:
            await forks.close()
    assert (ended.exit_code, said.text) == (0, "ran\n")
