"""Reads a child's output to its end, so that the child is never blocked, and keeps a bounded part."""

from collections.abc import Callable
from typing import Protocol

import anyio
from anyio.abc import ByteReceiveStream

MAX_LINE_BYTES = 64 * 1024
"""Longer lines are passed on in parts."""


class Sink(Protocol):
    """Takes output as it comes, in chunks of any size; must not block."""

    def take(self, chunk: bytes, /) -> None: ...


class Head:
    """Keeps the first `limit` bytes; `dropped` counts the rest."""

    def __init__(self, limit: int) -> None:
        self.kept = bytearray()
        self.dropped = 0
        self._limit = limit

    def take(self, chunk: bytes) -> None:
        room = self._limit - len(self.kept)
        self.kept += chunk[:room]
        self.dropped += max(len(chunk) - room, 0)

    @property
    def text(self) -> str:
        return self.kept.decode("utf-8", "replace")


class Tail:
    """Keeps the last `limit` bytes; `dropped` counts what came before them."""

    def __init__(self, limit: int) -> None:
        self.kept = bytearray()
        self.dropped = 0
        self._limit = limit

    def take(self, chunk: bytes) -> None:
        self.kept += chunk
        excess = max(len(self.kept) - self._limit, 0)
        del self.kept[:excess]
        self.dropped += excess

    @property
    def text(self) -> str:
        return self.kept.decode("utf-8", "replace").strip()


class Lines:
    """Calls `each` with every line, without its end; `finish` with what stands after the last one."""

    def __init__(self, each: Callable[[bytes], None]) -> None:
        self._each = each
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._each(line)
        while len(self._rest) > MAX_LINE_BYTES:
            self._each(self._rest[:MAX_LINE_BYTES])
            self._rest = self._rest[MAX_LINE_BYTES:]

    def finish(self) -> None:
        if self._rest:
            self._each(self._rest)
            self._rest = b""


class Nothing:
    """Drops everything."""

    def take(self, chunk: bytes) -> None:
        pass


async def drain(stream: ByteReceiveStream, sink: Sink) -> None:
    """Reads until the end, however that comes about."""
    try:
        async for chunk in stream:
            sink.take(chunk)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
