"""The client's side: lines from stdin, lines to stdout, without ever blocking the loop.

Descriptors that no selector can wait for (files, and pipes on Windows) are read by a thread. What a line means is not
its business.
"""

import os
import socket
import stat
import sys
import threading
from collections.abc import AsyncGenerator

from serena_central.proxy.event_loop import READ, WRITE, Lock, Loop

LINE_BYTES = 64 * 1024 * 1024
"""Far more than the server takes; what is longer is no message."""

READ_BYTES = 256 * 1024


class TooLong(Exception):
    """A line was longer than LINE_BYTES; it was skipped."""


class Input:
    """Lines from a descriptor."""

    def __init__(self, loop: Loop, descriptor: int) -> None:
        self._loop = loop
        self._pump: socket.socket | None = None
        if sys.platform != "win32" and _selectable(descriptor):
            os.set_blocking(descriptor, False)
            self._descriptor = descriptor
        else:
            self._pump, inlet = socket.socketpair()
            self._pump.setblocking(False)
            self._descriptor = self._pump.fileno()
            # Not a task of the loop: it blocks in `read`, and the end of the process is its end.
            threading.Thread(target=_pump, args=(descriptor, inlet), daemon=True).start()

    async def lines(self) -> AsyncGenerator[bytes | TooLong]:
        """Lines without their ends, and an exception (not raised) for each that was too long, until the input ends.

        Half a line before the end counts as a line.
        """
        buffer, scanned, skipping = bytearray(), 0, False
        while data := await self._read():
            buffer += data
            start = 0
            while (end := buffer.find(b"\n", max(start, scanned))) >= 0:
                line = bytes(memoryview(buffer)[start:end])
                start = scanned = end + 1
                if skipping:
                    skipping = False
                elif line := line.strip():
                    yield line
            del buffer[:start]
            scanned = len(buffer)
            if scanned > LINE_BYTES:
                if not skipping:
                    yield TooLong()
                buffer, scanned, skipping = bytearray(), 0, True
        if not skipping and (line := bytes(buffer).strip()):
            yield line

    async def _read(self) -> bytes:
        while True:
            try:
                if self._pump is not None:
                    return self._pump.recv(READ_BYTES)
                return os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                await self._loop.ready(self._descriptor, READ)
            except OSError:
                return b""  # the other end is gone, and tells it the hard way


class Output:
    """Writes whole lines, one after the other. Who writes waits until its line is out: nothing is queued here."""

    def __init__(self, loop: Loop, descriptor: int) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._lock = Lock(loop)
        if sys.platform != "win32" and _selectable(descriptor):
            os.set_blocking(descriptor, False)
        self.closed = loop.event()
        """Set when the reader is gone."""

    async def write(self, line: bytes) -> None:
        """Writes `line` and a line feed; drops it if the reader is gone."""
        # A task of its own: a writer that is cancelled must not leave half a line behind.
        task = self._loop.spawn(self._put(line))
        if not task.done:
            await task.ended.wait()

    async def _put(self, line: bytes) -> None:
        async with self._lock:
            view = memoryview(line + b"\n")
            while view and not self.closed.is_set:
                view = view[await self._some(view) :]

    async def _some(self, view: memoryview) -> int:
        try:
            return os.write(self._descriptor, view)
        except BlockingIOError:
            await self._loop.ready(self._descriptor, WRITE)
            return 0
        except OSError:
            self.closed.set()
            return len(view)


def _selectable(descriptor: int) -> bool:
    """Pipes and sockets of this process's own. A terminal is shared with others, who would not like it non-blocking."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _pump(descriptor: int, inlet: socket.socket) -> None:
    with inlet:
        try:
            while data := os.read(descriptor, READ_BYTES):
                inlet.sendall(data)
        except OSError:
            return
