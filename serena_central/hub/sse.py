"""The older transport of remote upstreams: one event stream for all that the server says, and a POST for each message.

Not the SDK's, which sends nothing more after one POST has failed, waits for each, and ends at an event of 1 MB.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urljoin

import anyio
import httpx2
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared._httpx_utils import sse_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCRequest

from serena_central.core.errors import UpstreamUnavailable
from serena_central.hub.remote_client import RemoteClient
from serena_central.hub.wire_log import WireLog
from serena_central.hub.wire_messages import MAX_MESSAGE_BYTES, NO_PROTOCOL, failed_answer, failure, message_of

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
    async with sse_within_origin(client, url, max_event_size=MAX_MESSAGE_BYTES) as events, received, incoming:
        events.response.raise_for_status()
        async with anyio.create_task_group() as tasks:
            endpoint = await tasks.start(_read, events, server, url, received, log)
            yield incoming, _Posted(client, endpoint, received, tasks)
            tasks.cancel_scope.cancel()


async def _read(
    events: httpx2.EventSource,
    server: str,
    url: str,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    log: WireLog,
    *,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Messages, until the stream ends."""
    endpoint = ""
    try:
        async for event in events:
            if event.event == "endpoint" and not endpoint:
                endpoint = urljoin(url, event.data)
                if _origin(endpoint) != _origin(url):
                    raise UpstreamUnavailable(server, "it wants its messages to be sent to another host")
                task_status.started(endpoint)
            elif event.event == "message" and endpoint and (message := _message(event.data, log)) is not None:
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


def _message(data: str, log: WireLog) -> JSONRPCMessage | None:
    if not data:
        return None
    text = data.encode("utf-8", "surrogatepass")
    message = message_of(text)
    if message is None:
        log.note(f"not a message: {data[:200]}")
        return failed_answer(text, NO_PROTOCOL)
    return message


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = httpx2.URL(url)
    return parts.scheme, parts.host, parts.port
