"""Time in which this process did not run counts for nobody's deadline; a clock that is set makes nothing older."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from serena_central.core.clock import UnhurriedClock
from serena_central.core.running_time import IDLE_TICK_S, TICK_S, RunningTime, Steps

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).parents[3]

STOPPED = r"""
import sys, anyio, anyio.lowlevel
from serena_central.core.running_time import running_time

async def main():
    async with anyio.create_task_group() as tasks:
        await tasks.start(running_time.run)
        with running_time.move_on_after(1.5):  # by the monotonic clock it is over when the process goes on
            began = running_time()
            sys.stdout.write("waiting\n")
            sys.stdout.flush()
            await anyio.wait_readable(0)
            sys.stdout.write(f"answered after {running_time() - began < 1.5}\n")
            sys.stdout.flush()
        tasks.cancel_scope.cancel()

anyio.run(main, backend_options={"use_uvloop": sys.argv[1] == "uvloop"})
"""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="POSIX only")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_an_answer_that_came_while_the_process_was_stopped_is_in_time(loop: str) -> None:
    command = [sys.executable, "-c", STOPPED, loop]
    async with await anyio.open_process(command, cwd=CHECKOUT, stderr=None, stdin=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        with anyio.fail_after(60):
            assert await process.stdout.receive() == b"waiting\n"
            process.send_signal(signal.SIGSTOP)
            await process.stdin.send(b"answer\n")
            await anyio.sleep(4)  # what is tested is that time passes
            process.send_signal(signal.SIGCONT)
            assert await process.stdout.receive() == b"answered after True\n"
            await process.wait()


async def test_a_pause_is_not_counted_and_puts_deadlines_off() -> None:
    clock = Clock()
    running = RunningTime(clock)
    async with anyio.create_task_group() as tasks:
        await tasks.start(running.run)
        with running.move_on_after(50) as scope:
            deadline = scope.deadline
            clock.now += 100
            assert running() == pytest.approx(1000 + TICK_S)
            assert scope.deadline == pytest.approx(deadline + 100 - TICK_S)
            clock.now += 0.1
            assert running() == pytest.approx(1000.1 + TICK_S)
        tasks.cancel_scope.cancel()


async def test_a_pause_while_nobody_waits_is_not_counted_either() -> None:
    clock = Clock()
    running = RunningTime(clock)
    async with anyio.create_task_group() as tasks:
        await tasks.start(running.run)
        clock.now += 100
        assert 1000 <= running() <= 1000 + 2 * IDLE_TICK_S
        with running.move_on_after(50) as scope:  # from now on it is looked for often
            began, deadline = running(), scope.deadline
            clock.now += 5
            assert running() - began == pytest.approx(TICK_S)
            assert scope.deadline == pytest.approx(deadline + 5 - TICK_S)
        tasks.cancel_scope.cancel()


async def test_where_nobody_watches_for_pauses_it_is_the_monotonic_clock() -> None:
    clock = Clock()
    running = RunningTime(clock)
    clock.now += 100
    assert running() == 1100


def test_a_step_is_told_once_and_a_drift_never() -> None:
    wall, steady = Clock(), Clock()
    steps = Steps(wall, steady)
    for clock in (wall, steady):
        clock.now += 3600
    assert steps.taken() == 0
    wall.now += 0.5
    assert steps.taken() == 0
    wall.now -= 7200.5
    assert [steps.taken(), steps.taken()] == [-7200, 0]


def test_what_is_kept_does_not_grow_old_by_a_clock_that_was_set_forward() -> None:
    wall, steady = Clock(), Clock()
    clock = UnhurriedClock(wall, steady)
    wall.now += 30 * 86_400
    assert clock() == 1000
    steady.now += 60
    assert clock() == 1060
    wall.now = 500
    assert clock() == 500


async def test_a_deadline_that_was_set_after_a_pause_is_not_put_off_by_it() -> None:
    clock = Clock()
    running = RunningTime(clock)
    async with anyio.create_task_group() as tasks:
        await tasks.start(running.run)
        clock.now += 100
        with running.move_on_after(50) as first:
            assert first.deadline <= anyio.current_time() + 50
            clock.now += 100
            with running.move_on_after(50) as second:  # one counts on the clock already
                running()
                assert second.deadline <= anyio.current_time() + 50 < first.deadline
        tasks.cancel_scope.cancel()
