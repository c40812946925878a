"""How messages stand in an event stream (server-sent events)."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio
import msgspec
from starlette.types import Receive, Send

from serena_central.core.decoding import from_json
from serena_central.core.disconnects import on_disconnect

PING_S = 15.0
"""Between two comments on a stream that has nothing else to send."""

PING = b": ping\r\n\r\n"

RETRY_MS = 1000
"""The delay before reconnecting that is sent to clients, in milliseconds."""

HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)
"""Of a response that is an event stream."""

Message = Mapping[str, Any]
"""A JSON-RPC message, in wire form."""

Write = Callable[[bytes], Awaitable[None]]
"""Sends a part of a stream."""

T = TypeVar("T")


def encoded(message: Message) -> bytes:
    """A message as JSON. Halves of surrogate pairs, which UTF-8 does not have, are escaped."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":"), default=from_json).encode("ascii")


def event_of(data: bytes, event_id: str = "") -> bytes:
    """An encoded message as an event of a stream."""
    number = b"id: " + event_id.encode("ascii") + b"\r\n" if event_id else b""
    return number + b"event: message\r\ndata: " + data + b"\r\n\r\n"


def opening_of(event_id: str) -> bytes:
    """An event without data, which tells a client where to resume the stream that it opens."""
    return f"id: {event_id}\r\nretry: {RETRY_MS}\r\ndata: \r\n\r\n".encode("ascii")


async def send_stream(
    receive: Receive, send: Send, headers: Sequence[tuple[bytes, bytes]], work: Callable[[Write], Awaitable[None]]
) -> None:
    """Answers a request by a stream: what `work` writes, until it returns or the client leaves."""

    async def write(part: bytes) -> None:
        await send({"type": "http.response.body", "body": part, "more_body": True})

    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(on_disconnect, receive, tasks.cancel_scope.cancel)
        await work(write)
        tasks.cancel_scope.cancel()
    await send({"type": "http.response.body", "body": b""})


async def kept_open(write: Write, wait: Callable[[], Awaitable[T]]) -> T:
    """What `wait` returns; meanwhile a comment now and then. `wait` is called again after each, and has to see what
    came while it was sent."""
    while True:
        with anyio.move_on_after(PING_S):
            return await wait()
        await write(PING)
