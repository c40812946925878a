"""/mcp: the ASGI endpoint for both eras of MCP. Chooses the era by the protocol version that a request names.

The sender of a message is described from the request's headers; `sessions/session.py` decides which of them
count. Ids that the SDK makes per request are never among them: in the modern era they are new each time.
"""

from contextlib import suppress

import anyio
import anyio.abc
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import credential_of
from serena_central.access.working_folder import FOLDER_HEADER, decoded, folder_in
from serena_central.mcp_server.conversation import id_in, refuse
from serena_central.mcp_server.direct_lane import DirectLane
from serena_central.mcp_server.protocol import HANDSHAKE_VERSIONS, UNSUPPORTED_VERSION, VERSIONS
from serena_central.mcp_server.request_bodies import body_of
from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.sender import IN_SCOPE, Sender
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.transports import HandshakeTransports
from serena_central.sessions.session import shortened

SESSION_HEADER = b"x-serena-session"
CONVERSATION_HEADER = b"x-serena-conversation"
CONTEXT_HEADER = b"x-serena-context"
CALL_HEADER = b"x-serena-call"
"""A call's own id, the same when a proxy sends it again after a broken connection."""
MODES_HEADER = b"x-serena-modes"
"""Modes that a new session begins with, separated by commas."""
PARENT_HEADER = b"x-serena-parent"
"""The process id of the client behind a proxy."""

HOPS_HEADER = b"x-serena-hops"
"""How many hubs of MCP servers a request has passed."""

_OURS = frozenset(
    (
        *(SESSION_HEADER, CONVERSATION_HEADER, FOLDER_HEADER, CONTEXT_HEADER, CALL_HEADER, MODES_HEADER, PARENT_HEADER),
        HOPS_HEADER,
    )
)

_MOST_NAMES = 20

_TRACE = frozenset((b"traceparent", b"tracestate", b"baggage"))

_VERSION_HEADER = b"mcp-protocol-version"

_VERSIONS = frozenset(version.encode("ascii") for version in VERSIONS)

_HANDSHAKE_VERSIONS = frozenset(version.encode("ascii") for version in HANDSHAKE_VERSIONS)


def sender_in(scope: Scope) -> Sender:
    """The sender of one HTTP request. Folders may hold any bytes, so undecodable ones survive in them; of all else they
    become escapes, since it goes into keys and records."""
    said: dict[bytes, str] = {}
    trace: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _OURS:
            text = decoded(value) if name == FOLDER_HEADER else value.decode("utf-8", "backslashreplace").strip()
            if text:
                said[name] = text
        elif name in _TRACE:
            trace[name.decode("latin-1")] = value.decode("latin-1")
    return Sender(
        credential=credential_of(scope),
        explicit_id=said.get(SESSION_HEADER),
        conversation_id=said.get(CONVERSATION_HEADER),
        working_folder=folder_in(said.get(FOLDER_HEADER)),
        context=said.get(CONTEXT_HEADER),
        modes=_names_in(said.get(MODES_HEADER, "")),
        client_pid=_pid_in(said.get(PARENT_HEADER, "")),
        through_hub=said.get(HOPS_HEADER, "0") != "0",
        call_id=said.get(CALL_HEADER),
        trace=trace,
    )


def _names_in(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    return tuple(shortened(name) for part in text.split(",")[:_MOST_NAMES] if (name := part.strip()))


def _pid_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


class McpEndpoint:
    """Routes each request to its era. Modern ones stand alone and need nothing kept between them."""

    def __init__(
        self,
        sdk: SdkLane,
        handshake: HandshakeTransports,
        subscriptions: Subscriptions | None = None,
        direct: DirectLane | None = None,
    ) -> None:
        """`direct` serves what it can of the modern era; all else goes through `sdk`."""
        self._sdk = sdk
        self._handshake = handshake
        self._direct = direct
        self._subscriptions = subscriptions

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until cancelled."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._sdk.run)
            if self._direct is not None:
                await tasks.start(self._direct.run)
            await self._handshake.run(task_status=task_status)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):  # nobody to answer to
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
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
                code=UNSUPPORTED_VERSION,
                data={"supported": VERSIONS, "requested": version.decode("latin-1")[:40]},
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
        await (await self._sdk.loaded()).modern.handle_request(scope, receive, send)

    def close_streams(self, credential: str | None = None) -> None:
        """Ends the streams that clients hold open between calls: those of one credential, or all, so that the server
        can stop."""
        self._handshake.close_streams(credential)
        if self._subscriptions is not None:
            self._subscriptions.close(credential)


def _is_json(scope: Scope) -> bool:
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return kind.partition(b";")[0].strip().lower() == b"application/json"
