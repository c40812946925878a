"""/mcp: the ASGI endpoint for both eras of MCP. Chooses the era by the protocol version that a request names."""

from typing import Any

import anyio
import anyio.abc
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, SUPPORTED_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import MAX_BODY_BYTES
from serena_central.mcp_server.conversation import id_in, refuse
from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.http_sender import sender_in
from serena_central.mcp_server.request_bodies import body_of
from serena_central.mcp_server.sender import IN_SCOPE
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.transports import HandshakeTransports

_VERSION_HEADER = b"mcp-protocol-version"
_VERSIONS = frozenset(version.encode("ascii") for version in SUPPORTED_PROTOCOL_VERSIONS)
_HANDSHAKE_VERSIONS = frozenset(version.encode("ascii") for version in HANDSHAKE_PROTOCOL_VERSIONS)


class McpEndpoint:
    """Routes each request to its era. Modern ones stand alone and need nothing kept between them."""

    def __init__(
        self,
        server: Server[Any],
        handshake: HandshakeTransports,
        subscriptions: Subscriptions | None = None,
        direct: DirectLane | None = None,
    ) -> None:
        """`direct` serves what it can of the modern era; all else goes through `server`."""
        self._handshake = handshake
        self._direct = direct
        self._subscriptions = subscriptions
        # `json_response` stays off: an answer that can't become a stream loses progress and cancellation.
        self._modern = StreamableHTTPSessionManager(server, json_response=False, max_request_body_size=MAX_BODY_BYTES)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until cancelled."""
        async with self._modern.run():
            await self._handshake.run(task_status=task_status)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[IN_SCOPE] = sender_in(scope)
        # The SDK's manager decides by the same header: what is sent to it here, it takes for modern.
        version = next((value.strip() for name, value in scope["headers"] if name == _VERSION_HEADER), None)
        if scope["method"] == "POST" and not _is_json(scope):
            await refuse(send, 415, "The Content-Type of a message is application/json.")
        elif version is not None and version not in _VERSIONS and id_in(scope) is not None:
            await refuse(
                send,
                400,
                f"Protocol version {version.decode('latin-1')[:40]!r} is not supported.",
                code=UNSUPPORTED_PROTOCOL_VERSION,
                data={"supported": SUPPORTED_PROTOCOL_VERSIONS, "requested": version.decode("latin-1")[:40]},
            )
        elif version is None or version in _HANDSHAKE_VERSIONS:
            await self._handshake.serve(scope, receive, send)
        else:
            # White space around a value is no part of it (RFC 9110, 5.5); the HTTP parser leaves it there at the end.
            scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
            await self._serve_modern(scope, receive, send)

    async def _serve_modern(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and self._direct is not None:
            body = await body_of(receive)
            if await self._direct.serve_modern(scope, body, send):
                return
            receive = body.receive
        await self._modern.handle_request(scope, receive, send)

    def close_streams(self) -> None:
        """Ends the streams that clients hold open between calls, so that the server can stop."""
        self._handshake.close_streams()
        if self._subscriptions is not None:
            self._subscriptions.close()


def _is_json(scope: Scope) -> bool:
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return kind.partition(b";")[0].strip().lower() == b"application/json"
