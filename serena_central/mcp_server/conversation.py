"""One conversation of the handshake era, and its HTTP requests.

Raw ASGI: it watches what passes between the client and whoever answers, and changes nothing of it.
"""

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec.structs import replace
from starlette.types import Message, Receive, Scope, Send

from serena_central.access.auth import lend_credential
from serena_central.core.locks import KeyedLocks
from serena_central.core.running_time import running_time
from serena_central.mcp_server.protocol import INVALID_REQUEST
from serena_central.mcp_server.sender import IN_SCOPE, ClientConnection, Sender
from serena_central.mcp_server.streams import Streams

if TYPE_CHECKING:
    from serena_central.mcp_server.resumption import ResumableTransport

ID_HEADER = b"mcp-session-id"

RESUMED_WITHIN_S = 30.0
"""How long a read continues after its connection broke, so that the client can reconnect for the answer; afterwards it
is cancelled, as is one to which it cannot return. A client can cancel it at once by `notifications/cancelled`."""


class HandshakeConversation(ClientConnection):
    """One client's transport, and what this era lets us know about the client. Belongs to the event loop's thread."""

    def __init__(self, conversation_id: str, credential: str) -> None:
        super().__init__(conversation_id)
        self.credential = credential
        self.streams = Streams(self.subscribed)
        self.opening: bytes | None = None
        """Its `initialize` request, if the SDK has not read it."""
        self.is_initialized = False
        """`notifications/initialized` came."""
        self.knows_roots = False
        """Its client was asked for its roots, and has not said since that they changed."""
        self.asking_roots = anyio.Lock()
        """Held while its client is asked for its roots: again, if they change meanwhile."""
        self.transport: ResumableTransport | None = None
        """None while nothing needs the SDK."""
        self.was_left = False
        """Its client closed it, while nothing needed the SDK."""
        self.has_ended = False
        """It was taken out, and its session knows."""
        self.connecting = anyio.Lock()
        """Held while it gets a transport."""
        self.exchanges: dict[str, Exchange] = {}
        """Of calls that only read, by their ids: their streams may break and be taken up again."""
        self.direct: dict[str, anyio.CancelScope] = {}
        """Requests that don't go through the transport, by their ids."""
        self.turns = KeyedLocks()
        """Of requests with the same id: the transport has one answer's stream for each."""
        self.requests = 0
        """Requests being served, an open stream included."""
        self.quiet_since = running_time()
        self.had_stream = False

    @property
    def is_over(self) -> bool:
        """Its client closed it."""
        return self.was_left or (self.transport is not None and self.transport.is_terminated)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        said = {"jsonrpc": "2.0", "method": method}
        self.streams.say(said if params is None else {**said, "params": params})


class Exchange:
    """One HTTP request of a conversation. Lets the call inside it end when the client hangs up and does not return."""

    def __init__(self, conversation: HandshakeConversation) -> None:
        self._conversation = conversation
        self._scope: anyio.CancelScope | None = None
        self._hung_up = False
        self._followers = 0
        """Other connections on which the client follows the stream."""
        self.resumable = True
        """The client has what it needs to come back."""

    @contextmanager
    def while_connected(self, request: str) -> Generator[None]:
        """Around the call of this id: it is cancelled when the client has closed this HTTP request's connection and
        does not take its stream up again."""
        with anyio.CancelScope() as scope:
            self.begin(request, scope)
            try:
                yield
            finally:
                self.end(request)

    def begin(self, request: str, scope: anyio.CancelScope) -> None:
        """`scope` is around the call of this id, until `end`."""
        self._scope = scope
        self._set_deadline()
        self._conversation.exchanges[request] = self

    def end(self, request: str) -> None:
        exchanges = self._conversation.exchanges
        if exchanges.get(request) is self:
            del exchanges[request]

    def hang_up(self) -> None:
        """The client has closed a connection: that of the request, or one on which it followed the stream."""
        self._hung_up = True
        self._set_deadline()

    @contextmanager
    def resumed(self) -> Generator[None]:
        """While the client follows the stream on another connection. Those of before may be noticed to be closed
        meanwhile."""
        self._followers += 1
        self._set_deadline()
        try:
            yield
        finally:
            self._followers -= 1
            self.hang_up()

    def _set_deadline(self) -> None:
        if self._scope is None:
            return
        if self._followers:
            self._scope.deadline = math.inf
        elif self._hung_up:
            self._scope.deadline = anyio.current_time() + (RESUMED_WITHIN_S if self.resumable else 0)

    def watch(self, receive: Receive) -> Receive:
        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.hang_up()
            return message

        return watched


def begin_exchange(scope: Scope, conversation: HandshakeConversation) -> Exchange:
    """Marks a request as part of a conversation."""
    exchange = Exchange(conversation)
    scope[IN_SCOPE] = replace(scope[IN_SCOPE], connection=conversation, while_connected=exchange.while_connected)
    return exchange


class Opening:
    """Looks over the shoulder of the request that begins a conversation: its body, and the status of the answer."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.body = b""
        self.status = 500

    async def receive(self) -> Message:
        message = await self._receive()
        self.body += message.get("body", b"")
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class Replay:
    """A synthetic request with one body of an earlier one, for a client that waits and does not read.

    `sender` is that client.
    """

    def __init__(self, conversation: HandshakeConversation, body: bytes, sender: Sender) -> None:
        self.scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": b"",
            "headers": [
                (b"content-type", b"application/json"),
                (b"accept", b"application/json, text/event-stream"),
                (ID_HEADER, conversation.id.encode("ascii")),
            ],
            IN_SCOPE: replace(sender, call_id=None),
        }
        lend_credential(self.scope, conversation.credential)
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            await anyio.sleep_forever()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Drops the answer."""


def id_in(scope: Scope) -> str | None:
    """The conversation id that a request carries."""
    for name, value in scope["headers"]:
        if name == ID_HEADER:
            return value.decode("latin-1")
    return None


async def accept(conversation: HandshakeConversation, send: Send, status: int = 202) -> None:
    """Answers a notification, or with 200 a DELETE, as the transport does."""
    headers = [
        (b"content-type", b"application/json"),
        (ID_HEADER, conversation.id.encode("ascii")),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Send, status: int, message: str, *, code: int = INVALID_REQUEST, data: object = None) -> None:
    """Answers with a JSON-RPC error that belongs to no request, as the transport does."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))],
        }
    )
    await send({"type": "http.response.body", "body": body})
