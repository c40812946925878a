"""A transport that writes once what a request writes in one go: uvicorn writes an answer's head and its body by two
system calls, each of which may wake the client.

What is written is held back until it is flushed, until the event loop's next turn, or until it is too much.
"""

import asyncio
from typing import Any

MOST_HELD_BYTES = 64 * 1024
"""More is written at once, as uvloop and asyncio would: flow control begins only when they know of it."""


class CoalescingTransport:
    """Stands for a transport; belongs to the event loop's thread. Order is kept, also with `close`."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_bytes = 0

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > MOST_HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is held back. Dropped where the connection is closed, as the transport itself would."""
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """What was written before may be on its way, as without this class."""
        self.flush()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
