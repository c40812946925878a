"""Batches of MCP 2025-03-26, the one revision that has them: each message is served by itself, and all answers
come on one event stream."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from starlette.types import Message, Receive, Scope, Send

Serve = Callable[[Scope, bytes, Receive, Send], Coroutine[Any, Any, None]]
"""Serves one message as if it had come alone; what it is given as `receive` follows the body."""


async def serve_batch(parts: list[bytes], scope: Scope, receive: Receive, send: Send, serve: Serve) -> None:
    """Serves all messages at the same time. 202 where nothing is to be answered."""
    answers = _Answers(send)
    gone = anyio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async def hung_up() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async with anyio.create_task_group() as watching:
        watching.start_soon(watch)
        async with anyio.create_task_group() as tasks:
            for part in parts:
                tasks.start_soon(serve, dict(scope), part, hung_up, _Part(answers).send)
        watching.cancel_scope.cancel()
    await answers.end()


class _Answers:
    """The one response of a batch."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False

    async def add(self, chunk: bytes) -> None:
        await self._begin(200, [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")])
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._begin(202, [(b"content-length", b"0")])
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": status, "headers": headers})


class _Part:
    """The response to one message. Streams are passed on event by event, since those of several mix."""

    def __init__(self, answers: _Answers) -> None:
        self._answers = answers
        self._is_stream = False
        self._held = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers", [])).get(b"content-type", b"")
            self._is_stream = kind.startswith(b"text/event-stream")
            return
        self._held += message.get("body", b"")
        if self._is_stream:
            events, separator, self._held = self._held.rpartition(b"\r\n\r\n")
            if separator:
                await self._answers.add(events + separator)
        elif self._held and not message.get("more_body"):
            await self._answers.add(b"event: message\r\ndata: " + self._held + b"\r\n\r\n")
