"""`serena-central` in a terminal of its own, as people run it: what it draws can be read, and Ctrl-C be pressed."""

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process

from tests.support.child import PATIENCE_S, PROGRAM, environment

CTRL_C = b"\x03"

_TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes stdin the terminal of its session; whoever runs the tests may ignore Ctrl-C, and would hand that on."""


class Terminal:
    """A command's terminal."""

    def __init__(self, fd: int, process: Process) -> None:
        self._fd = fd
        self._process = process
        self.text = ""
        """All that was written to it."""

    async def until(self, pattern: str) -> re.Match[str]:
        """Reads until the pattern is found."""
        with anyio.fail_after(PATIENCE_S):
            while (found := re.search(pattern, self.text)) is None:
                assert await self._read(), f"it ended without {pattern}: {self.text}"
        return found

    async def end(self) -> int:
        """Reads to the end; the exit code."""
        with anyio.fail_after(PATIENCE_S):
            while await self._read():
                pass
            return await self._process.wait()

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    async def _read(self) -> bool:
        await anyio.wait_readable(self._fd)
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # nobody has it open any more
            return False
        self.text += data.decode(errors="replace")
        return bool(data)


@asynccontextmanager
async def in_terminal(folder: Path, *arguments: str) -> AsyncGenerator[Terminal]:
    """Runs `serena-central ARGUMENTS` with the homes below `folder`."""
    ours, its = os.openpty()
    try:
        process = await anyio.open_process(
            [sys.executable, "-c", _TAKE_TERMINAL, str(PROGRAM), *arguments],
            cwd=folder,
            env=environment(folder),
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        )
        os.close(its)
        try:
            yield Terminal(ours, process)
        finally:
            with anyio.move_on_after(PATIENCE_S, shield=True):
                if process.returncode is None:
                    process.kill()
                await process.wait()
    finally:
        os.close(ours)
