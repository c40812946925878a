"""uvicorn's HTTP protocols within the limits of `connections`, with either of its parsers."""

import asyncio
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from serena_central.access.connections import Connection, Connections, Transport, state_with

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
    app_state: dict[str, Any]
    cycle: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.connection = Connection(self.all_connections, cast("Transport", transport))
        self.app_state = state_with(self.app_state, self.connection)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.connection.take(data, super().data_received)
        self.settle()

    def settle(self) -> None:
        self.connection.settle(answering=self.cycle is not None and not self.cycle.response_complete)


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
            super().on_response_complete()
            self.settle()
