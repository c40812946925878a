"""HTTP/1.1 as a client speaks it on one connection: one exchange at a time, bodies piece by piece.

Knows chunks, lengths and keep-alive; knows nothing of what the bodies mean, or of where the server is.
"""

import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from serena_central.proxy.event_loop import READ, WRITE, Loop

HEAD_BYTES = 64 * 1024
"""More than this before the body is no answer of a sane server."""

PIECE_BYTES = 256 * 1024

SILENCE_S = 20.0
"""So long a call may take without a sign of its server. With the proof that it lives (`link.PROOF_S`) it is less than
the minute after which clients give up, who don't know why."""

AWAY = (502, 503, 504)
"""A server that has too much to do, or something before it that says that it is away."""


class Broken(Exception):
    """The connection failed, or what came over it is not HTTP."""


class Head(NamedTuple):
    """Status and headers of an answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Connection:
    """One socket, connected and non-blocking. Everything may raise Broken or TimeoutError."""

    def __init__(self, loop: Loop, sock: Any, opened_for: str) -> None:
        self._loop = loop
        self._socket = sock
        self.opened_for = opened_for
        """The address that it leads to."""
        self._buffer = bytearray()
        self._left: int | None = None
        """Bytes of the body still to come: in all, or in this chunk; None for as many as come."""
        self._chunked = False
        self._over = True
        self.deadline: float | None = None
        """Of the monotonic clock: nothing waits longer than until then."""
        self.in_silence: Callable[[], Awaitable[None]] | None = None
        """Without a deadline: called each time that nothing has moved for `SILENCE_S`; what it raises ends the wait."""
        self.kept = False
        """An exchange went well on it before: its other end may have grown tired of it."""
        self.reusable = True
        self.sent_all = False
        """Whether all of the last request left: of half a request nothing is carried out."""

    def close(self) -> None:
        self.reusable = False
        self._socket.close()

    def is_fresh(self) -> bool:
        """Whether an idle connection can still be used: nothing came, and its other end is open."""
        try:
            self._socket.recv(1)
        except (BlockingIOError, TlsWants):
            return True
        except OSError:
            return False
        return False

    async def send(self, data: bytes) -> None:
        """Sends a whole request, or as much as the server wants to have before it answers."""
        self._over = self.sent_all = False
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except TlsWants as wants:
                await self._until(wants.events)
            except BlockingIOError:
                if await self._until(READ | WRITE) & READ:
                    # An answer before the request is complete is a refusal: what is left will not be read.
                    self.reusable = False
                    return
            except OSError as error:
                self.reusable = False
                if isinstance(error, BrokenPipeError | ConnectionResetError):
                    return  # the answer may have come before the server closed
                raise Broken(f"sending failed: {error}") from error
        self.sent_all = True

    async def head(self) -> Head:
        """Status and headers of the final answer."""
        while True:
            while (end := self._buffer.find(b"\r\n\r\n")) < 0:
                if len(self._buffer) > HEAD_BYTES:
                    raise Broken("the response head is too long")
                if not await self._receive():
                    raise Broken("the server closed the connection")
            lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
            del self._buffer[: end + 4]
            head = _head(lines)
            if head.status >= 200:
                self._expect_body(head)
                return head

    def _expect_body(self, head: Head) -> None:
        headers = head.headers
        self._chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        length = headers.get("content-length", "")
        if head.status in (204, 304):
            self._left, self._chunked = 0, False
        elif self._chunked:
            self._left = 0
        elif length.isdecimal():
            self._left = int(length)
        elif length:
            raise Broken("the response's Content-Length is not a number")
        else:
            self._left = None  # ends with the connection
        if self._left is None or headers.get("connection", "").lower() == "close":
            self.reusable = False
        self._over = self._left == 0 and not self._chunked

    async def piece(self) -> bytes:
        """The next bytes of the body; empty when it is complete."""
        if self._chunked and not self._left and not self._over:
            await self._next_chunk()
        if self._over:
            self.kept = True
            return b""
        if not self._buffer and not await self._receive():
            if self._left is not None:
                raise Broken("the response is incomplete")
            self._over = True
            return b""
        size = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        if size == len(self._buffer):
            data, self._buffer = bytes(self._buffer), bytearray()
        else:
            data = bytes(memoryview(self._buffer)[:size])
            del self._buffer[:size]
        if self._left is not None:
            self._left -= size
            self._over = not self._left and not self._chunked
        return data

    async def body(self, most_bytes: int, grown: Callable[[int], Awaitable[None]] | None = None) -> bytes:
        """The whole body; Broken if it is larger. `grown` is called with its size so far, and may delay the rest."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self.piece():
            pieces.append(piece)
            size += len(piece)
            if size > most_bytes:
                raise Broken(f"the response is larger than {most_bytes} bytes")
            if grown is not None:
                await grown(size)
        return b"".join(pieces)

    async def _next_chunk(self) -> None:
        line = await self._line()
        if not line:  # the end of the chunk before
            line = await self._line()
        try:
            self._left = int(line.partition(b";")[0], 16)
        except ValueError:
            raise Broken("the response's chunked encoding is not valid") from None
        if not self._left:
            while await self._line():
                pass  # trailers
            self._over = True

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > HEAD_BYTES:
                raise Broken("the response's chunked encoding is not valid")
            if not await self._receive():
                raise Broken("the response is incomplete")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    async def _receive(self) -> bool:
        """Reads what is there, waiting if nothing is; False at the end of the stream."""
        while True:
            try:
                data = self._socket.recv(PIECE_BYTES)
            except TlsWants as wants:
                await self._until(wants.events)
                continue
            except BlockingIOError:
                await self._until(READ)
                continue
            except OSError as error:
                raise Broken(f"the connection failed: {error}") from error
            self._buffer += data
            return bool(data)

    async def _until(self, events: int) -> int:
        if self.in_silence is None or self.deadline is not None:
            return await self._loop.ready(self._socket.fileno(), events, self.deadline)
        while True:
            try:
                return await self._loop.ready(self._socket.fileno(), events, time.monotonic() + SILENCE_S)
            except TimeoutError:
                await self.in_silence()


class TlsWants(Exception):
    """TLS can't go on before its socket is ready for `events`."""

    def __init__(self, events: int) -> None:
        super().__init__()
        self.events = events


async def connect(loop: Loop, host: str, port: int, timeout_s: float) -> socket.socket:
    """A connected TCP socket.

    Raises:
        OSError: or TimeoutError, a kind of it.
    """
    deadline = time.monotonic() + timeout_s
    failure: OSError = ConnectionRefusedError("the host name does not resolve")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                sock.connect(address)
            except BlockingIOError:
                await loop.ready(sock.fileno(), WRITE, deadline)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, "can't connect") from None
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _head(lines: list[str]) -> Head:
    version, _, rest = lines[0].partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdecimal():
        raise Broken("the response is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return Head(int(status), headers)


def request(method: str, path: str, headers: Mapping[str, bytes], body: bytes = b"") -> bytes:
    """The bytes of a request. Header values hold no line ends: the caller's duty."""
    lines = [f"{method} {path} HTTP/1.1".encode("ascii")]
    lines += [name.encode("ascii") + b": " + value for name, value in headers.items()]
    if method == "POST":
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
