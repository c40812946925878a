"""One language server's process: spawned under the guard, its stderr drained, stopped by a ladder of bounded waits.

It knows nothing of LSP. What `guarded` yields is gone, with all its descendants, when the block is left.
"""

import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import psutil
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from serena_central.island.private import OTHERS, user_umask
from serena_central.lsp.locate import Launch
from serena_central.lsp.scratch import Scratch, make
from serena_central.lsp.search_path import search_path

logger = logging.getLogger(__name__)

GUARD = Path(__file__).with_name("guard.py")

STDERR_TAIL_BYTES = 16 * 1024
"""What is kept of a server's last words."""


class Ladder(NamedTuple):
    """Seconds that a program may take to end by itself, after its stdin was closed and then after SIGTERM."""

    closed_s: float
    term_s: float


POLITE = Ladder(1.0, 1.0)
"""For a language server, which may have to save something. With the client's second for `shutdown`, and the waits for
what was killed, it stays under 5 altogether."""

KILL_S = 1.0

REMOVAL_S = 2.0
"""How long one waits for a temporary folder to be gone."""

_OF_ONE_PROJECT = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "GOWORK"})
"""Variables of the shell that started us which would decide for every project: an environment that was active there."""

_DRAIN_S = 2.0
"""How long the last words of a process that has ended are waited for: nothing is left then that holds its pipes."""


class Usage(NamedTuple):
    """What a process tree takes: memory now, and processor time of those of its processes that run."""

    memory_bytes: int = 0
    cpu_s: float = 0.0


class GuardedProcess:
    """A running process and its guard. Made by `guarded` alone."""

    def __init__(self, process: Process, lifeline: int) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.stdin: ByteSendStream = process.stdin
        self.stdout: ByteReceiveStream = process.stdout
        self._stderr: ByteReceiveStream = process.stderr
        self._process = process
        self._lifeline: int | None = lifeline
        self._tail = bytearray()
        self._drained = anyio.Event()
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        """The language server's process, under the guard; None before it could be seen, or when it never was."""
        if self._pid is None and self._process.returncode is None:
            try:
                children = psutil.Process(self._process.pid).children()
                self._pid = min(children, key=lambda child: child.create_time()).pid if children else None
            except psutil.Error:
                return None
        return self._pid

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, None while it runs."""
        return self._process.returncode

    @property
    def stderr_tail(self) -> str:
        return self._tail.decode("utf-8", "replace").strip()

    def usage(self) -> Usage:
        """Of the guard and everything below it; nothing when nothing is left. Reads /proc for some milliseconds."""
        try:
            guard = psutil.Process(self._process.pid)
            tree = [guard, *guard.children(recursive=True)]
        except psutil.Error:
            return Usage()
        return Usage(sum(map(_memory_of, tree)), sum(map(_cpu_s_of, tree)))

    async def drain(self) -> None:
        """Reads stderr until its end, so that a server that complains much is never blocked by it."""
        try:
            async for chunk in self._stderr:
                self._tail += chunk
                del self._tail[:-STDERR_TAIL_BYTES]
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self._drained.set()

    async def wait(self) -> int:
        """Waits until the program has ended by itself and all its last words are read; returns its exit code."""
        code = await self._process.wait()
        with anyio.move_on_after(_DRAIN_S):
            await self._drained.wait()
        return code

    async def end(self, ladder: Ladder) -> None:
        """Closes stdin, then terminates, then kills; returns when the guard and so the whole tree is reaped."""
        with anyio.move_on_after(ladder.closed_s):
            await self.stdin.aclose()
            await self._process.wait()
        if self.exit_code is None:
            self._signal(signal.SIGTERM)
            await self._wait(ladder.term_s)
        self.cut()
        if self.exit_code is None:
            await self._wait(KILL_S)
        if self.exit_code is None:
            # A guard that is stopped or stuck; the kernel kills the language server with it.
            self._signal(signal.SIGKILL)
            await self._wait(KILL_S)
        # Only pipes that were read to their end are closed with the process: nothing must be left to the loop.
        with anyio.move_on_after(_DRAIN_S):
            await self._read_out()
            await self._drained.wait()

    async def _read_out(self) -> None:
        try:
            async for _ in self.stdout:
                pass
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    def cut(self) -> None:
        """Closes the lifeline: the guard kills everything below it."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _signal(self, number: signal.Signals) -> None:
        try:
            self._process.send_signal(number)
        except ProcessLookupError:
            logger.debug("guard %d is gone already", self._process.pid)

    async def _wait(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._process.wait()


@asynccontextmanager
async def guarded(
    launch: Launch,
    cwd: Path,
    *,
    environment: Mapping[str, str] | None = None,
    ladder: Ladder = POLITE,
    temporary: Path | None = None,
    private: bool = False,
) -> AsyncGenerator[GuardedProcess]:
    """Runs a program under the guard while the block is open, in `environment` or else in this process's own.
    `ladder` is how it is ended, if it still runs then.

    Below `temporary` (`Places.temporary`) it gets a temporary folder that is gone when it is. What it writes is as the
    user's own umask says, for it writes the project's files (what a build makes, say), unless it is `private`.

    Raises: OSError when not even the guard can start.
    """
    watched_end, lifeline = os.pipe()  # not inheritable: no child ever holds the write end
    scratch = make(temporary) if temporary else None
    umask = OTHERS if private else user_umask()
    try:
        folder = str(scratch.folder) if scratch else ""
        command = [sys.executable, "-I", "-S", str(GUARD), str(watched_end), f"{umask:o}", folder, *launch.command]
        started = await anyio.open_process(
            command,
            cwd=cwd,
            env={
                **(_inherited() if environment is None else environment),
                **launch.env,
                **(scratch.environment if scratch else {}),
            },
            pass_fds=[watched_end, scratch.lock] if scratch else [watched_end],
            start_new_session=True,  # a Ctrl-C in the terminal is for this server, which ends its children in order
        )
    except BaseException:
        os.close(lifeline)
        if scratch:
            scratch.remove()
        raise
    finally:
        os.close(watched_end)
        if scratch:
            scratch.unlock()  # the guard has it
    process = GuardedProcess(started, lifeline)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.drain)
        try:
            yield process
        finally:
            try:
                # Bounded by the ladder's own waits.
                with anyio.CancelScope(shield=True):
                    await process.end(ladder)
                    if scratch:
                        await _remove(scratch)
            finally:
                process.cut()
                tasks.cancel_scope.cancel()


async def _remove(scratch: Scratch) -> None:
    """Removes what is left of a temporary folder, within bounds: what is not removed then is swept later."""
    if scratch.folder.exists():
        with anyio.move_on_after(REMOVAL_S):
            await anyio.to_thread.run_sync(scratch.remove, abandon_on_cancel=True)


def _inherited() -> dict[str, str]:
    """Ours, but for what the shell that we were started from says of one project."""
    return {name: value for name, value in os.environ.items() if name not in _OF_ONE_PROJECT} | {
        "PATH": search_path(os.environ)
    }


def _cpu_s_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _memory_of(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
        return getattr(full, "pss", 0) or full.rss
    except psutil.AccessDenied:
        pass
    except psutil.Error:
        return 0
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0
