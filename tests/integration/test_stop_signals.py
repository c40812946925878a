"""Ctrl-C and SIGTERM, wherever the server is: one stops it in order, and one more Ctrl-C ends it at once."""

import os
import pty
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from serena_central.cli.stop_signals import SAME_S
from tests.support.child import PATIENCE_S, environment

pytestmark = pytest.mark.anyio

BEGUN = "from serena_central.cli.__main__ import main; print('begun', flush=True); main()"

PARTS_ARE_BUILT = """
import os, signal, serena_central.app as app
build = app.build

def interrupted(*arguments, **more):
    os.kill(os.getpid(), signal.SIGINT)
    return build(*arguments, **more)

app.build = interrupted
from serena_central.cli.__main__ import main
main()
"""
"""Ctrl-C right before anything awaits: what asyncio makes of it is the hardest to end."""

IN_A_DESTRUCTOR = """
import importlib.abc, os, signal, sys

class Interrupting:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            Interrupting()

sys.meta_path.insert(0, Finder())
from serena_central.cli.__main__ import main
main()
"""
"""Python drops what is raised there, as it does in the import system's own callbacks after every module."""

STUCK = """
import anyio, serena_central.app as app

async def stuck(self, sockets=None):
    print("stuck", flush=True)
    while True:
        try:
            await anyio.sleep_forever()
        except BaseException:
            pass

app.CentralServer.{method} = stuck
from serena_central.cli.__main__ import main
main()
"""


@asynccontextmanager
async def served(folder: Path, script: str) -> AsyncGenerator[Process]:
    """The process of a script that serves; killed at the end, if it still runs."""
    program = [sys.executable, "-c", script, "serve", "--port", "0"]
    process = await anyio.open_process(program, env=environment(folder))
    try:
        with anyio.fail_after(PATIENCE_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.aclose()


async def printed(process: Process, text: str) -> None:
    """Returns when it has printed this."""
    assert process.stdout is not None
    seen = ""
    async for part in TextReceiveStream(process.stdout):
        seen += part
        if text in seen:
            return
    raise AssertionError(f"it ended, and printed only {seen!r}")


async def ended(process: Process) -> tuple[int, str]:
    """Exit code and stderr."""
    assert process.stderr is not None
    said = "".join([part async for part in TextReceiveStream(process.stderr)])
    return await process.wait(), said.strip()


async def test_ctrl_c_before_the_server_handles_it_ends_the_start(tmp_path: Path) -> None:
    async with served(tmp_path, PARTS_ARE_BUILT) as process:
        assert await ended(process) == (-signal.SIGINT, "")
    assert not (tmp_path / "home/server.json").exists()


@pytest.mark.parametrize("module", ["serena_central.cli.serve", "serena_central.app.serving"])
async def test_ctrl_c_where_python_drops_exceptions_ends_the_start(tmp_path: Path, module: str) -> None:
    async with served(tmp_path, IN_A_DESTRUCTOR.format(module=module)) as process:
        assert await ended(process) == (-signal.SIGINT, "")
    assert not (tmp_path / "home/server.json").exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
async def test_ctrl_c_during_the_start_leaves_no_traceback_and_no_announcement(tmp_path: Path, delay_s: float) -> None:
    """Wherever in the start it comes: the test holds at every delay, whatever is reached by then."""
    async with served(tmp_path, BEGUN) as process:
        await printed(process, "begun")
        await anyio.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        code, said = await ended(process)
    assert (code in (130, -signal.SIGINT), said) == (True, "")
    assert not (tmp_path / "home/server.json").exists()


@pytest.mark.parametrize(("method", "first"), [("startup", signal.SIGINT), ("shutdown", signal.SIGTERM)])
async def test_a_second_ctrl_c_ends_a_server_that_does_not_stop(tmp_path: Path, method: str, first: int) -> None:
    async with served(tmp_path, STUCK.format(method=method)) as process:
        await printed(process, "stuck" if method == "startup" else "Stop: Ctrl-C")
        process.send_signal(first)
        if method == "shutdown":
            await printed(process, "stuck")
        with anyio.move_on_after(SAME_S * 2):
            await process.wait()
            raise AssertionError("the first one ended it at once")
        while process.returncode is None:  # on a busy machine the first may be handled only now, and this be the same
            process.send_signal(signal.SIGINT)
            with anyio.move_on_after(SAME_S * 2):
                await process.wait()
        assert await ended(process) == (-signal.SIGINT, "")
    async with served(tmp_path, BEGUN) as process:  # what is left of the other one is no obstacle
        await printed(process, "Stop: Ctrl-C")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_that_comes_twice_at_once_stops_the_server_in_order(tmp_path: Path, number: int) -> None:
    async with served(tmp_path, BEGUN) as process:
        await printed(process, "Stop: Ctrl-C")
        process.send_signal(number)
        process.send_signal(number)
        assert await ended(process) == (128 + number, "")
    assert not (tmp_path / "home/server.json").exists()


async def test_a_closed_terminal_stops_the_server_in_order(tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    program = [sys.executable, "-c", BEGUN, "serve", "--port", "0"]
    with anyio.fail_after(PATIENCE_S):
        process = await anyio.open_process(
            program, env=environment(tmp_path), stdin=other_end, stdout=other_end, stderr=other_end
        )
        os.close(other_end)
        seen = b""
        while b"Stop: Ctrl-C" not in seen:
            seen += await anyio.to_thread.run_sync(os.read, terminal, 4096)
        os.close(terminal)  # what is printed from now on fails
        process.send_signal(signal.SIGHUP)
        assert await process.wait() == 128 + signal.SIGHUP
    assert not (tmp_path / "home/server.json").exists()
    assert "Application shutdown complete" in (tmp_path / "home/logs/server.log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked at in /proc")
async def test_a_server_without_standard_streams_has_no_file_of_its_own_in_their_place(tmp_path: Path) -> None:
    script = 'exec "$0" -m serena_central.cli serve --port 0 <&- >&- 2>&-'
    process = await anyio.open_process(
        ["sh", "-c", script, sys.executable], env=environment(tmp_path), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    with anyio.fail_after(PATIENCE_S):
        while process.returncode is None and not (tmp_path / "home/server.json").exists():
            await anyio.sleep(0.05)
        streams = [str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in range(3)]
        process.terminate()
        assert await process.wait() == 128 + signal.SIGTERM
    assert streams == [os.devnull] * 3


async def test_a_server_that_nohup_started_outlives_the_terminal(tmp_path: Path) -> None:
    script = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {BEGUN}"
    async with served(tmp_path, script) as process:
        await printed(process, "Stop: Ctrl-C")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == (128 + signal.SIGTERM, "")
