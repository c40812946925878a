"""JSON-RPC 2.0 over two byte streams, in LSP's frames (LSP 3.17, "Base Protocol").

It owns ids, the order of what is sent, and the waiters of what was asked. It knows no LSP method but
`$/cancelRequest`, and no document. Long lists are decoded item by item, with turns for others: one of 175,000 symbols
would keep everybody waiting for a second. Belongs to the event loop's thread.
"""

import logging
import math
import re
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, get_args, get_origin

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream

from serena_central.core.decoding import from_json, json_decoder
from serena_central.core.pacing import paced
from serena_central.core.running_time import running_time

LONG_BYTES = 256 * 1024
"""Decoded in some milliseconds."""


MAX_FRAME_BYTES = 64 * 1024 * 1024
"""The largest frame that is read. References over a large monorepo stay under 10 MB; more is a broken server."""

MAX_HEADER_BYTES = 8 * 1024
"""A header block longer than this is no header."""


class BrokenFraming(Exception):
    """The bytes are no frame, and where the next one begins can't be known."""


class FrameReader:
    """Cuts a stream of bytes into frames, however it is chopped."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._needed: int | None = None
        self._max = max_frame_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes and gives the bodies that are complete now.

        Raises:
            BrokenFraming
        """
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        while True:
            if self._needed is None:
                end = buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
                if end < 0:
                    if len(buffer) >= MAX_HEADER_BYTES:
                        raise BrokenFraming("a header without an end")
                    return bodies
                self._needed = self._length(bytes(buffer[:end]))
                del buffer[: end + 4]
            if len(buffer) < self._needed:
                return bodies
            bodies.append(bytes(buffer[: self._needed]))
            del buffer[: self._needed]
            self._needed = None

    def _length(self, header: bytes) -> int:
        for line in header.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                value = value.strip()
                # The digits are counted first: int() on megabytes of them would take seconds.
                if not value.isdigit() or len(value) > 12 or int(value) > self._max:
                    raise BrokenFraming(f"Content-Length {value[:20]!r}, where at most {self._max} is allowed")
                return int(value)
        raise BrokenFraming(f"a header without Content-Length: {header[:80]!r}")


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


logger = logging.getLogger(__name__)

MAX_QUEUED_FRAMES = 256
"""How many frames may wait for a server that does not read, before those who send wait too. Those that come of work
that has begun are queued beyond it."""

CHUNK_BYTES = 256 * 1024

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

_ABSENT = msgspec.Raw()
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


class WireError(Exception):
    """The connection between the two processes failed. `client` translates each kind."""


class ConnectionLost(WireError):
    """The stream ended, or its framing broke."""


class AnswerUnreadable(WireError):
    """The server answered with something that is not what the request promises."""


class ErrorAnswer(WireError):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class MethodUnknown(Exception):
    """A handler of server requests does not know this method."""


class _Error(msgspec.Struct):
    code: int
    message: str = ""


class _Message(msgspec.Struct):
    """Any JSON-RPC message; which one it is follows from the fields that are there."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


_decode_message = json_decoder(_Message).decode
_decode_error = json_decoder(_Error).decode
_encode = msgspec.json.Encoder().encode


class _Outbox:
    """What waits to be written, in order."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._filled = anyio.Event()
        self._emptied = anyio.Event()
        self._written = anyio.Event()
        self.closed = False

    def put_nowait(self, body: bytes) -> None:
        """Never waits: the reader and dying tasks send, too. Drops what comes after the end."""
        if not self.closed:
            self._frames.append(frame(body))
            self._filled.set()
            if self._written.is_set():
                self._written = anyio.Event()

    async def drain(self) -> None:
        """Waits while the server does not keep up."""
        while len(self._frames) >= MAX_QUEUED_FRAMES and not self.closed:
            await self._emptied.wait()

    async def take(self) -> bytes:
        """Everything that waits, as one piece."""
        while not self._frames:
            self._written.set()
            self._filled = anyio.Event()
            await self._filled.wait()
        piece = b"".join(self._frames)
        self._frames.clear()
        self._emptied.set()
        self._emptied = anyio.Event()
        return piece

    async def flushed(self) -> None:
        """Returns when everything has been written, or never will be."""
        await self._written.wait()

    def close(self) -> None:
        self.closed = True
        self._emptied.set()
        self._written.set()


class Pending:
    """A request whose answer is awaited, by one task or by several that asked the same."""

    __slots__ = ("_answered", "_connection", "_waiters", "body", "error", "id", "method", "sharing_key", "unready")

    def __init__(self, connection: "Connection", request_id: int, method: str, sharing_key: bytes | None) -> None:
        self._connection = connection
        self._answered = anyio.Event()
        self._waiters = 0
        self.id = request_id
        self.method = method
        self.sharing_key = sharing_key
        self.body = _ABSENT
        self.error: WireError | None = None
        self.unready = False
        """Whether the server was not ready when it answered. Who waits may look only after it has become so."""

    def settle(self, body: msgspec.Raw = _ABSENT, error: WireError | None = None) -> None:
        self.body = body
        self.error = error
        self._answered.set()

    async def settled(self, within_s: float) -> None:
        """Waits for the answer, but not for longer than that. `answer` is to be called right behind it."""
        self._waiters += 1
        try:
            with anyio.move_on_after(within_s):
                await self._answered.wait()
        except BaseException:
            self._leave()
            raise
        self._waiters -= 1

    async def answer(self, shape: Any) -> Any:
        """Waits for the answer and decodes it as `shape`. When the last waiter is cancelled, the server is notified.

        Raises:
            ErrorAnswer, AnswerUnreadable, ConnectionLost
        """
        self._waiters += 1
        try:
            await self._answered.wait()
        finally:
            self._leave()
        if self.error is not None:
            raise self.error
        try:
            return await decoded(self.body, shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AnswerUnreadable(f"a response that can't be decoded: {error}") from error

    def _leave(self) -> None:
        self._waiters -= 1
        if not self._waiters and not self._answered.is_set():
            self._connection.abandon(self)


class Connection:
    """One JSON-RPC connection. `run` reads and writes until the stream ends; then every waiter is woken.

    `on_request(method, params)` gives the result for a request of the server, or raises MethodUnknown;
    `on_notification(method, params)` takes note. `is_unready()` is asked as each answer comes, before what the server
    sent behind it is read. All are plain functions and must not block.
    """

    def __init__(
        self,
        name: str,
        *,
        on_request: Callable[[str, msgspec.Raw], Any],
        on_notification: Callable[[str, msgspec.Raw], None],
        is_unready: Callable[[], bool] = lambda: False,
    ) -> None:
        self._name = name
        self._is_unready = is_unready
        self._on_request = on_request
        self._on_notification = on_notification
        self._outbox = _Outbox()
        self._pending: dict[int, Pending] = {}
        self._shared: dict[bytes, Pending] = {}
        self._last_id = 0
        self.heard_at = running_time()
        """When the last message came."""
        self.answered_at = -math.inf
        """When the last answer came, if any has."""
        self.broken = ""
        """What it sent in place of a message, after which the connection was closed."""

    @property
    def closed(self) -> bool:
        return self._outbox.closed

    async def run(self, receive: ByteReceiveStream, send: ByteSendStream) -> None:
        """Returns when the stream ended or its framing broke; a broken connection is never taken up again."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write, send)
                await self._read(receive)
                tasks.cancel_scope.cancel()
        finally:
            self.close()

    def close(self) -> None:
        """Wakes every waiter with ConnectionLost. May be called twice."""
        self._outbox.close()
        pending, self._pending = self._pending, {}
        self._shared.clear()
        for waiter in pending.values():
            waiter.settle(error=ConnectionLost("the connection ended"))

    async def drain(self) -> None:
        """Waits while the server does not keep up: before a request, and before the work that leads to notifications.

        Raises:
            ConnectionLost
        """
        await self._outbox.drain()
        if self.closed:
            raise ConnectionLost

    def notify(self, method: str, params: Any) -> None:
        """Queues a notification. Never waits: no cancellation comes between that and recording what the server knows.

        Raises:
            ConnectionLost
        """
        if self.closed:
            raise ConnectionLost
        self._outbox.put_nowait(_encode({"jsonrpc": "2.0", "method": method, "params": params}))
        # What is asked after this may have another answer than what is asked before.
        self._shared.clear()

    async def farewell(self, method: str) -> None:
        """Sends a last notification; returns when it is written or the connection ended."""
        self._outbox.put_nowait(_encode({"jsonrpc": "2.0", "method": method}))
        await self._outbox.flushed()

    async def request(self, method: str, params: Any, *, shared: bool = False) -> Pending:
        """Queues a request; its answer is awaited on what is returned.

        `shared` joins an identical request in flight, if nothing was notified since.

        Raises:
            ConnectionLost
        """
        sharing_key = method.encode() + b" " + _encode(params) if shared else None
        if sharing_key is not None and (same := self._shared.get(sharing_key)):
            return same
        self._last_id += 1
        pending = Pending(self, self._last_id, method, sharing_key)
        message = {"jsonrpc": "2.0", "id": pending.id, "method": method, "params": params}
        if params is None:
            del message["params"]
        body = _encode(message)
        await self.drain()
        self._outbox.put_nowait(body)
        # No await from here on: an answer can't arrive before its waiter is known.
        self._pending[pending.id] = pending
        if sharing_key is not None:
            self._shared[sharing_key] = pending
        return pending

    def abandon(self, pending: Pending) -> None:
        """The last waiter is gone: notifies the server, and forgets the request."""
        if self._forget(pending.id) is not None:
            body = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": pending.id}}
            self._outbox.put_nowait(_encode(body))

    def _forget(self, request_id: int) -> Pending | None:
        pending = self._pending.pop(request_id, None)
        key = pending.sharing_key if pending else None
        if key is not None and self._shared.get(key) is pending:
            del self._shared[key]
        return pending

    async def _write(self, send: ByteSendStream) -> None:
        try:
            while True:
                await send.send(await self._outbox.take())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            # The reader may still find an answer; its end ends the connection.
            logger.debug("%s no longer reads", self._name)
            self._outbox.close()

    async def _read(self, receive: ByteReceiveStream) -> None:
        frames = FrameReader()
        try:
            while True:
                for body in frames.feed(await receive.receive(CHUNK_BYTES)):
                    self._take(body)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        except BrokenFraming as error:
            self.broken = str(error)
            logger.warning("%s sent %s; closing the connection", self._name, error)

    def _take(self, body: bytes) -> None:
        self.heard_at = running_time()
        try:
            message = _decode_message(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._take_unreadable(body, error)
            return
        if message.method is None:
            self._take_answer(message)
        elif message.id is None:
            try:
                self._on_notification(message.method, message.params)
            except Exception:
                logger.exception("%s: %s could not be handled", self._name, message.method)
        else:
            self._outbox.put_nowait(_encode(self._answer_to(message.id, message.method, message.params)))

    def _take_answer(self, message: _Message) -> None:
        self.answered_at = self.heard_at
        pending = self._forget(message.id) if isinstance(message.id, int) else None
        if pending is None:
            logger.debug("%s sent a late or unknown response %r; dropped", self._name, message.id)
            return
        pending.unready = self._is_unready()
        if len(bytes(message.error)) and bytes(message.error) != b"null":
            pending.settle(error=_error_of(message.error))
        elif not len(bytes(message.result)):
            pending.settle(error=AnswerUnreadable("a response with neither result nor error"))
        else:
            pending.settle(message.result)

    def _take_unreadable(self, body: bytes, error: Exception) -> None:
        """Fails the call that the frame answers, as far as its id can be made out: at its start or its end."""
        match = _ID.search(body[:200]) or _ID.search(body[-200:])
        pending = self._forget(int(match.group(1))) if match else None
        logger.warning("%s sent a message that is not JSON-RPC: %s", self._name, error)
        if pending is not None:
            pending.settle(error=AnswerUnreadable(f"a response that is not JSON-RPC: {error}"))

    def _answer_to(self, request_id: int | str, method: str, params: msgspec.Raw) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            answer["result"] = self._on_request(method, params)
        except MethodUnknown:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": f"{method} is not supported"}
        except Exception:
            logger.exception("%s: request %s could not be handled", self._name, method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": f"{method} failed"}
        return answer


def _error_of(raw: msgspec.Raw) -> WireError:
    try:
        error = _decode_error(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return AnswerUnreadable("an error that can't be decoded")
    return ErrorAnswer(error.code, error.message)


async def decoded(body: msgspec.Raw, shape: Any) -> Any:
    """An answer as its `shape`: a type, or None beside one.

    Raises:
        msgspec.DecodeError: so does UnicodeDecodeError or RecursionError what is no such answer.
    """
    text = memoryview(body)
    decode = _item_decoder(shape) if len(text) > LONG_BYTES and text[0] == ord("[") else None
    if decode is None:
        return from_json(body, shape)
    return [decode(item) async for item in paced(from_json(body, list[msgspec.Raw]))]


@cache
def _item_decoder(shape: Any) -> Any:
    """Decodes an item of the list that a shape may be; None if it can't be one."""
    for one in (shape, *get_args(shape)):
        if get_origin(one) is list:
            (item,) = get_args(one)
            return json_decoder(item).decode
    return None
