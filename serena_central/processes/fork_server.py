"""The fork server: a small process that forks supervisors, for commands that are over in milliseconds.

Starting a supervisor's interpreter takes several times as long as most such commands. The fork server (`supervisor.py`)
is started by the first of them, and ends when this process closes its socket, or ends itself. What it has forked does
not depend on it: each run has a lifeline of its own.
"""

import json
import logging
import os
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.lowlevel import checkpoint

from serena_central.processes.environment import inherited
from serena_central.processes.starting import start_supervisor
from serena_central.processes.supervisor import REQUEST

logger = logging.getLogger(__name__)

END_S = 2.0
"""How long the fork server may take to end when its socket has been closed; it has nothing to do then."""

FORK = 0
"""In place of a signal's number."""

_CHUNK_BYTES = 64 * 1024


def open_pipes(count: int) -> list[tuple[int, int]]:
    """Read and write ends, which no child inherits; all of them or none.

    Raises:
        OSError: no more files can be opened.
    """
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in range(count))
    except OSError:
        for end in chain.from_iterable(pipes):
            os.close(end)
        raise
    return pipes


class ForkServer:
    """Belongs to one event loop. Whoever made it closes it."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._socket: socket.socket | None = None
        self._starting = anyio.Lock()

    @property
    def pid(self) -> int | None:
        """Of its process; None before the first run."""
        return self._process.pid if self._process is not None else None

    async def fork(
        self,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        umask: int,
        memory_bytes: int,
        nice: int,
        drops_privileges: bool,
        lifeline: int,
        report: int,
        merged: bool,
    ) -> "ForkedProcess":
        """Has a supervisor run a command. `lifeline` and `report` are those of `supervisor.py`.

        Raises:
            OSError: there is no fork server, and none can be started.
            ValueError: a text holds NUL.
        """
        if any("\0" in text for text in (str(cwd), *command, *environment, *environment.values())):
            raise ValueError("embedded null byte")
        asked = [dict(environment), str(cwd), umask, memory_bytes, nice, drops_privileges, "", list(command)]
        requests = await self._started()
        # No await from here on: every descriptor is closed, or belongs to the process that is returned.
        pipes = open_pipes(3 if merged else 4)
        (stdin, given), (taken, stdout), (ended, ending) = pipes[:3]
        errors, stderr = (None, stdout) if merged else pipes[3]
        made = ForkedProcess(self, given, taken, errors, ended)
        try:
            with tempfile.TemporaryFile() as request:
                request.write(json.dumps(asked).encode())
                request.seek(0)
                descriptors = [stdin, stdout, stderr, lifeline, report, request.fileno(), ending]
                socket.send_fds(requests, [struct.pack(REQUEST, FORK, 0)], descriptors)
        except OSError:
            made.close()
            raise
        finally:
            for theirs in {stdin, stdout, stderr, ending}:
                os.close(theirs)
        return made

    def signal(self, pid: int, number: int) -> None:
        """Sends a signal to a supervisor that it has forked, if that has not ended."""
        if self._socket is not None:
            with suppress(OSError):  # it is gone, and then nobody can say whose pid this is
                self._socket.sendall(struct.pack(REQUEST, number, pid))

    async def close(self) -> None:
        """Ends it; runs that have not ended go on. Bounded."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            process, self._process = self._process, None
            with anyio.move_on_after(END_S, shield=True):
                await process.wait()
            if process.returncode is None:
                process.kill()
                with anyio.move_on_after(END_S, shield=True):
                    await process.wait()

    async def _started(self) -> socket.socket:
        async with self._starting:
            if self._socket is not None and _is_closed(self._socket):
                logger.warning("the fork server has ended, and is started again")
                await self.close()
            if self._socket is None:
                self._socket, its_end = socket.socketpair()
                self._socket.setblocking(False)
                with its_end:
                    self._process = await start_supervisor(
                        ["--serve", its_end.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=inherited(),
                        pass_fds=[its_end.fileno()],
                    )
            return self._socket


def _is_closed(requests: socket.socket) -> bool:
    """Whether the fork server has closed its end; it never writes."""
    try:
        return requests.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class ForkedProcess:
    """A supervisor that was forked, like anyio's `Process`. Made by `ForkServer.fork`, closed by whoever got it."""

    def __init__(self, server: ForkServer, stdin: int, stdout: int, stderr: int | None, ended: int) -> None:
        self.stdin: ByteSendStream = _Sending(stdin)
        self.stdout: ByteReceiveStream = _Receiving(stdout)
        self.stderr: ByteReceiveStream | None = _Receiving(stderr) if stderr is not None else None
        self._server = server
        self._ended = _Receiving(ended)
        self._said = b""
        self._returncode: int | None = None
        self._waiting = anyio.Lock()

    @property
    def pid(self) -> int | None:
        """None until it was forked."""
        self._look()
        pid, whole, _ = self._said.partition(b"\n")
        return int(pid) if whole else None

    @property
    def returncode(self) -> int | None:
        self._look()
        return self._returncode

    async def wait(self) -> int:
        async with self._waiting:
            while (code := self.returncode) is None:
                await anyio.wait_readable(self._ended.descriptor)
            return code

    def send_signal(self, number: int) -> None:
        if self.returncode is None and (pid := self.pid) is not None:
            self._server.signal(pid, number)

    def close(self) -> None:
        """Closes this end of its pipes. Nobody must be waiting for one."""
        for stream in (self.stdin, self.stdout, self.stderr, self._ended):
            if isinstance(stream, _End):
                stream.close()

    def _look(self) -> None:
        """Takes what it has said of itself; never blocks."""
        while self._returncode is None:
            try:
                said = os.read(self._ended.descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return
            self._said += said
            if not said:
                status = self._said.split()[1:]  # none if it was killed
                self._returncode = os.waitstatus_to_exitcode(int(status[0])) if status else -signal.SIGKILL


class _End:
    """This process's end of a pipe, which does not block."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            anyio.notify_closing(self.descriptor)
            os.close(self.descriptor)

    def check(self) -> None:
        if not self._open:
            raise anyio.ClosedResourceError

    async def aclose(self) -> None:
        self.close()
        await checkpoint()


class _Receiving(_End, ByteReceiveStream):
    async def receive(self, max_bytes: int = _CHUNK_BYTES) -> bytes:
        await checkpoint()
        while True:
            self.check()
            try:
                data = os.read(self.descriptor, max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self.descriptor)
                continue
            if not data:
                raise anyio.EndOfStream
            return data


class _Sending(_End, ByteSendStream):
    async def send(self, item: bytes) -> None:
        await checkpoint()
        left = memoryview(item)
        while left:
            self.check()
            try:
                left = left[os.write(self.descriptor, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self.descriptor)
            except BrokenPipeError as error:
                raise anyio.BrokenResourceError from error
