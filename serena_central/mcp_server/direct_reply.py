"""The HTTP response to a plain request: JSON, or an event stream if the answer takes long.

A stream keeps the connection in use: clients and proxies close one on which nothing comes for a minute, and only a
client that has had an event can come back for the rest. Most calls are through before either matters, so a stream
begins, before the first byte of anything else, after `STREAM_AFTER_S`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import anyio
import msgspec
from starlette.types import Receive, Send

from serena_central.mcp_server.conversation import ID_HEADER, Conversation, Exchange
from serena_central.mcp_server.resumption import RETRY_MS

STREAM_AFTER_S = 5.0
"""An answer after this many seconds comes by an event stream: early enough for clients that wait 10 s for the head of a
response, late enough that hardly any call comes that far."""

PING_S = 15.0
"""Between two comments on a stream that has nothing else to send."""

PING = b": ping\r\n\r\n"

Message = Mapping[str, Any]
"""A JSON-RPC answer."""

Answering = Callable[[], Awaitable[Message | None]]
"""Makes the answer; None for a request that was cancelled."""

Headers = Sequence[tuple[bytes, bytes]]

RESUMABLE_SINCE = "2025-11-25"
"""Clients of earlier revisions cannot parse the event without data that tells them where to resume."""


class Wire(Protocol):
    """What the eras do differently on the wire."""

    @property
    def headers(self) -> Headers:
        """Of each response."""
        ...

    def hung_up(self, scope: anyio.CancelScope) -> None:
        """The client has closed the connection; `scope` is around the work."""
        ...

    async def opening(self) -> bytes:
        """How a stream begins."""
        ...

    async def event(self, message: Message | None) -> bytes:
        """The answer as an event; empty if the client follows the stream on another connection, or gets none."""
        ...


class DirectReply:
    """One response. `scope` is around the work: cancelling it ends the request without an answer."""

    def __init__(self, receive: Receive, send: Send, wire: Wire) -> None:
        self.scope = anyio.CancelScope()
        self._receive = receive
        self._send = send
        self._wire = wire
        self._is_stream = False

    async def run(self, answering: Answering, status_of: Callable[[Message], int]) -> None:
        """Sends what `answering` makes. What a closed connection means is up to the wire."""
        message: Message | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._attend)
            with self.scope:
                message = await answering()
            tasks.cancel_scope.cancel()
        if message is None or self._is_stream:
            # A cancelled request ends without an answer (MCP, "Cancellation"), as a stream can.
            await self._begin_stream()
            await self._send({"type": "http.response.body", "body": await self._wire.event(message)})
            return
        body = encoded(message)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self._wire.headers,
        ]
        await self._send({"type": "http.response.start", "status": status_of(message), "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def _attend(self) -> None:
        """Looks after the connection while the answer is made."""
        with anyio.move_on_after(STREAM_AFTER_S):
            return await self._closed()
        await self._begin_stream()
        await self._send({"type": "http.response.body", "body": await self._wire.opening(), "more_body": True})
        while True:
            with anyio.move_on_after(PING_S):
                return await self._closed()
            await self._send({"type": "http.response.body", "body": PING, "more_body": True})

    async def _closed(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._wire.hung_up(self.scope)

    async def _begin_stream(self) -> None:
        if self._is_stream:
            return
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache, no-transform"),
            (b"connection", b"keep-alive"),
            (b"x-accel-buffering", b"no"),
            *self._wire.headers,
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._is_stream = True


class ModernWire:
    """MCP 2026-07-28: who closes the connection cancels the request; streams cannot be resumed."""

    headers: Headers = ()

    def hung_up(self, scope: anyio.CancelScope) -> None:
        scope.cancel()

    async def opening(self) -> bytes:
        return PING

    async def event(self, message: Message | None) -> bytes:
        return b"" if message is None else event_of(message)


class HandshakeWire:
    """One request of a conversation. Its stream can be resumed, by clients that know how."""

    def __init__(self, conversation: Conversation, exchange: Exchange, request: str, version: str) -> None:
        self.headers: Headers = [(ID_HEADER, conversation.id.encode("ascii"))]
        self._transport = conversation.transport
        self._exchange = exchange
        self._request = request
        self._version = version
        exchange.resumable = False

    def hung_up(self, scope: anyio.CancelScope) -> None:
        """The exchange has noticed, and ends what only reads; what changes something goes on."""

    async def opening(self) -> bytes:
        if self._version < RESUMABLE_SINCE:
            return PING
        event_id = await self._transport.log.store_event(self._request, None)
        self._exchange.resumable = True
        return f"id: {event_id}\r\nretry: {RETRY_MS}\r\ndata: \r\n\r\n".encode("ascii")

    async def event(self, message: Message | None) -> bytes:
        if message is None:
            await self._transport.end_stream(self._request)
            return b""
        return event_of(message, await self._transport.deliver(self._request, message))


def event_of(message: Message, event_id: str = "") -> bytes:
    """A message as an event of a stream."""
    number = b"id: " + event_id.encode("ascii") + b"\r\n" if event_id else b""
    return number + b"event: message\r\ndata: " + encoded(message) + b"\r\n\r\n"


def encoded(message: Message) -> bytes:
    """A message as JSON. Halves of surrogate pairs, which UTF-8 does not have, are escaped."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode("ascii")
