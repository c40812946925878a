"""Commands and programs under a supervisor: real children that behave badly, and what is left of them."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest
from anyio.abc import Process

from serena_central.processes import child as child_module
from serena_central.processes.child import Ended, Limits, run, supervised
from serena_central.processes.ladder import AT_ONCE, Ladder
from serena_central.processes.output import Head, Lines, Nothing, Tail
from tests.support.child import alive, until_gone

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).parents[3]

PATIENCE_S = 60.0

FAMILY = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(3600)
os.wait()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(3600)
"""
"""A program that ignores what it is told, and whose grandchild has left its session and its parent. Each line is one
write: with PYTHONUNBUFFERED, `print` writes the line break by itself, and two processes mix theirs."""

SERVER = """
import sys, anyio
from pathlib import Path
from serena_central.processes.child import run
from serena_central.processes.output import Lines

async def main():
    def tell(line):
        sys.stdout.write(line.decode() + "\\n")
        sys.stdout.flush()
    await run([sys.executable, "-c", sys.argv[1]], Path("/"), deadline_s=None, stdout=Lines(tell))

anyio.run(main, backend_options={"use_uvloop": True})
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def pids_of(output: Head) -> list[int]:
    return [int(line) for line in output.text.split()]


async def test_a_command_is_given_its_input_and_answers_output_errors_and_code(tmp_path: Path) -> None:
    output, errors = Head(1000), Tail(1000)
    command = ["/bin/sh", "-c", 'cat; echo "$NAME" >&2; exit 3']
    ended = await run(
        command,
        tmp_path,
        deadline_s=PATIENCE_S,
        given=b"said",
        stdout=output,
        stderr=errors,
        environment={"PATH": os.defpath, "NAME": "whole"},
    )
    assert ended == Ended(3)
    assert (output.text, errors.text) == ("said", "whole")


async def test_a_signal_is_told_from_a_code(tmp_path: Path) -> None:
    ended = await run(["/bin/sh", "-c", "kill -SEGV $$"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing())
    assert ended == Ended(signal=signal.SIGSEGV)
    assert ended.exit_code == -signal.SIGSEGV
    code = 128 + signal.SIGSEGV
    assert await run(["/bin/sh", "-c", f"exit {code}"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing()) == Ended(
        code
    )


async def test_a_command_that_is_missing_or_no_program_is_told_from_one_that_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await run(["no-such-program"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing())
    (tmp_path / "text").write_text("no program")
    with pytest.raises(PermissionError):
        await run([tmp_path / "text"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing())
    assert await run(["/bin/sh", "-c", "exit 127"], tmp_path, deadline_s=PATIENCE_S, stdout=Nothing()) == Ended(127)


async def test_a_command_whose_time_is_over_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    output = Head(1000)
    started = anyio.Event()

    class Watching:
        def take(self, chunk: bytes) -> None:
            output.take(chunk)
            if len(output.text.split("\n")) == 3:
                started.set()

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            with scope:
                await run(python(FAMILY), tmp_path, deadline_s=None, stdout=Watching())

        tasks.start_soon(ask)
        with anyio.fail_after(PATIENCE_S):
            await started.wait()
        family = pids_of(output)
        assert all(map(alive, family))
        scope.cancel()
    assert not any(map(alive, family))
    ended = await run(["/bin/sh", "-c", "sleep 3600"], tmp_path, deadline_s=0.01, stdout=Nothing())
    assert ended == Ended(timed_out=True)


async def test_what_a_command_leaves_behind_is_killed_when_it_ends(tmp_path: Path) -> None:
    output = Head(1000)
    command = ["/bin/sh", "-c", "sleep 3600 & echo $!; setsid sleep 3600 & echo $!"]
    assert await run(command, tmp_path, deadline_s=PATIENCE_S, stdout=output) == Ended(0)
    left = pids_of(output)
    assert len(left) == 2
    assert not any(map(alive, left))


async def test_a_flood_on_stderr_blocks_nothing_and_is_kept_within_bounds(tmp_path: Path) -> None:
    output, errors = Head(100), Tail(1000)
    code = "import sys; [sys.stderr.write('x' * 1023 + '\\n') for _ in range(10_240)]; print('done')"
    assert await run(python(code), tmp_path, deadline_s=PATIENCE_S, stdout=output, stderr=errors) == Ended(0)
    assert output.text == "done\n"
    assert len(errors.kept) == 1000
    assert errors.dropped == 10 * 1024 * 1024 - 1000


async def test_a_program_that_closes_its_streams_is_still_waited_for(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    command = ["/bin/sh", "-c", f"exec 0<&- 1>&- 2>&-; sleep 0.1; touch {proof}; exit 4"]
    assert await run(command, tmp_path, deadline_s=PATIENCE_S, given=b"x" * 1_000_000, stdout=Nothing()) == Ended(4)
    assert proof.exists()


async def test_a_program_that_dies_at_once_leaves_its_code_and_words(tmp_path: Path) -> None:
    async with supervised(["/bin/sh", "-c", "echo why >&2; exit 5"], tmp_path) as child:
        with anyio.fail_after(PATIENCE_S):
            assert await child.wait() == 5
        assert child.stderr_tail == "why"
        assert child.pid is not None
        assert child.not_executed is None


async def test_both_outputs_can_be_one_in_the_order_of_writing(tmp_path: Path) -> None:
    lines: list[bytes] = []
    command = ["/bin/sh", "-c", "echo one; echo two >&2; echo three"]
    await run(command, tmp_path, deadline_s=PATIENCE_S, stdout=Lines(lines.append), merged=True)
    assert lines == [b"one", b"two", b"three"]


async def test_an_interrupt_comes_before_the_termination(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: print('interrupted', flush=True))\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('terminated', flush=True), sys.exit(0)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(3600)\n"
    )
    log = tmp_path / "log"
    command = ["/bin/sh", "-c", f'exec "$0" "$@" > {log}', *python(code)]
    async with supervised(command, tmp_path, ladder=Ladder(0.0, PATIENCE_S, interrupt_s=1.0)) as child:
        with anyio.fail_after(PATIENCE_S):
            while not log.exists() or not log.read_text():
                await anyio.sleep(0.01)
    assert log.read_text().split() == ["ready", "interrupted", "terminated"]
    assert child.exit_code == 0


@pytest.mark.parametrize("steps", range(8))
async def test_a_start_that_is_cancelled_leaves_neither_a_process_nor_a_pipe(tmp_path: Path, steps: int) -> None:
    async with supervised(python(""), tmp_path) as first:  # what the loop opens for its first child stays
        await first.wait()
    this = psutil.Process()
    others, descriptors = set(this.children(recursive=True)), this.num_fds()  # of tests before this one
    async with anyio.create_task_group() as tasks:

        async def start() -> None:
            async with supervised(python("input()"), tmp_path, ladder=AT_ONCE):
                await anyio.sleep_forever()

        tasks.start_soon(start)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert (set(this.children(recursive=True)) - others, this.num_fds()) == (set(), descriptors)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the kernel of Linux")
async def test_limits_hold_for_a_program_and_what_it_starts(tmp_path: Path) -> None:
    output = Head(10_000)
    limits = Limits(memory_bytes=1 << 30, keeps_privileges=False)
    command = ["/bin/sh", "-c", "sh -c 'ulimit -v; grep NoNewPrivs /proc/self/status'"]
    assert await run(command, tmp_path, deadline_s=PATIENCE_S, stdout=output, limits=limits) == Ended(0)
    assert output.text.split() == [str(1 << 20), "NoNewPrivs:", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked at in /proc")
async def test_a_program_has_no_descriptors_but_its_own(tmp_path: Path) -> None:
    output = Head(10_000)
    os.set_inheritable(descriptor := os.open("/", os.O_RDONLY), True)
    try:
        code = "import os; print(*sorted(int(name) for name in os.listdir('/proc/self/fd')))"
        await run(python(code), tmp_path, deadline_s=PATIENCE_S, stdout=output)
    finally:
        os.close(descriptor)
    # The last one is the listing's own.
    assert output.text.split()[:-1] == ["0", "1", "2"]


@asynccontextmanager
async def serving(code: str) -> AsyncGenerator[tuple[Process, list[int]]]:
    """A process of ours that runs a command, and what two lines of that one's output say."""
    async with await anyio.open_process([sys.executable, "-c", SERVER, code], cwd=CHECKOUT, stderr=None) as server:
        assert server.stdout
        said = b""
        with anyio.fail_after(PATIENCE_S):
            while said.count(b"\n") < 2:
                said += await server.stdout.receive()
        try:
            yield server, [int(line) for line in said.split()]
        finally:
            if server.returncode is None:
                server.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds what has left its process group")
async def test_a_killed_server_leaves_nothing_of_a_command(tmp_path: Path) -> None:
    async with serving(FAMILY) as (server, family):
        assert all(map(alive, family))
        server.kill()
        await until_gone(family)


async def test_pipes_are_closed_although_a_survivor_holds_their_other_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "_DRAIN_S", 0.05)
    left: list[int] = []
    try:
        with anyio.fail_after(PATIENCE_S):
            async with supervised(python(""), tmp_path) as first:  # what the loop opens for its first child stays
                await first.wait()
            before = psutil.Process().num_fds()
            async with supervised(python(FAMILY), tmp_path, ladder=AT_ONCE) as program:
                said = b""
                while said.count(b"\n") < 2:
                    said += await program.stdout.receive()
                left += map(int, said.split())
                program.kill_supervisor()
                await program.wait()
            assert psutil.Process().num_fds() == before
        assert any(map(alive, left))
    finally:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def test_a_stubborn_program_is_killed_when_the_block_is_left(tmp_path: Path) -> None:
    async with supervised(python(FAMILY), tmp_path, ladder=AT_ONCE) as child:
        said = b""
        with anyio.fail_after(PATIENCE_S):
            while said.count(b"\n") < 2:
                said += await child.stdout.receive()
        family = [int(line) for line in said.split()]
        assert child.pid in family
    assert child.ended
    if sys.platform == "linux":
        assert not any(map(alive, family))


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the system has no groups of sessions")
async def test_what_gives_way_says_so_to_the_scheduler_for_all_of_its_session(tmp_path: Path) -> None:
    program = "import os; print(os.nice(0), open('/proc/self/autogroup').read())"
    for nice in (0, 5):
        async with supervised([sys.executable, "-c", program], tmp_path, limits=Limits(nice=nice)) as child:
            said = b"".join([chunk async for chunk in child.stdout]).decode().split()
        assert int(said[0]) - os.nice(0) == nice
        assert said[-1] == str(nice)
