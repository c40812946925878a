"""The front's way to the project host of one placement: a connection, the calls that are under way on it, and how a
host that is gone or hangs is noticed. It knows no Ray."""

import asyncio
import logging
from itertools import count

import anyio
import msgspec

from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import (
    NONCE_BYTES,
    PROVING_S,
    FramedConnection,
    HostAddress,
    Kind,
    nonce,
    proof,
    proves,
)
from serena_central.cluster.outcome import value_of
from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import ClusterError, HostUnavailable
from serena_central.core.progress import Listener

logger = logging.getLogger(__name__)

LOOKED_AT_S = 1.0
"""How often a connection is looked at while calls are under way. Where nothing has arrived since, the host is
pinged …"""

SILENT_LOOKS = 6
"""… and after so many looks in a row it counts as hanging. Looks are counted and not seconds: a front that was busy
itself has not listened meanwhile."""

_progress = msgpack_decoder(tuple[str, float | None])


class HostGone(Exception):
    """The host of a placement did not answer. `begun`: it may have begun what it was sent. `lives`: it can be reached
    again, and only the connection was lost."""

    def __init__(self, why: str, *, begun: bool = True, lives: bool = False) -> None:
        super().__init__(why)
        self.begun = begun
        self.lives = lives


class _Call:
    """One that waits for its reply."""

    def __init__(self, on_progress: Listener | None) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress


class HostConnection(FramedConnection):
    """An open connection to a host, for all calls of a front."""

    def __init__(self, secret: bytes) -> None:
        super().__init__()
        self._secret = secret
        self._nonces = (b"", b"")
        self._numbers = count(1)
        self._calls: dict[int, _Call] = {}
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watch: asyncio.TimerHandle | None = None
        """Runs while calls are under way."""
        self._silent_looks = 0
        self._hangs = False
        self._retired = False

    async def prove(self) -> None:
        """Returns when each side has shown the other that it has the secret.

        Raises:
            ClusterError: the connection was lost, or somebody else listens there.
        """
        try:
            await self._opened
        finally:
            if not self._proven:
                self.close()

    async def call(self, message: bytes, on_progress: Listener | None) -> bytes:
        """The outcome of a run. A cancelled wait cancels the run at the host.

        Raises:
            ClusterError: the connection was lost before the reply came.
        """
        number, call = next(self._numbers), _Call(on_progress)
        if self.closed:
            raise ClusterError("The connection was lost.")
        self._calls[number] = call
        self.send(Kind.RUN, number, message)
        if self._watch is None:
            self._silent_looks = 0
            self._watch = asyncio.get_running_loop().call_later(LOOKED_AT_S, self._look)
        try:
            return await call.reply
        except asyncio.CancelledError:
            self.send(Kind.CANCEL, number)
            raise
        finally:
            self._calls.pop(number, None)
            if self._retired and not self._calls:
                self.close()

    def retire(self) -> None:
        """Closes it when the calls that are under way have their replies."""
        self._retired = True
        if not self._calls:
            self.close()

    @property
    def hangs(self) -> bool:
        """Whether it was closed since the host did not answer pings."""
        return self._hangs

    def take(self, kind: int, number: int, body: bytes) -> None:
        self._silent_looks = 0
        if not self._proven:
            self._prove(kind, body)
            return
        call = self._calls.get(number)
        if call is None:  # a pong, or a late frame of a call that was cancelled
            return
        if kind == Kind.REPLY and not call.reply.done():
            call.reply.set_result(body)
        elif kind == Kind.PROGRESS and call.on_progress is not None:
            try:
                text, part = _progress.decode(body)
            except msgspec.DecodeError as error:
                raise ClusterError(f"The host's progress can't be read: {error}.") from error
            call.on_progress(text, part)

    def lost(self, why: str) -> None:
        if self._watch is not None:
            self._watch.cancel()
        for waiting in (self._opened, *(call.reply for call in self._calls.values())):
            if not waiting.done():
                waiting.set_exception(ClusterError(f"The connection was lost: {why}"))
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # nobody may be waiting for it any more

    def _prove(self, kind: int, body: bytes) -> None:
        if kind == Kind.CHALLENGE and len(body) == NONCE_BYTES and not self._nonces[0]:
            self._nonces = (body, nonce())
            self.send(Kind.PROOF, 0, self._nonces[1] + proof(self._secret, b"front", *self._nonces))
        elif kind == Kind.PROVEN and self._nonces[0] and proves(body, self._secret, b"host", *self._nonces):
            self._proven = True
            if not self._opened.done():
                self._opened.set_result(None)
        else:
            raise ClusterError("What listens there is not the project host.")

    def _look(self) -> None:
        self._watch = None
        if not self._calls:
            return
        if self._silent_looks >= SILENT_LOOKS:
            self._hangs = True
            self.close("it does not answer")
            return
        if self._silent_looks:
            self.send(Kind.PING)
        self._silent_looks += 1
        self._watch = asyncio.get_running_loop().call_later(LOOKED_AT_S, self._look)


class HostWire:
    """Sends runs to the host of one placement."""

    def __init__(self, placement: Placement, address: HostAddress | None) -> None:
        """Without an address nobody answers there."""
        self.placement = placement
        self._address = address
        self._connection: HostConnection | None = None
        self._opening = anyio.Lock()

    async def send(self, call: str, message: bytes, on_progress: Listener | None) -> bytes:
        """The reply to a run.

        Raises:
            HostGone: the host ended, hangs or can't be reached.
        """
        connection = await self._connected()
        try:
            outcome = await connection.call(message, on_progress)
        except ClusterError as error:
            logger.info("call %s: %s", call, error)
            raise HostGone(str(error), lives=not connection.hangs and await self._answers()) from error
        try:
            return value_of(outcome)
        except HostUnavailable as error:  # it has no root yet, or not any more
            raise HostGone(str(error), begun=False) from error

    def retire(self) -> None:
        """Calls that are under way get their replies."""
        if self._connection is not None:
            self._connection.retire()

    async def _connected(self) -> HostConnection:
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection
        async with self._opening:
            if self._connection is None or self._connection.closed:
                if self._address is None:
                    raise HostGone("it does not answer", begun=False)
                self._connection = await _opened(self._address)
            return self._connection

    async def _answers(self) -> bool:
        try:
            await self._connected()
        except HostGone:
            return False
        return True


async def _opened(address: HostAddress) -> HostConnection:
    """
    Raises:
        HostGone: nobody answers there, or somebody else.
    """
    loop = asyncio.get_running_loop()
    try:
        with anyio.fail_after(PROVING_S):
            _, connection = await loop.create_connection(
                lambda: HostConnection(address.secret), address.host, address.port
            )
            await connection.prove()
    except (OSError, ClusterError) as error:  # TimeoutError is one
        raise HostGone(f"{address!r} can't be reached: {error or 'it does not answer'}", begun=False) from error
    return connection
