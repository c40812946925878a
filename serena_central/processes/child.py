"""Children: programs that run under a supervisor, with bounded output and a bounded end. They know no protocol.

Two ways: `supervised` runs a program while a block is open, for whoever speaks with it over stdin and stdout; `run`
runs a command to its end. Either way the program is gone, with all its descendants, when the block is left or the call
returns, also when this server is killed.
"""

import logging
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from serena_central.processes.environment import inherited
from serena_central.processes.fork_server import ForkedProcess, ForkServer, open_pipes
from serena_central.processes.ladder import AT_ONCE, POLITE, Ladder, stop
from serena_central.processes.output import Nothing, Sink, Tail, drain
from serena_central.processes.scratch import Scratch, make
from serena_central.processes.starting import start_supervisor
from serena_central.processes.usage import TreeUsage, Usage
from serena_central.standalone.private import OTHERS, user_umask

logger = logging.getLogger(__name__)

STDERR_TAIL_BYTES = 16 * 1024
"""What is kept of a child's stderr."""

REMOVAL_S = 2.0
"""How long one waits for a temporary folder to be gone."""

_DRAIN_S = 2.0
"""How long the rest of the output is waited for when a process has ended: nothing is left then that holds its pipes."""

_REPORT_BYTES = 64
"""More than the supervisor writes about the start of its child."""


class Limits(NamedTuple):
    """What a child may take and do, of its own and of whatever it starts."""

    memory_bytes: int = 0
    """Address space of each process; 0: no limit. Not for runtimes that reserve more than they use (a JVM, V8)."""

    nice: int = 0
    """How much they give way to others that want the CPU, as for nice(1)."""

    keeps_privileges: bool = True
    """False: set-uid programs run without what they would gain (Linux)."""


NO_LIMITS = Limits()

GIVES_WAY = 5
"""`nice` of what computes for this server: at 0 two busy language servers on two CPUs have each answer that needs
none of them wait, several times of some milliseconds. They still get a quarter of a CPU that others want, too."""


class ChildProcess:
    """A running program and its supervisor. Made by `supervised` alone."""

    def __init__(self, process: Process | ForkedProcess, lifeline: int, report: int, stderr: Tail) -> None:
        assert process.stdin
        assert process.stdout
        self.stdin: ByteSendStream = process.stdin
        self.stdout: ByteReceiveStream = process.stdout
        self._process = process
        self._lifeline: int | None = lifeline
        self._report: int | None = report
        self._reported = b""
        self._tail = stderr
        self._drained = anyio.Event()
        self._usage = TreeUsage()

    @property
    def pid(self) -> int | None:
        """The program's own process, which leads its group; None before it was forked. It stays when it has ended."""
        return self._told(b"p")

    @property
    def not_executed(self) -> int | None:
        """The errno with which the command could not be executed; None when it could, or when that is not known yet."""
        return self._told(b"e")

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal, None while it runs."""
        return self._process.returncode

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def stderr_tail(self) -> str:
        return self._tail.text

    def usage(self) -> Usage:
        """Of the supervisor and everything below it. Reads /proc for some milliseconds: call it in a thread."""
        return self._usage.of(self._process.pid) if self._process.pid is not None else Usage()

    async def drain(self) -> None:
        """Reads stderr until its end."""
        try:
            if self._process.stderr:
                await drain(self._process.stderr, self._tail)
        finally:
            self._drained.set()

    async def wait(self) -> int:
        """Waits until the program has ended by itself and its stderr is read; returns its exit code."""
        code = await self._process.wait()
        with anyio.move_on_after(_DRAIN_S):
            await self._drained.wait()
        return code

    async def end(self, ladder: Ladder) -> None:
        """Ends the program and reads what is left in its pipes."""
        await stop(self, ladder)
        # Only pipes that were read to their end are closed with the process: nothing must be left to the loop.
        with anyio.move_on_after(_DRAIN_S) as drained:
            await drain(self.stdout, Nothing())
            await self._drained.wait()
        if drained.cancelled_caught and isinstance(self._process, Process):
            # Below a supervisor that had to be killed a process may live on and hold them; anyio never closes them.
            cast("Any", self._process)._process._transport.close()  # noqa: SLF001
            with anyio.move_on_after(_DRAIN_S):
                await self._drained.wait()
            await anyio.lowlevel.checkpoint()

    async def close_input(self) -> None:
        await self.stdin.aclose()

    def send_signal(self, number: signal.Signals) -> None:
        """Sends SIGINT or SIGTERM to the program's process group, by way of the supervisor."""
        try:
            self._process.send_signal(number)
        except ProcessLookupError:
            logger.debug("supervisor %d is gone already", self._process.pid)

    def kill(self) -> None:
        """Closes the lifeline: the supervisor kills everything below it."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def kill_supervisor(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Closes what is left of this end."""
        self.kill()
        self._told(b"p")  # what was reported last
        if self._report is not None:
            os.close(self._report)
            self._report = None

    def _told(self, kind: bytes) -> int | None:
        """A number of the supervisor's report; looks once at what there is of it, and never blocks."""
        if self._report is not None:
            try:
                while part := os.read(self._report, _REPORT_BYTES):
                    self._reported += part
                os.close(self._report)
                self._report = None
            except BlockingIOError:
                pass
        found = [line[1:] for line in self._reported.splitlines() if line.startswith(kind)]
        return int(found[0]) if found else None


@asynccontextmanager
async def supervised(
    command: Sequence[str | Path],
    cwd: Path,
    *,
    environment: Mapping[str, str] | None = None,
    ladder: Ladder = POLITE,
    temporary: Path | None = None,
    private: bool = False,
    limits: Limits = NO_LIMITS,
    stderr: Tail | None = None,
    merged: bool = False,
    forks: ForkServer | None = None,
) -> AsyncGenerator[ChildProcess]:
    """Runs a program under a supervisor while the block is open, in `environment` or else in this process's own.
    `ladder` is how it is ended, if it still runs then. Its stderr goes to `stderr`, or with `merged` to its stdout.

    Below `temporary` (`Places.temporary`) it gets a temporary folder that is gone when it is. What it writes is as the
    user's own umask says, for it writes the project's files (what a build makes, say), unless it is `private`.

    `forks` starts it quicker, and makes no temporary folder.

    A command that can't be executed ends with code 127, and `not_executed` says why.

    Raises:
        OSError: not even the supervisor can start.
        ValueError: an argument or variable holds NUL.
    """
    assert forks is None or temporary is None
    (watched_end, lifeline), (report, reporting_end) = open_pipes(2)  # no child ever holds the lifeline
    os.set_blocking(report, False)
    scratch = make(temporary) if temporary else None
    umask = OTHERS if private else user_umask()
    variables = {**(inherited() if environment is None else environment), **(scratch.environment if scratch else {})}
    arguments = [
        watched_end,
        reporting_end,
        f"{umask:o}",
        limits.memory_bytes,
        limits.nice,
        "keep" if limits.keeps_privileges else "drop",
        scratch.folder if scratch else "",
        *command,
    ]
    started: Process | ForkedProcess
    try:
        if forks is not None:
            started = await forks.fork(
                [str(word) for word in command],
                cwd,
                variables,
                umask=umask,
                memory_bytes=limits.memory_bytes,
                nice=limits.nice,
                drops_privileges=not limits.keeps_privileges,
                lifeline=watched_end,
                report=reporting_end,
                merged=merged,
            )
        else:
            started = await start_supervisor(
                arguments,
                cwd=cwd,
                env=variables,
                stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                pass_fds=[watched_end, reporting_end, *([scratch.lock] if scratch else [])],
            )
    except BaseException:
        os.close(lifeline)
        os.close(report)
        if scratch:
            scratch.remove()
        raise
    finally:
        os.close(watched_end)
        os.close(reporting_end)
        if scratch:
            scratch.unlock()  # the supervisor has it
    # No await from here until the task group is entered: a cancellation between would leave the child to nobody.
    process = ChildProcess(started, lifeline, report, stderr or Tail(STDERR_TAIL_BYTES))
    try:
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
                    process.close()
                    tasks.cancel_scope.cancel()
    finally:
        if isinstance(started, ForkedProcess):
            started.close()  # now that nobody reads


class Ended(NamedTuple):
    """How a command ended: one of the three."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    """It was ended, with all that it had started, because its time was over."""

    @property
    def exit_code(self) -> int | None:
        """As the operating system's users write it in one number: negative for a signal."""
        return -self.signal if self.signal is not None else self.code


async def run(
    command: Sequence[str | Path],
    cwd: Path,
    *,
    deadline_s: float | None,
    given: bytes = b"",
    stdout: Sink,
    stderr: Tail | None = None,
    environment: Mapping[str, str] | None = None,
    ladder: Ladder = AT_ONCE,
    temporary: Path | None = None,
    private: bool = False,
    limits: Limits = NO_LIMITS,
    merged: bool = False,
    forks: ForkServer | None = None,
) -> Ended:
    """Runs a command to its end; `given` is its stdin. `stdout` takes its output as it comes. What it started and left
    behind is killed when it ends. `deadline_s` is None only where the caller has a bound of its own.

    Raises:
        OSError: it can't be executed (FileNotFoundError, PermissionError, …); names the command.
    """
    timed_out = False
    async with supervised(
        command,
        cwd,
        environment=environment,
        ladder=ladder,
        temporary=temporary,
        private=private,
        limits=limits,
        stderr=stderr,
        merged=merged,
        forks=forks,
    ) as process:
        with anyio.move_on_after(deadline_s) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_give, process.stdin, given)
                tasks.start_soon(drain, process.stdout, stdout)
                await process.wait()
                tasks.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
        timed_out = scope.cancelled_caught and not process.ended
    if process.not_executed is not None:
        raise OSError(process.not_executed, os.strerror(process.not_executed), str(command[0]))
    code = process.exit_code
    if timed_out or code is None:
        return Ended(timed_out=True)
    return Ended(code) if code >= 0 else Ended(signal=-code)


async def _give(stream: ByteSendStream, data: bytes) -> None:
    """Sends all of a command's input, if it wants so much."""
    try:
        if data:
            await stream.send(data)
        await stream.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def _remove(scratch: Scratch) -> None:
    """Removes what is left of a temporary folder, within bounds: what is not removed then is swept later."""
    if scratch.folder.exists():
        with anyio.move_on_after(REMOVAL_S):
            await anyio.to_thread.run_sync(scratch.remove, abandon_on_cancel=True)
