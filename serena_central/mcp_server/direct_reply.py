"""How a plain request is answered: as JSON, or as an event stream if it takes long or there is progress to tell.

A stream keeps the connection in use: clients and proxies close one on which nothing comes for a minute, and only a
client that has had an event can come back for the rest. Most calls are through before either matters, though all agents
ask for progress, so a stream begins, before the first byte of anything else, with the first news of a call, or after
`STREAM_AFTER_S`.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import anyio
from anyio.abc import TaskGroup
from starlette.types import Receive, Send

from serena_central.core.progress import Listener
from serena_central.mcp_server.conversation import ID_HEADER, Exchange, HandshakeConversation
from serena_central.mcp_server.progress import ProgressRelay
from serena_central.mcp_server.sse import HEADERS, PING, PING_S, Message, encoded, event_of, opening_of

ATTENDED_AFTER_S = 0.05
"""From then on the connection is looked after. Most answers are sent before, those of language servers too, and spare
the task that does it."""

STREAM_AFTER_S = 5.0
"""An answer after this many seconds comes by an event stream: early enough for clients that wait 10 s for the head of a
response, late enough that hardly any call comes that far."""

Answering = Callable[[], Awaitable[Message]]
"""Makes the answer."""

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

    def opening(self) -> bytes:
        """How a stream begins."""
        ...

    def event(self, message: Message | None) -> bytes:
        """The answer, or news of the call, as an event; empty if the call gets no answer."""
        ...


class DirectReply:
    """One response. `scope` is around the work: cancelling it ends the request without an answer."""

    def __init__(
        self, receive: Receive, send: Send, wire: Wire, attendants: TaskGroup, token: int | str | None = None
    ) -> None:
        """`attendants`: whose tasks look after connections. A group of its own would cost each call as much as a lookup
        of a symbol. `token`: by which the client knows its progress; None if it wants to hear of none."""
        self.scope = anyio.CancelScope()
        self._receive = receive
        self._send = send
        self._wire = wire
        self._attendants = attendants
        self._token = token
        self._beside: list[_Attendant] = []
        self._relay: ProgressRelay | None = None
        self._opening = asyncio.Lock()
        self._is_stream = False
        self._is_made = False
        self._is_over = False
        self._afterwards: list[Callable[[], None]] = []

    def afterwards(self, function: Callable[[], None]) -> None:
        """Calls it when the reply has been sent, or nothing is to be sent any more: the client need not wait for it."""
        if self._is_over:
            function()
        else:
            self._afterwards.append(function)

    @property
    def on_progress(self) -> Listener | None:
        """Sends news of the call to a client that wants to hear of it."""
        return None if self._token is None else self._report

    async def tell(self, notification: Message) -> None:
        """Sends a notification or a question before the answer; nothing once the answer is made, which those that work
        for the call in other tasks may not know."""
        await self._open_stream()
        if not self._is_made:
            await self._send({"type": "http.response.body", "body": self._wire.event(notification), "more_body": True})

    async def run(self, answering: Answering, status_of: Callable[[Message], int]) -> None:
        """Sends what `answering` makes. What a closed connection means is up to the wire."""
        try:
            await self._run(answering, status_of)
        finally:
            self._is_over = True
            for function in self._afterwards:
                function()

    async def _run(self, answering: Answering, status_of: Callable[[Message], int]) -> None:
        message: Message | None = None
        later = asyncio.get_running_loop().call_later(ATTENDED_AFTER_S, self._begin_to_attend)
        try:
            with self.scope:
                message = await answering()
        finally:
            later.cancel()
            self._is_made = True
            beside, self._beside, self._relay = self._beside, [], None  # they know each other, and the answer
            for attendant in beside:
                attendant.cancel()
            for attendant in beside:
                await attendant.end()
        async with self._opening:  # who tells something may be opening the stream
            is_stream = self._is_stream or message is None
        if is_stream:
            # A cancelled request ends without an answer (MCP, "Cancellation"), as a stream can.
            await self._begin_stream()
            await self._send({"type": "http.response.body", "body": self._wire.event(message)})
            return
        assert message is not None
        body = encoded(message)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self._wire.headers,
        ]
        await self._send({"type": "http.response.start", "status": status_of(message), "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _begin_to_attend(self) -> None:
        self._start_beside(self._attend)

    def _start_beside(self, function: Callable[[], Awaitable[None]]) -> None:
        attendant = _Attendant(function, self.scope)
        try:
            self._attendants.start_soon(attendant.run)
        except RuntimeError:  # the server is stopping: what is being answered ends soon
            return
        self._beside.append(attendant)

    def _report(self, message: str, part: float | None) -> None:
        if self._is_made:
            return  # what a call has begun may go on
        if self._relay is None:
            self._relay = ProgressRelay(self._notify)
            self._start_beside(self._relay.run)
        self._relay.report(message, part)

    async def _notify(self, value: float, total: float | None, message: str | None) -> None:
        said = {"progressToken": self._token, "progress": value, "total": total, "message": message}
        params = {key: value for key, value in said.items() if value is not None}
        await self.tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    async def _attend(self) -> None:
        """Looks after the connection while the answer is made."""
        with anyio.move_on_after(STREAM_AFTER_S):
            return await self._closed()
        await self._open_stream()
        while True:
            with anyio.move_on_after(PING_S):
                return await self._closed()
            await self._send({"type": "http.response.body", "body": PING, "more_body": True})

    async def _closed(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._wire.hung_up(self.scope)

    async def _open_stream(self) -> None:
        async with self._opening:
            if not self._is_stream and not self._is_made:
                await self._begin_stream()
                opening = self._wire.opening()
                await self._send({"type": "http.response.body", "body": opening, "more_body": True})

    async def _begin_stream(self) -> None:
        if self._is_stream:
            return
        headers = [*HEADERS, *self._wire.headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._is_stream = True


class _Attendant:
    """Runs beside the work for one reply, as a task of a group that all share: what fails there fails the reply."""

    def __init__(self, attend: Callable[[], Awaitable[None]], work: anyio.CancelScope) -> None:
        self._attend = attend
        self._work = work
        self._scope = anyio.CancelScope()
        self._has_ended = anyio.Event()
        self._failure: Exception | None = None

    async def run(self) -> None:
        try:
            with self._scope:
                await self._attend()
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:  # all of them are
                raise
            self._fail(RuntimeError("something cancelled what looks after a connection"))  # not its reply's end
        except Exception as error:  # noqa: BLE001 (raised by `stop`)
            self._fail(error)
        finally:
            self._has_ended.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._work.cancel()

    def cancel(self) -> None:
        self._scope.cancel()

    async def end(self) -> None:
        """Waits until it has ended. Raises what failed."""
        await self._has_ended.wait()
        if self._failure is not None:
            raise self._failure


class ModernWire:
    """MCP 2026-07-28: who closes the connection cancels the request; streams cannot be resumed."""

    headers: Headers = ()

    def hung_up(self, scope: anyio.CancelScope) -> None:
        scope.cancel()

    def opening(self) -> bytes:
        return PING

    def event(self, message: Message | None) -> bytes:
        return b"" if message is None else event_of(encoded(message))


class HandshakeWire:
    """One request of a conversation. Its stream can be resumed, by clients that know how."""

    def __init__(self, conversation: HandshakeConversation, exchange: Exchange, request: str, version: str) -> None:
        self.headers: Headers = [(ID_HEADER, conversation.id.encode("ascii"))]
        self._log = conversation.streams.log
        self._exchange = exchange
        self._request = request
        self._version = version
        exchange.resumable = False

    def hung_up(self, scope: anyio.CancelScope) -> None:
        """The exchange has noticed, and ends what only reads; what changes something goes on."""

    def opening(self) -> bytes:
        if self._version < RESUMABLE_SINCE:
            return PING
        self._exchange.resumable = True
        return opening_of(self._log.add(self._request))

    def event(self, message: Message | None) -> bytes:
        if message is None:
            self._log.add(self._request, is_last=True)
            return b""
        data = encoded(message)
        self._exchange.resumable = True  # it has an id to come back with, in any version
        return event_of(data, self._log.add(self._request, data, is_last="method" not in message))
