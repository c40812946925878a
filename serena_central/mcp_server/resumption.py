"""Resumable streams of the handshake era: events are kept for a while, under ids.

MCP 2025-11-25, "Resumability and Redelivery": each event has an id, and a client whose connection broke asks with GET
and `Last-Event-ID` for what came after it. What is kept is bounded in number, size and age.
"""

import secrets
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

import anyio
from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    REQUEST_STREAM_BUFFER_SIZE,
    EventCallback,
    EventMessage,
    EventStore,
    StreamableHTTPServerTransport,
)
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, RequestId
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.types import Send

from serena_central.core.running_time import running_time

MOST_EVENTS = 256
"""Of one session."""

MOST_CHARS = 2_000_000
"""Of texts in one session's events; the newest event is kept whatever its size."""

KEPT_S = 60.0

RETRY_MS = 1000
"""The delay before reconnecting that is sent to clients, in milliseconds."""

DELIVERED_WITHIN_S = 5.0
"""To a client that has resumed a stream; who does not read can ask for the event again."""

MESSAGE_CHARS = 300
"""What a message takes beside its text."""


class StreamEvent(NamedTuple):
    number: int
    stream: str
    message: JSONRPCMessage | None
    """None for the event that opens a stream, and only tells its id."""
    chars: int
    at: float


class EventLog(EventStore):
    """What was sent in one session, newest last. Ids are those of this log alone: `stream kind.log.number`."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._events: deque[StreamEvent] = deque()
        self._number = 0
        self._chars = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._number += 1
        event = StreamEvent(self._number, stream_id, message, _chars(message), running_time())
        self._events.append(event)
        self._chars += event.chars
        while len(self._events) > MOST_EVENTS or (self._chars > MOST_CHARS and len(self._events) > 1):
            self._drop()
        return self.id_of(event)

    def expire(self) -> None:
        """Drops what is too old to be asked for."""
        while self._events and self._events[0].at < running_time() - KEPT_S:
            self._drop()

    def id_of(self, event: StreamEvent) -> str:
        kind = "g" if event.stream == GET_STREAM_KEY else "r"
        return f"{kind}.{self._name}.{event.number}"

    def stream_of(self, event_id: str) -> str | None:
        """The stream that an event was sent on; None if it is not known any more."""
        number = self._number_of(event_id)
        return next((event.stream for event in self._events if event.number == number), None)

    def after(self, event_id: str, stream: str) -> list[StreamEvent]:
        """What came on the stream after the event."""
        number = self._number_of(event_id) or 0
        return [event for event in self._events if event.number > number and event.stream == stream and event.message]

    def is_answered(self, stream: str) -> bool:
        """Whether the last that came on the stream of a request is its answer."""
        last = next((event.message for event in reversed(self._events) if event.stream == stream), None)
        return isinstance(last, JSONRPCResponse | JSONRPCError)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Part of the interface; `ResumableTransport` replays by itself."""
        raise NotImplementedError

    def _number_of(self, event_id: str) -> int | None:
        _, _, rest = event_id.partition(".")
        name, _, number = rest.partition(".")
        return int(number) if name == self._name and number.isascii() and number.isdigit() else None

    def _drop(self) -> None:
        self._chars -= self._events.popleft().chars


class ResumableTransport(StreamableHTTPServerTransport):
    """The SDK's transport with an event log. Overrides what of it is private: mcp is pinned, and tests show both."""

    def __init__(self, session_id: str) -> None:
        self.log = EventLog()
        super().__init__(session_id, event_store=self.log, retry_interval=RETRY_MS)

    def resumed_stream(self, event_id: str) -> str | None:
        """The request whose stream the client takes up again; None for the stream outside of calls, or unknown ids."""
        stream = self.log.stream_of(event_id)
        return None if stream == GET_STREAM_KEY else stream

    async def deliver(self, request: str, said: Mapping[str, Any]) -> str:
        """Keeps an answer, or a notification before it, that does not come by this transport, and sends it to a client
        that follows the request's stream here. Returns the event's id."""
        kind = JSONRPCNotification if "method" in said else JSONRPCError if "error" in said else JSONRPCResponse
        message = kind.model_validate(said)
        event_id = await self.log.store_event(request, message)
        followed = self._request_streams.get(request)
        if followed is not None:
            with (
                anyio.move_on_after(DELIVERED_WITHIN_S),
                suppress(anyio.ClosedResourceError, anyio.BrokenResourceError),
            ):
                await followed[0].send(EventMessage(message, event_id))
        return event_id

    async def end_stream(self, request: str) -> None:
        """Ends what a client follows of a request that gets no answer."""
        await self._clean_up_memory_streams(request)

    async def _terminate_unanswered_request(self, request_id: RequestId) -> None:
        """A cancelled request ends without an answer (MCP, "Cancellation"); the SDK sends an error."""
        await self._clean_up_memory_streams(str(request_id))

    async def _replay_events(self, last_event_id: str, request: Request, send: Send) -> None:
        """Sends what the client has missed, then what comes, up to the request's answer. The SDK's own leaves a gap
        between the two, and never ends a stream whose answer was sent."""
        stream = self.log.stream_of(last_event_id)
        if stream is None:
            raise ValueError("the caller checks that the event is known")
        await self._clean_up_memory_streams(stream)  # a connection that nobody has noticed to be dead
        live, reader = self._request_streams[stream] = anyio.create_memory_object_stream[EventMessage](
            REQUEST_STREAM_BUFFER_SIZE
        )
        # No await between this look and the line before it: what comes from now on, comes on `reader`.
        missed, is_complete = self.log.after(last_event_id, stream), self.log.is_answered(stream)
        events_in, events_out = anyio.create_memory_object_stream[dict[str, Any]](0)

        async def write() -> None:
            async with events_in, reader:
                try:
                    for event in missed:
                        message = cast("JSONRPCMessage", event.message)
                        await self._write(events_in, EventMessage(message, self.log.id_of(event)))
                    if is_complete:
                        return
                    async for message in reader:
                        await self._write(events_in, message)
                        if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                            return
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    pass
                finally:
                    if self._request_streams.get(stream) == (live, reader):
                        await self._clean_up_memory_streams(stream)

        headers = {"Cache-Control": "no-cache, no-transform", "Mcp-Session-Id": self.mcp_session_id or ""}
        response = EventSourceResponse(content=events_out, data_sender_callable=write, headers=headers)
        try:
            await response(request.scope, request.receive, send)
        finally:
            await events_in.aclose()
            await events_out.aclose()

    async def _write(self, wire: Any, event: EventMessage) -> None:
        await wire.send(self._create_event_data(event))


def _chars(message: JSONRPCMessage | None) -> int:
    """About the length of a message: of its texts, which stand in it once or twice."""
    result: Any = message.result if isinstance(message, JSONRPCResponse) else None
    content: Any = cast("dict[str, Any]", result).get("content") if isinstance(result, dict) else None
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return MESSAGE_CHARS + sum(len(str(block.get("text", ""))) for block in blocks)
