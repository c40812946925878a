"""Starts this user's server when none runs: detached, once for all proxies that ask at the same time.

Everything here can also be used by a command that starts a server in the background: it needs no proxy.
"""

import os
import select
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Self

from serena_central.proxy.event_loop import Event, Loop
from serena_central.standalone.home import Home
from serena_central.standalone.lock import lock_at_once
from serena_central.standalone.private import user_umask

if TYPE_CHECKING:
    import subprocess

START_S = 60.0
"""A server is up after two seconds; a busy machine may need more."""

POLL_S = 0.03
FAILED_S = 5.0
"""How long a failed start is not retried, in seconds; meanwhile its reason is returned at once."""

NOT_FOR_SERVERS = (
    *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT"),
    *("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "NODE_OPTIONS", "PWD", "OLDPWD"),
)
"""What belongs to one conversation or one project; the server outlives both."""

LEAVE = "import os, sys; os.fork() and os._exit(0); os.setsid(); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes a program a child of init: some clients (opencode) end all descendants of a proxy with it."""


class Starter:
    """Starts servers of one home."""

    def __init__(self, loop: Loop, home: Home) -> None:
        self._loop = loop
        self._home = home
        self._under_way: Event | None = None
        self._failure: str | None = None
        self._failed_at = 0.0
        self._child: subprocess.Popen[bytes] | None = None

    async def ensure(self, answers: Callable[[], Awaitable[bool]]) -> str | None:
        """Returns when a server answers (None), or with the reason why none does. Single flight."""
        if self._under_way is not None:
            await self._under_way.wait()
            return self._failure
        if self._failure is not None and time.monotonic() - self._failed_at < FAILED_S:
            return self._failure
        self._under_way = self._loop.event()
        self._failure = "Starting the server was cancelled."
        try:
            self._failure = await self._start(answers)
        except OSError as error:
            self._failure = f"The server could not be started: {error}."
        finally:
            self._failed_at = time.monotonic()
            self._under_way.set()
            self._under_way = None
        return self._failure

    def reap(self) -> None:
        """Takes note of the end of the program that has started a server, so that it doesn't stay a zombie."""
        if self._child is not None:
            self._child.poll()

    async def _start(self, answers: Callable[[], Awaitable[bool]]) -> str | None:
        deadline = time.monotonic() + START_S
        self._home.create()
        with open(self._home.start_lock, "ab") as lock:
            while not lock_at_once(lock.fileno()):
                if await answers():
                    return None
                if time.monotonic() > deadline:
                    return f"Another process holds {self._home.start_lock} but starts no server."
                await self._loop.sleep(POLL_S)
            if await answers():
                return None
            reader, writer = os.pipe()
            try:
                try:
                    spawned = _spawn(self._home, [*_python(), "-S", "-c", LEAVE, *_serve()], (writer,))
                finally:
                    os.close(writer)
                self._child = spawned.process
                with spawned:
                    return await self._await_answer(reader, answers, deadline, spawned)
            finally:
                os.close(reader)

    async def _await_answer(
        self, server: int, answers: Callable[[], Awaitable[bool]], deadline: float, spawned: "Spawned"
    ) -> str | None:
        """`server` is the end of a pipe whose other end closes with the server."""
        ended_at: float | None = None
        while time.monotonic() < deadline:
            if await answers():
                return None
            if _is_at_end(server):
                # It ends, too, when another one was quicker: that one answers soon, or later on a busy machine.
                ended_at = ended_at or time.monotonic()
                if time.monotonic() - ended_at > 1 and not self._another_starts():
                    break
            await self._loop.sleep(POLL_S)
        said = spawned.last_line()
        return f"The server could not be started: {said or 'no output'} (log: {self._home.start_log})"

    def _another_starts(self) -> bool:
        """Whether a server holds the home: it took the lock first, and has not answered yet."""
        with open(self._home.lock_file, "ab") as lock:
            return not lock_at_once(lock.fileno(), shared=True)


def _is_at_end(pipe: int) -> bool:
    """Nothing is written to it: it is readable at its end alone."""
    return bool(select.select([pipe], [], [], 0)[0])


class Spawned:
    """A server that was started. While the block is open, what it printed can be read, also after another start."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: int) -> None:
        self.process = process
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._log)

    def last_line(self) -> str:
        """What it printed last, shortened."""
        os.lseek(self._log, 0, os.SEEK_SET)  # what the server writes is appended wherever this is
        lines = os.read(self._log, 64 * 1024).decode("utf-8", "replace").split("\n")
        return next((line.strip()[:500] for line in reversed(lines) if line.strip()), "")


def spawn_server(home: Home, arguments: Sequence[str] = ()) -> Spawned:
    """A server of its own session, in no project's folder, that outlives us. Its output goes to the start log.

    `arguments` are for `serve`.
    """
    return _spawn(home, [*_serve(), *arguments])


def _python() -> list[str]:
    return [sys.executable, "-I"]


def _serve() -> list[str]:
    return [*_python(), "-m", "serena_central.cli", "serve"]


def _spawn(home: Home, command: Sequence[str], pass_fds: tuple[int, ...] = ()) -> Spawned:
    import subprocess  # most proxies find a server that runs

    home.create()
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_SERVERS}
    environment["SERENA_CENTRAL_HOME"] = home.folder
    # Whoever starts another server meanwhile gets a file of its own in place of this one.
    fresh = f"{home.start_log}.{os.getpid()}"
    log = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        os.replace(fresh, home.start_log)
        process = subprocess.Popen(
            command,
            pass_fds=pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.folder,
            env=environment,
            start_new_session=True,
            umask=user_umask(),  # the server takes ours for the user's own
        )
    except BaseException:
        os.close(log)
        raise
    return Spawned(process, log)
