"""The transports of remote upstreams: streamable HTTP and the older SSE, the MCP SDK's, with our headers and log."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from serena_central.hub.own_server import HOPS, HOPS_HEADER
from serena_central.hub.specs import UpstreamSpec
from serena_central.hub.wire_log import WireLog

CONNECT_S = 30.0
"""To connect, to send a request and to get a connection. How long an answer may take is the call's bound."""

CONNECTIONS = httpx2.Limits(max_connections=2000, max_keepalive_connections=20)
"""Each call that is not answered yet takes one: calls of all sessions must fit in, not wait for each other."""

QUIET_S = 86_400.0
"""A stream may say nothing for as long: notifications come on it, and health checks find out whether it still works."""

MAX_EVENT_BYTES = 64 * 1024 * 1024


NOT_FOUND, UNAUTHORIZED = 404, 401

SESSION_HEADER = "mcp-session-id"

trusted_certificates = cache(httpx2.create_ssl_context)
"""As `core.tls`, by this client's rules: the system's authorities before others."""


class RemoteWire:
    """The streams of one connection, as the SDK's dispatcher takes them."""

    def __init__(self) -> None:
        self.incoming: Any = None
        self.outgoing: Any = None
        self.forgotten = False
        """The server has answered 404 to a request that named our session: it knows it no longer (MCP, "Session
        Management"), and has not carried the request out."""

        self.unauthorized = False
        """The server has answered its newest request with 401: it wants a login."""

    async def notice(self, response: httpx2.Response) -> None:
        """A hook of the HTTP client."""
        self.unauthorized = response.status_code == UNAUTHORIZED
        if response.status_code == NOT_FOUND and SESSION_HEADER in response.request.headers:
            self.forgotten = True


@asynccontextmanager
async def remote_wire(
    wire: RemoteWire, spec: UpstreamSpec, headers: Mapping[str, str], log: WireLog, login: httpx2.Auth | None = None
) -> AsyncGenerator[RemoteWire]:
    """Connects `wire` while the block is open; `headers` are all that the configuration says. What the server answered
    is in `wire` also where no connection came about."""
    sent = {**headers, HOPS_HEADER: HOPS}
    timeout = httpx2.Timeout(CONNECT_S, read=QUIET_S)
    async with AsyncExitStack() as stack:
        if spec.kind == "sse":

            def client_for_sse(
                headers: dict[str, str] | None = None,
                timeout: httpx2.Timeout | None = None,
                auth: httpx2.Auth | None = None,
            ) -> httpx2.AsyncClient:
                hooks = {"response": [wire.notice]}
                return httpx2.AsyncClient(
                    headers=headers,
                    timeout=timeout,
                    auth=auth,
                    limits=CONNECTIONS,
                    event_hooks=hooks,
                    verify=trusted_certificates(),
                )

            streams = await stack.enter_async_context(
                sse_client(
                    spec.url,
                    headers=sent,
                    timeout=CONNECT_S,
                    sse_read_timeout=QUIET_S,
                    httpx_client_factory=client_for_sse,
                    auth=login,
                )
            )
        else:
            client = await stack.enter_async_context(
                httpx2.AsyncClient(
                    headers=sent,
                    timeout=timeout,
                    limits=CONNECTIONS,
                    event_hooks={"response": [wire.notice]},
                    auth=login,
                    verify=trusted_certificates(),
                )
            )
            streams = await stack.enter_async_context(
                streamable_http_client(spec.url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES)
            )
        wire.incoming, wire.outgoing = _LoggedIncoming(streams[0], log), _LoggedOutgoing(streams[1], log)
        yield wire


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
