"""A long answer as lines of JSON: what the work says of itself while it lasts, then how it ended.

`{"says": …, "part": 0 to 1 or null}` any number of times; last `{"outcome": …}`, or `{"error": …, "status": …}` as
other answers have it. The work is cancelled when its caller hangs up.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from serena_central.core.progress import Listener
from serena_central.web.hangup import until_hung_up
from serena_central.web.responses import encoded, problem_of

UNREAD = 500
"""Lines that wait for a slow reader; he misses what is said beyond them."""

Work = Callable[[Listener], Awaitable[Any]]
"""Tells the listener how far it is, and returns the outcome or raises one of our errors."""


class Lines(Response):
    """Does the work while it is sent. The request's body must have been read."""

    media_type = "application/x-ndjson"

    def __init__(self, work: Work) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await until_hung_up(Request(scope, receive), lambda: self._tell(send))
        except ClientDisconnect:
            return

    async def _tell(self, send: Send) -> None:
        lines, unread = anyio.create_memory_object_stream[bytes](UNREAD)
        async with anyio.create_task_group() as tasks, unread:
            tasks.start_soon(self._do, lines)
            async for line in unread:
                await send({"type": "http.response.body", "body": line + b"\n", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _do(self, lines: MemoryObjectSendStream[bytes]) -> None:
        def say(message: str, part: float | None) -> None:
            if lines.statistics().current_buffer_used < UNREAD:
                lines.send_nowait(msgspec.json.encode({"says": message, "part": part}))

        async with lines:
            try:
                last = {"outcome": await self._work(say)}
            except Exception as error:  # noqa: BLE001 (the border of a request: told, or logged, by `problem_of`)
                status, problem = problem_of(error)
                last = {**problem, "status": status}
            await lines.send(encoded(last))
