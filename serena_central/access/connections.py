"""Limits connections before authentication: size of a head, time, and number of connections.

An authenticated connection is one on which `auth` has accepted a request by token or login; all others are held to
short deadlines, and when there are too many of them the oldest one is closed. `Connection` knows bytes, phases
and time; uvicorn's protocols, with either of its parsers, tell it what comes.
"""

import asyncio
import math
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import anyio.to_thread
import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from serena_central.access.coalescing import CoalescingTransport
from serena_central.core.peers import is_another_users
from serena_central.core.periodic import aligned
from serena_central.core.rest import RESTING_S, rest

HEAD_BYTES = 64 * 1024
"""A request's head, from its method to the empty line; as much may a body have in trailers or chunk lines at a time."""

MOST_HEADERS = 100

MOST_UNAUTHENTICATED = 512
"""More than come back at once after a restart, at some 20 KB each."""

DESCRIPTORS_SHARE = 4
"""Unauthenticated connections take at most this fraction (1/n) of the descriptors."""

CHECK_S = 1.0
"""Between two looks at deadlines, as long as there are unauthenticated connections …"""

IDLE_CHECK_S = 15.0
"""… and else, unless the process rests: an authenticated connection has deadlines of half a minute, and seldom."""

HELD_UP_S = 3.0
"""A look that comes so much too late shows that this process was stopped or got no CPU time."""

LINGER_S = 0.08
"""How long a stopping server reads from idle connections: what was sent before its clients could know is answered.
uvicorn waits 0.1 s in any case."""

_STATE_KEY = "serena_central.connection"

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 45\r\nconnection: close\r\n\r\nA request's head may have 65536 bytes in all."
)


class Deadlines(NamedTuple):
    """How long a connection may wait for what comes next, in seconds."""

    head_s: float = 10.0
    """From accept, or from the first byte of a later request, to the end of its head."""
    answer_s: float = 10.0
    """For an unauthenticated caller to send its body and to take its answer."""
    idle_s: float = 5.0
    """Between two requests, unauthenticated; else it is uvicorn's keep-alive timeout."""
    body_pause_s: float = 30.0
    """Between two pieces of an authenticated request's body."""
    body_s: float = 600.0
    """For such a body as a whole: 8 MiB at 14 KB/s."""


class Transport(Protocol):
    """What is needed of asyncio's."""

    def write(self, data: bytes, /) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def is_closing(self) -> bool: ...


class Phase(Enum):
    """What a connection waits for."""

    REQUEST = auto()
    """The first byte of a request."""
    HEAD = auto()
    """The rest of a head."""
    BODY = auto()
    """The rest of a body, whether or not it is still of use."""
    ANSWER = auto()
    """Us."""
    CLOSED = auto()
    """That its last answer is taken."""


class Connections:
    """All connections of one server. Belongs to the event loop's thread."""

    def __init__(
        self, deadlines: Deadlines | None = None, *, descriptors: float = math.inf, clock: Callable[[], float]
    ) -> None:
        """`descriptors` is how many this process may have; `clock` is monotonic."""
        self.deadlines = deadlines or Deadlines()
        self.clock = clock
        self.most_unauthenticated = int(min(MOST_UNAUTHENTICATED, descriptors / DESCRIPTORS_SHARE))
        self.closed_for_room = 0
        """How many were closed because there were too many."""
        self._due_at = clock()
        """When it has to be looked at deadlines again."""
        self.on_due: Callable[[], None] = _ignore
        """Called when that is earlier than `close_late` said."""
        self._all: dict[Connection, None] = {}
        self._unauthenticated: dict[Connection, None] = {}
        """The oldest first."""

    def add(self, connection: "Connection") -> None:
        if len(self._unauthenticated) >= self.most_unauthenticated:
            waiting = (one for one in self._unauthenticated if one.phase is not Phase.ANSWER)
            oldest = next(waiting, next(iter(self._unauthenticated)))
            del self._unauthenticated[oldest]
            self.closed_for_room += 1
            oldest.abort()
        self._all[connection] = None
        self._unauthenticated[connection] = None
        due_at = self.clock() + CHECK_S
        if due_at < self._due_at:
            self._due_at = due_at
            self.on_due()

    def authenticate(self, connection: "Connection") -> None:
        self._unauthenticated.pop(connection, None)

    def remove(self, connection: "Connection") -> None:
        self._all.pop(connection, None)
        self._unauthenticated.pop(connection, None)

    def close_late(self) -> float:
        """Closes what has missed its deadline; returns after how many seconds it is to be called again."""
        now = self.clock()
        was_held_up = now - self._due_at > HELD_UP_S
        if not was_held_up:  # else what came meanwhile has not been read yet
            for connection in [one for one in self._all if one.deadline <= now]:
                connection.abort()
        idle_s = RESTING_S if rest.is_resting else IDLE_CHECK_S
        after_s = aligned(CHECK_S if self._unauthenticated else idle_s, now)
        self._due_at = now + after_s
        return after_s

    def count(self) -> dict[str, int]:
        """How many there are, for statistics."""
        authenticated = sum(one.authenticated for one in self._all)
        return {
            "authenticated": authenticated,
            "unauthenticated": len(self._all) - authenticated,
            "closed_for_room": self.closed_for_room,
        }


def _ignore() -> None:
    pass


class Connection:
    """One connection's phase and deadline. Its protocol reports each event, then calls `settle`."""

    __slots__ = (
        "_body_since",
        "_connections",
        "_outside",
        "_transport",
        "authenticated",
        "deadline",
        "in_body",
        "is_another_users",
        "phase",
    )

    def __init__(self, connections: Connections, transport: Transport) -> None:
        self._connections = connections
        self._transport = transport
        self._outside = 0
        """Bytes since the head began, or since the last byte of the body."""
        self.in_body = False
        """Whether the rest of a request's body is to come."""
        self._body_since = 0.0
        self.is_another_users: bool | None = None
        """What `peers` says of who made it; None: nobody has asked."""
        self.authenticated = False
        self.phase = Phase.REQUEST
        self.deadline = connections.clock() + connections.deadlines.head_s
        connections.add(self)

    def take(self, data: bytes, feed: Callable[[bytes], None]) -> None:
        """Gives the parser no more of a head than it may have. What it finds there comes back by the two methods
        below."""
        while data and not self._transport.is_closing():
            piece = data[: HEAD_BYTES - self._outside]
            data = data[len(piece) :]
            self._outside += len(piece)
            feed(piece)
            if self._outside >= HEAD_BYTES:
                self._refuse_head()

    def body_goes_on(self) -> None:
        """The head is complete, or another piece of the body came."""
        self._outside = 0
        if not self.in_body:
            self.in_body = True
            self._body_since = self._connections.clock()

    def request_ended(self) -> None:
        self._outside = 0
        self.in_body = False

    def authenticate(self) -> None:
        """The access check has accepted a request: the caller is authenticated from now on."""
        if not self.authenticated:
            self.authenticated = True
            self._connections.authenticate(self)
            self.deadline = math.inf
            self.settle(answering=True)

    def settle(self, *, answering: bool) -> None:
        """Takes note of where the connection is now. `answering`: a request's answer is not complete."""
        before, self.phase = self.phase, self._phase(answering=answering)
        limits = self._connections.deadlines
        if self.phase is Phase.BODY and self.authenticated:
            now = self._connections.clock()
            self.deadline = min(now + limits.body_pause_s, self._body_since + limits.body_s)
        elif self.phase is not before:
            self.deadline = self._deadline(limits)

    def _phase(self, *, answering: bool) -> Phase:
        if self._transport.is_closing():
            return Phase.CLOSED
        if self.in_body:
            return Phase.BODY
        if answering:
            return Phase.ANSWER
        return Phase.HEAD if self._outside else Phase.REQUEST

    def _deadline(self, limits: Deadlines) -> float:
        now = self._connections.clock()
        match self.phase:
            case Phase.HEAD:
                return min(self.deadline, now + limits.head_s)
            case Phase.CLOSED:
                return min(self.deadline, now + limits.answer_s)
            case _ if self.authenticated:
                return math.inf
            case Phase.REQUEST:
                return now + limits.idle_s
            case _:
                return now + limits.answer_s

    def _refuse_head(self) -> None:
        if self.phase in (Phase.BODY, Phase.ANSWER):
            self.abort()  # another answer may be on its way
        elif not self._transport.is_closing():
            self._transport.write(_TOO_LARGE)
            self._transport.close()

    def abort(self) -> None:
        """Closes without waiting for what the other end has not taken yet."""
        self._transport.abort()

    def lost(self) -> None:
        self._connections.remove(self)


def state_with(state: dict[str, Any], connection: Connection) -> dict[str, Any]:
    """The ASGI state by which requests know their connection."""
    return {**state, _STATE_KEY: connection}


async def comes_from_another_user(scope: Scope) -> bool:
    """Whether another user of this machine made the connection of a request, as far as can be known. Looked up once for
    a connection."""
    connection: Connection | None = scope.get("state", {}).get(_STATE_KEY)
    if connection is not None and connection.is_another_users is not None:
        return connection.is_another_users
    found = await anyio.to_thread.run_sync(is_another_users, scope.get("client"), scope.get("server"))
    if connection is not None:
        connection.is_another_users = found
    return found


def authenticate_connection(scope: Scope) -> None:
    """Marks the connection of a request that the access check has accepted."""
    connection = scope.get("state", {}).get(_STATE_KEY)
    if connection is not None:
        connection.authenticate()


try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:  # only CPython has httptools
    HttpToolsProtocol = None

MOST_PIPELINED = 16
"""Requests that may wait for the answer to one before them. 64 KB could hold 3,600, of some 2 KB each once parsed."""


class _Bounded(asyncio.Protocol):
    """What both have in common; stands before one of uvicorn's own classes."""

    all_connections: ClassVar[Connections]
    connection: Connection
    transport: asyncio.Transport
    coalescing: CoalescingTransport
    """The same."""
    loop: asyncio.AbstractEventLoop
    app_state: dict[str, Any]
    tasks: set[asyncio.Task[None]]
    cycle: Any
    is_ending = False
    """Whether the answer to what comes now is its last."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.coalescing = CoalescingTransport(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", self.coalescing))
        self.connection = Connection(self.all_connections, self.coalescing)
        self.app_state = state_with(self.app_state, self.connection)

    def eof_received(self) -> None:
        """Who sends a request and nothing more gets its answer: behind this the connection is closed."""
        self.coalescing.flush()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.connection.take(data, super().data_received)
        self.settle()

    def send_answer(self) -> None:
        """Sends an answer that is complete, sooner than in the loop's next turn. Where other requests are being
        answered they come first: each answer that is sent has its client take a CPU."""
        if len(self.tasks) <= 1:
            self.coalescing.flush()

    def settle(self) -> None:
        if self.is_answering and self.is_ending:
            self.cycle.keep_alive = False
        self.connection.settle(answering=self.is_answering)

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def shutdown(self) -> None:
        """The server stops. uvicorn's own closes an idle connection at once, and so loses a request on its way."""
        self.is_ending = True
        self.settle()
        self.loop.call_later(LINGER_S, self._close_idle)

    def _close_idle(self) -> None:
        if not self.is_answering:
            self.transport.close()


class BoundedH11(_Bounded, H11Protocol):
    """With h11, which bounds trailers and chunk lines itself, and reads no request before the last one is answered."""

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.SEND_BODY:
            self.connection.body_goes_on()
        elif self.connection.in_body or self.conn.their_state is not h11.IDLE:
            self.connection.request_ended()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()  # an answer is on its way, or went

    def on_response_complete(self) -> None:
        self.send_answer()
        super().on_response_complete()
        self.settle()


def bounded_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """For uvicorn's `http`: the fastest protocol that there is, whose connections are those of `connections`."""
    fastest = BoundedH11 if HttpToolsProtocol is None else BoundedHttpTools
    return cast("type[asyncio.Protocol]", type(fastest.__name__, (fastest,), {"all_connections": connections}))


if HttpToolsProtocol is not None:

    class BoundedHttpTools(_Bounded, HttpToolsProtocol):
        """With httptools, which bounds nothing."""

        def on_headers_complete(self) -> None:
            if len(self.pipeline) >= MOST_PIPELINED:
                self.transport.abort()
                raise ValueError("too many requests at once")  # stops the parser
            super().on_headers_complete()
            self.headers = []  # trailers would come into those that the guard has yet to see
            self.connection.body_goes_on()

        def on_body(self, body: bytes) -> None:
            self.connection.body_goes_on()
            super().on_body(body)

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self.connection.request_ended()

        def send_400_response(self, msg: str) -> None:
            if self.transport.is_closing():
                return
            if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
                self.transport.abort()  # it would come into the middle of an answer
            else:
                super().send_400_response(msg)

        def on_response_complete(self) -> None:
            self.send_answer()
            super().on_response_complete()
            self.settle()
