"""The host's end of the connections from fronts: takes runs, and sends their outcomes, progress and signs of life."""

import asyncio
import logging
import math
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream

from serena_central.cluster.frames import (
    MOST_BYTES,
    NONCE_BYTES,
    PROVING_S,
    VERSION,
    FramedConnection,
    HostAddress,
    Kind,
    nonce,
    proof,
    proves,
)
from serena_central.cluster.outcome import failed_outcome, good_outcome
from serena_central.core.errors import CallCancelled, ClusterError, SerenaCentralError
from serena_central.core.progress import Listener

logger = logging.getLogger(__name__)


class RunReply(NamedTuple):
    """What a run came to. `settle` is called once: whether the front has taken it."""

    message: bytes
    settle: Callable[[bool], None]


Run = Callable[[bytes, Listener], Awaitable[RunReply]]
"""Carries out a run, a message. One that is cancelled replies anyway: with what it has changed."""

MOST_UNPROVEN = 32
"""Connections that have not shown the secret; where there are more the oldest is closed. Each lasts PROVING_S at
most."""

MOST_UNSENT_BYTES = 512 * 1024 * 1024
"""What a front that does not read may leave unsent; then its connection is closed."""

NEWS_UNSENT_BYTES = 64 * 1024
"""Progress is dropped while more than that is unsent."""


@asynccontextmanager
async def listening(run: Run, host: str, ports: Iterable[int] = (0,)) -> AsyncGenerator[HostAddress]:
    """Takes runs at an address of this machine, and at it alone, while the block is open; `ports` are tried in turn.
    Runs that are under way at its end are cancelled.

    Raises:
        ClusterError: no port is free.
    """
    loop, unproven = asyncio.get_running_loop(), dict[_FrontConnection, None]()
    secret, connections = secrets.token_bytes(32), set[_FrontConnection]()
    begin, begun = anyio.create_memory_object_stream[_Begun](math.inf)

    def made() -> _FrontConnection:
        return _FrontConnection(run, secret, begin, connections, unproven)

    async def start_runs() -> None:
        async for connection, number, message in begun:
            tasks.start_soon(connection.carry_out, number, message)

    server = await _bound(loop, made, host, ports)
    try:
        async with begin, begun, anyio.create_task_group() as tasks:
            tasks.start_soon(start_runs)
            try:
                await server.start_serving()
                yield HostAddress(host, server.sockets[0].getsockname()[1], secret)
            finally:
                server.close()
                tasks.cancel_scope.cancel()
    finally:  # when all runs have replied
        for connection in list(connections):
            connection.close_when_sent()


async def _bound(
    loop: asyncio.AbstractEventLoop, made: "Callable[[], _FrontConnection]", host: str, ports: Iterable[int]
) -> asyncio.Server:
    problem: OSError | None = None
    for port in ports:
        try:
            return await loop.create_server(made, host, port, start_serving=False)
        except OSError as error:
            problem = error
    raise ClusterError(f"A project host can't listen on {host}: {problem or 'no port is left for it'}.") from problem


_Begun = tuple["_FrontConnection", int, bytes]
"""A run that arrived. Connections hand them over: they can't start tasks, since outside of tasks anyio does not know
Ray's event loop."""


class _FrontConnection(FramedConnection):
    """A connection that a front has opened."""

    def __init__(
        self,
        run: Run,
        secret: bytes,
        begin: "MemoryObjectSendStream[_Begun]",
        connections: "set[_FrontConnection]",
        unproven: "dict[_FrontConnection, None]",
    ) -> None:
        super().__init__()
        self._run = run
        self._secret = secret
        self._begin = begin
        self._connections = connections
        self._unproven = unproven
        self._challenge = bytes([VERSION]) + nonce()
        self._runs: dict[int, anyio.CancelScope | None] = {}
        """Numbers of runs → by what they are cancelled; None until their task has begun."""
        self._settling: dict[int, Callable[[bool], None]] = {}
        """Numbers of runs whose replies are sent, and perhaps not taken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.add(self)
        if len(self._unproven) >= MOST_UNPROVEN:  # not the newest: a front proves itself at once
            next(iter(self._unproven)).close("too many connections have not shown the secret yet")
        self._unproven[self] = None
        asyncio.get_running_loop().call_later(PROVING_S, self._end_of_proving)
        self.send(Kind.CHALLENGE, 0, self._challenge)

    def take(self, kind: int, number: int, body: bytes) -> None:
        if not self._proven:
            self._prove(kind, body)
        elif kind == Kind.RUN:
            self._runs[number] = None
            self._begin.send_nowait((self, number, body))
        elif kind == Kind.CANCEL:
            self._cancel(number)
        elif kind == Kind.TAKEN:
            if (settle := self._settling.pop(number, None)) is not None:
                settle(True)
        elif kind == Kind.PING:
            self.send(Kind.PONG)

    def lost(self, why: str) -> None:
        self._unproven.pop(self, None)
        self._connections.discard(self)
        settling, self._settling = self._settling, {}
        for settle in settling.values():
            settle(False)
        if self._runs:
            logger.warning("the connection of a front with %d runs under way was lost: %s", len(self._runs), why)
        for number in list(self._runs):
            self._cancel(number)

    def _cancel(self, number: int) -> None:
        scope = self._runs.pop(number, None)
        if scope is not None:
            scope.cancel()

    def _prove(self, kind: int, body: bytes) -> None:
        theirs, given = body[:NONCE_BYTES], body[NONCE_BYTES:]
        if kind != Kind.PROOF or not proves(given, self._secret, b"front", self._challenge, theirs):
            raise ClusterError("It does not know the secret of this host.")
        self._proven = True
        self._unproven.pop(self, None)
        self.send(Kind.PROVEN, 0, proof(self._secret, b"host", self._challenge, theirs))

    def _end_of_proving(self) -> None:
        if not self._proven:
            self.close("it has not shown the secret in time")

    async def carry_out(self, number: int, message: bytes) -> None:
        """Runs it, and replies, whatever becomes of it."""

        def report(text: str, part: float | None) -> None:
            if self.unsent_bytes < NEWS_UNSENT_BYTES:
                self.send(Kind.PROGRESS, number, msgspec.msgpack.encode((text, part)))

        outcome, reply = failed_outcome(CallCancelled("The call was cancelled.")), None
        if number in self._runs:  # else it was cancelled before it began
            with anyio.CancelScope() as self._runs[number]:
                outcome, reply = await self._carried_out(message, report)
            self._runs.pop(number, None)
        if self.closed:
            if reply is not None:
                reply.settle(False)
            return
        if reply is not None:
            self._settling[number] = reply.settle
        self.send(Kind.REPLY, number, outcome)
        if self.unsent_bytes > MOST_UNSENT_BYTES:
            self.close("it does not read")

    async def _carried_out(self, message: bytes, report: Listener) -> tuple[bytes, RunReply | None]:
        try:
            reply = await self._run(message, report)
        except SerenaCentralError as error:
            return failed_outcome(error), None
        except Exception as error:
            logger.exception("a run failed")
            return failed_outcome(ClusterError(f"The project host failed: {type(error).__name__}: {error}")), None
        outcome = good_outcome(reply.message)
        if len(outcome) > MOST_BYTES:
            reply.settle(False)
            return failed_outcome(ClusterError(f"The answer is too long: {len(outcome)} bytes.")), None
        return outcome, reply

    def close_when_sent(self) -> None:
        if self._transport is not None:
            self._transport.close()


def ports_of_hosts(variable: str) -> Iterable[int]:
    """The ports that an environment variable, `FIRST-LAST`, leaves to project hosts; any where it is not set."""
    first, _, last = os.environ.get(variable, "0-0").partition("-")
    return range(int(first), int(last) + 1)
