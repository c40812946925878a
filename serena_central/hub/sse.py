"""The older transport of remote upstreams: one event stream for all that the server says, and a POST for each message.

Not the SDK's, which sends nothing more after one POST has failed, waits for each, and ends at an event of 1 MB.
"""

import logging
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin

import anyio
import httpx2
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared._httpx_utils import sse_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCRequest

from serena_central.core.errors import UpstreamUnavailable
from serena_central.hub.bodies import kind_of
from serena_central.hub.remote_client import RemoteClient
from serena_central.hub.wire_log import WireLog
from serena_central.hub.wire_messages import (
    END_BYTES,
    MAX_MESSAGE_BYTES,
    MOST_PARTS,
    NO_PROTOCOL,
    TOO_MANY_PARTS,
    ends_of,
    failed_answer,
    failure,
    has_too_many_parts,
    message_of,
    too_long,
)

logger = logging.getLogger(__name__)

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]


class _Posted:
    """Where messages go in. The POST of each is a task of its own."""

    def __init__(
        self, client: RemoteClient, endpoint: str, received: MemoryObjectSendStream[Any], tasks: TaskGroup
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._received = received
        self._tasks = tasks

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """What is under way ends with the block of `sse_streams`."""

    async def send(self, item: SessionMessage) -> None:
        """Raises ValueError: it can't be sent."""
        message = item.message
        request = self._client.build_request(
            "POST",
            self._endpoint,
            content=message.model_dump_json(by_alias=True, exclude_unset=True),
            headers={"content-type": "application/json"},
        )
        if isinstance(message, JSONRPCRequest):
            self._tasks.start_soon(self._request, request, message)
        else:
            await self._client.send(request)

    async def _request(self, request: httpx2.Request, message: JSONRPCRequest) -> None:
        why = await self._client.delivered(request)
        if why:
            try:
                await self._received.send(SessionMessage(failure(message.id, why)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                logger.debug("the connection ended before the failure of a request was reported")


@asynccontextmanager
async def sse_streams(
    client: RemoteClient, server: str, url: str, log: WireLog
) -> AsyncGenerator[tuple[Incoming, _Posted]]:
    """Connects while the block is open.

    Raises:
        UpstreamUnavailable: what answers is no such server.
        httpx2.HTTPError
    """
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with sse_within_origin(client, url) as events, received, incoming:
        response = events.response
        response.raise_for_status()
        if kind_of(response) != "text/event-stream":
            raise UpstreamUnavailable(server, "what it answers is no event stream")
        async with anyio.create_task_group() as tasks:
            endpoint = await tasks.start(_read, response, server, url, received, log)
            yield incoming, _Posted(client, endpoint, received, tasks)
            tasks.cancel_scope.cancel()


async def _read(
    response: httpx2.Response,
    server: str,
    url: str,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    log: WireLog,
    *,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Messages, until the stream ends."""
    endpoint, reader = "", _EventReader()
    try:
        async for event in reader.events(response):
            if event.name == "endpoint" and not endpoint:
                endpoint = urljoin(url, event.data.decode("utf-8", "replace"))
                if _origin(endpoint) != _origin(url):
                    raise UpstreamUnavailable(server, "it wants its messages to be sent to another host")
                task_status.started(endpoint)
            elif event.name == "message" and endpoint and (message := _message(event, log)) is not None:
                await received.send(SessionMessage(message))
    except httpx2.HTTPError as error:
        if not endpoint:
            raise
        log.note(f"its stream ended: {error}")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # nobody reads any more
    finally:
        received.close()
    if not endpoint:
        raise UpstreamUnavailable(server, "its event stream ended before it said where to send messages")


def _message(event: "_Event", log: WireLog) -> JSONRPCMessage | None:
    """What an event says; the failure of the request that it was to answer, if it is known."""
    if event.dropped:
        log.note(f"an event of {event.size} bytes was dropped")
        return failed_answer(event.data, too_long(event.size, MAX_MESSAGE_BYTES))
    if has_too_many_parts(event.data):
        log.note(f"an event of more than {MOST_PARTS:,} objects and lists was dropped")
        return failed_answer(event.data, TOO_MANY_PARTS)
    message = message_of(event.data)
    if message is None:
        log.note(f"not a message: {event.data[:200].decode('utf-8', 'replace')}")
        return failed_answer(event.data, NO_PROTOCOL)
    return message


class _Event(NamedTuple):
    """`data` of one that is too long are its first and its last bytes."""

    name: str
    data: bytes
    dropped: int

    @property
    def size(self) -> int:
        return len(self.data) + self.dropped


class _EventReader:
    """Reads an event stream as WHATWG's HTML says it ("Interpreting an event stream"), in bounded memory: one that is
    too long costs its own request, and not the stream of all others."""

    def __init__(self) -> None:
        self._begins = True
        """Whether no line has ended yet: a byte-order mark may stand before the first one."""
        self._rest = bytearray()
        """Of a line that has not ended."""
        self._was_cr = False
        self._name = ""
        self._data = bytearray()
        self._dropped = 0

    async def events(self, response: httpx2.Response) -> AsyncGenerator[_Event]:
        async for part in response.aiter_bytes():
            for event in self._taken(part):
                yield event

    def _taken(self, part: bytes) -> Iterator[_Event]:
        text = part[1:] if self._was_cr and part.startswith(b"\n") else part
        self._was_cr = part.endswith(b"\r")
        *lines, tail = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for end in lines:
            line, self._rest = self._rest + end, bytearray()
            if self._begins:
                line, self._begins = line.removeprefix(BOM_UTF8), False
            if line:
                self._field(line)
                continue
            if self._data or self._dropped:
                yield _Event(self._name or "message", bytes(self._data), self._dropped)
            self._name, self._data, self._dropped = "", bytearray(), 0
        self._rest += tail
        size = len(self._rest) + len(self._data)
        if self._dropped or size > MAX_MESSAGE_BYTES:
            self._rest, self._data = ends_of(self._rest), ends_of(self._data)
            self._dropped += size - len(self._rest) - len(self._data)

    def _field(self, line: bytearray) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if bytes(field) == b"data":
            self._data += (b"\n" if self._data else b"") + value
        elif bytes(field) == b"event":
            self._name = value[:END_BYTES].decode("utf-8", "replace")


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = httpx2.URL(url)
    return parts.scheme, parts.host, parts.port
