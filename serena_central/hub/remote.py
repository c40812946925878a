"""The transports of remote upstreams: streamable HTTP by the MCP SDK and the older SSE, with our headers and log."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from serena_central.hub.own_server import HOPS, HOPS_HEADER
from serena_central.hub.remote_client import RemoteClient
from serena_central.hub.specs import UpstreamSpec
from serena_central.hub.sse import sse_streams
from serena_central.hub.wire_log import WireLog
from serena_central.hub.wire_messages import MAX_MESSAGE_BYTES

trusted_certificates = cache(httpx2.create_ssl_context)
"""As `core.tls`, by this client's rules: the system's authorities before others."""


class RemoteWire:
    """The streams of one connection, as the SDK's dispatcher takes them."""

    def __init__(self) -> None:
        self.incoming: Any = None
        self.outgoing: Any = None
        self.client: RemoteClient | None = None

    @property
    def unauthorized(self) -> bool:
        """The server has answered its newest request with 401: it wants a login."""
        return self.client is not None and self.client.unauthorized


@asynccontextmanager
async def remote_wire(
    wire: RemoteWire, spec: UpstreamSpec, headers: Mapping[str, str], log: WireLog, login: httpx2.Auth | None = None
) -> AsyncGenerator[RemoteWire]:
    """Connects `wire` while the block is open; `headers` are all that the configuration says. What the server answered
    is in `wire` also where no connection came about."""
    by_header = any(name.lower() == "authorization" for name in headers)
    advice = (
        "check the Authorization header of its entry" if by_header else f"run `serena-central mcp login {spec.name}`"
    )
    options: dict[str, Any] = {"auth": login, "verify": trusted_certificates()}
    async with anyio.create_task_group() as tasks:
        async with RemoteClient(tasks, log, advice, headers={**headers, HOPS_HEADER: HOPS}, **options) as client:
            wire.client = client
            streams: AbstractAsyncContextManager[tuple[Any, Any]]
            if spec.kind == "sse":
                streams = sse_streams(client, spec.name, spec.url, log)
            else:
                streams = streamable_http_client(spec.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
            async with streams as (incoming, outgoing):
                wire.incoming, wire.outgoing = _LoggedIncoming(incoming, log), _LoggedOutgoing(outgoing, log)
                yield wire
        tasks.cancel_scope.cancel()


class _Logged:
    def __init__(self, inner: Any, log: WireLog) -> None:
        self._inner = inner
        self._log = log

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LoggedIncoming(_Logged):
    @property
    def last_context(self) -> Any:
        """The context in which the newest message was received: that of the request on whose stream it came."""
        return self._inner.last_context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item = await self._inner.__anext__()
        if isinstance(item, Exception):
            self._log.note(f"not a message: {item!r}"[:500])
        else:
            try:
                self._log.received(item.message.model_dump_json(by_alias=True, exclude_unset=True))
            except ValueError as error:  # of what is only to be logged
                self._log.note(f"a message that can't be shown: {error}"[:500])
        return item

    async def receive(self) -> SessionMessage | Exception:
        return await self.__anext__()


class _LoggedOutgoing(_Logged):
    async def send(self, item: SessionMessage) -> None:
        """Raises ValueError: it can't be sent. That fails its sender alone; the SDK would end the connection."""
        self._log.sent(item.message.model_dump_json(by_alias=True, exclude_unset=True))
        await self._inner.send(item)
