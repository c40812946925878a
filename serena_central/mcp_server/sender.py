"""The sender of a message, as data: made by the transport, and all that the adapter knows of transports.

A transport hands a `Sender` to the SDK as the request of each message. Streamable HTTP makes it of headers
(`endpoint.py`); one that carries a single client's messages makes it once.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary, ref

import msgspec
from starlette.requests import Request

from serena_central.core.client_channel import Level
from serena_central.sessions.session import ClientIdentity, Session

IN_SCOPE = "serena_central.sender"
"""Where streamable HTTP keeps the sender of a request: the SDK hands on nothing else of it."""

_CONVERSATION_KEYS = ("sessionId", "threadId")
"""Where clients put their conversation's id into `_meta` (Codex)."""


class ClientInfo(NamedTuple):
    """What a client calls itself, by handshake or by envelope; empty when it does not say."""

    name: str = ""
    version: str = ""


class ClientConnection:
    """What lasts between the messages of one client of the handshake era. Belongs to the event loop's thread."""

    def __init__(self, connection_id: str) -> None:
        self.id = connection_id
        self.session_id = connection_id
        """The session that its requests were last found to belong to."""
        self.roots_folder: str | None = None
        self.version: str | None = None
        """Of the protocol, as negotiated by `initialize`."""
        self.info = ClientInfo()
        self.offered: Mapping[str, Any] = {}
        """The client's capabilities, in wire form."""
        self.subscribed: set[str] = set()
        """URIs of resources of whose changes the client is told."""
        self.log_level: Level | None = None
        """Of log messages that the client has asked for."""

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tells the client something outside of its calls. Here nothing: not every transport has a way to."""


class ClientConnections:
    """Connections by their sessions. A session lasts longer, and does not keep what its ended connection was sent.
    Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Session, ref[ClientConnection]] = WeakKeyDictionary()

    def add(self, session: Session, connection: ClientConnection) -> None:
        self._of[session] = ref(connection)

    def get(self, session: Session) -> ClientConnection | None:
        found = self._of.get(session)
        return None if found is None else found()


def _always(_request: str) -> AbstractContextManager[Any]:
    return nullcontext()


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """What a transport knows of who sent a message; None and empty where nothing was said."""

    credential: str
    explicit_id: str | None = None
    conversation_id: str | None = None
    working_folder: str | None = None
    context: str | None = None
    modes: tuple[str, ...] = ()
    client_pid: int | None = None
    through_hub: bool = False
    call_id: str | None = None
    """A call's own id, the same when a proxy sends it again after a broken connection."""
    trace: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """The caller's trace (W3C Trace Context)."""
    connection: ClientConnection | None = None
    """None in the modern era."""
    while_connected: Callable[[str], AbstractContextManager[Any]] = _always
    """What is done inside, for the request of this id, is cancelled when the client closes the connection of this
    message for good."""


def sender_of(request: object) -> Sender:
    """The sender of a message, by what the SDK calls its request."""
    if isinstance(request, Sender):
        return request
    return cast("Request", request).scope[IN_SCOPE]  # it is nothing else; its abstract class is slow to ask


def identity_of(
    sender: Sender, *, client: ClientInfo, meta: Mapping[str, Any] | None = None, roots_folder: str | None = None
) -> ClientIdentity:
    """Builds the identity of one message."""
    connection = sender.connection
    return ClientIdentity(
        credential=sender.credential,
        era="handshake" if connection else "modern",
        explicit_id=sender.explicit_id,
        transport_id=connection.id if connection else None,
        conversation_id=sender.conversation_id or _conversation_in(meta or {}),
        client_name=client.name,
        client_version=client.version,
        working_folder=sender.working_folder or (connection.roots_folder if connection else roots_folder),
        context=sender.context,
        modes=sender.modes,
        client_pid=sender.client_pid,
        through_hub=sender.through_hub,
    )


def request_of(sender: Sender, request_id: str | int | None) -> str | None:
    """What is the same only when the same request is sent again: the proxy's own id, else the JSON-RPC id within one
    `initialize`. None in the modern era without a proxy: a client that was restarted counts from 1 again."""
    if sender.call_id is not None:
        return f"call {sender.call_id}"
    if sender.connection is not None and request_id is not None:
        return f"{sender.connection.id} {request_id!r}"
    return None


def _conversation_in(meta: Mapping[str, Any]) -> str | None:
    for key in _CONVERSATION_KEYS:
        value = meta.get(key)
        if isinstance(value, str) and value:
            return value
    return None
