"""What is left when somebody dies: real processes, killed by a real parent's end."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from serena_central.processes import supervisor as supervisor_module
from serena_central.processes.child import supervised
from serena_central.processes.ladder import AT_ONCE
from tests.support.child import alive, until_gone
from tests.support.fakes import fake_server, logged, running

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).parents[3]

STUBBORN: dict[str, Any] = {"ignore_eof": True, "ignore_sigterm": True, "ignore_shutdown": True, "detached_child": True}


@pytest.mark.parametrize("script", [{}, STUBBORN], ids=["polite", "stubborn"])
async def test_killing_the_parent_leaves_no_process_of_its_servers(tmp_path: Path, script: dict[str, Any]) -> None:
    log = tmp_path / "log.jsonl"
    arguments = [str(tmp_path), json.dumps({"log": str(log), "detached_child": True, **script})]
    command = [sys.executable, "-m", "tests.support.supervisor_parent", *arguments]
    async with await anyio.open_process(command, cwd=CHECKOUT, stderr=None) as parent:
        assert parent.stdout
        with anyio.fail_after(60):
            assert await parent.stdout.receive() == b"running\n"
        server = (await logged(log, event="started"))["pid"]
        child = (await logged(log, event="child"))["pid"]
        supervisor = psutil.Process(server).ppid()
        assert all(alive(pid) for pid in (server, child, supervisor))
        parent.kill()
        await until_gone([server, child, supervisor])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds what has left its process group")
async def test_what_a_server_leaves_behind_when_it_ends_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    server = fake_server(tmp_path, log=str(log), detached_child=True)
    async with running(server):
        child = (await logged(log, event="child"))["pid"]
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        with anyio.fail_after(60):
            await server._reaped.wait()
        assert not alive(child)
    assert server.exit_code == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
async def test_a_server_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    server = fake_server(tmp_path, **{**STUBBORN, "detached_child": False})
    async with running(server):
        pid = server.pid
        assert pid
        os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
        await until_gone([pid])
        with anyio.fail_after(60):
            await server._reaped.wait()


async def test_no_server_holds_the_lifeline_of_another(tmp_path: Path) -> None:
    async with running(fake_server(tmp_path)) as first, running(fake_server(tmp_path)) as second:
        lifeline = first._process._lifeline if first._process else None
        assert lifeline is not None
        assert not os.get_inheritable(lifeline)
        pid = first.pid
        assert pid
        assert first._process
        first._process.kill()
        await until_gone([pid])
        assert second.alive


async def test_a_termination_of_the_supervisor_is_passed_on(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(fake_server(tmp_path, log=str(log), ignore_sigterm=True)) as server:
        assert server.pid
        os.kill(psutil.Process(server.pid).ppid(), signal.SIGTERM)
        await logged(log, event="sigterm")
        await server.ping()


async def test_the_pipes_of_a_program_that_nobody_listened_to_are_closed_when_it_is_ended(tmp_path: Path) -> None:
    async def run() -> None:
        async with supervised(["/bin/sh", "-c", "yes; sleep 60"], tmp_path, ladder=AT_ONCE) as process:
            await process.stdout.receive()

    await run()  # what the first one opens for good
    before = set(Path("/proc/self/fd").iterdir())
    await run()
    assert set(Path("/proc/self/fd").iterdir()) <= before


HELD_BACK = """
import os, sys, time, runpy
fork = os.fork
def late():
    pid = fork()
    if pid:
        time.sleep(60)
    return pid
os.fork = late
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A supervisor that the scheduler passes over once it has forked."""


async def test_who_hears_from_a_program_knows_its_pid_however_late_its_supervisor_goes_on() -> None:
    (watched, lifeline), (report, reporting) = os.pipe(), os.pipe()
    os.set_blocking(report, False)
    program = [sys.executable, "-I", "-S", "-c", "import os; print(os.getpid(), os.getpgid(0), flush=True)"]
    arguments = [str(word) for word in (watched, reporting, "022", 0, 0, "keep", "", *program)]
    command = [sys.executable, "-c", HELD_BACK, supervisor_module.__file__, *arguments]
    try:
        process = await anyio.open_process(command, pass_fds=[watched, reporting])
        os.close(watched)
        os.close(reporting)
        try:
            assert process.stdout
            with anyio.fail_after(60):
                pid, group = (await process.stdout.receive()).split()
            assert os.read(report, 64) == b"p%s\n" % pid
            assert group == pid
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()
    finally:
        os.close(lifeline)
        os.close(report)
