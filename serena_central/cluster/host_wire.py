"""The front's way to the project host of one placement: a connection, the calls that are under way on it, and how a
host that is gone or hangs is noticed. It knows no Ray."""

import asyncio
import contextvars
import logging
from collections.abc import Callable
from enum import Enum, auto
from itertools import count

import anyio
import msgspec

from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import (
    CHALLENGE_BYTES,
    MOST_BYTES,
    PROVING_S,
    VERSION,
    FramedConnection,
    HostAddress,
    Kind,
    nonce,
    proof,
    proves,
)
from serena_central.cluster.outcome import value_of
from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import CallCancelled, ClusterError, SerenaCentralError
from serena_central.core.progress import Listener

logger = logging.getLogger(__name__)

LOOKED_AT_S = 1.0
"""How often a connection is looked at while calls are under way. Where nothing has moved since, the host is pinged …"""

SILENT_LOOKS = 6
"""… and after so many looks in a row it counts as hanging. Looks are counted and not seconds: a front that was busy
itself has not listened meanwhile."""

_NUMBERS = 2**32
"""Of calls; they begin again behind that."""

_progress = msgpack_decoder(tuple[str, float | None])

Take = Callable[[bytes], None]
"""Takes a reply, a message: also that of a call whose wait was cancelled. Never waits."""


class Left(Enum):
    """What is known of a host that did not answer."""

    ENDED = auto()
    """Nobody listens where it did, or it hangs."""
    LIVES = auto()
    """It can be reached again: only a connection was lost."""
    UNREACHABLE = auto()
    """It may well live, and serve others; from here no connection could be opened."""


class HostGone(Exception):
    """The host of a placement did not answer. `begun`: it may have begun what it was sent."""

    def __init__(self, why: str, left: Left, *, begun: bool) -> None:
        super().__init__(why)
        self.left = left
        self.begun = begun


class _Call:
    """One that the host has not replied to."""

    def __init__(self, take: Take, on_progress: Listener | None) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.take = take
        self.on_progress = on_progress
        self.context = contextvars.copy_context()
        """The connection's own is that of whoever opened it."""


class HostConnection(FramedConnection):
    """An open connection to a host, for all calls of a front."""

    def __init__(self, secret: bytes) -> None:
        super().__init__()
        self._secret = secret
        self._nonces = (b"", b"")
        self._numbers = count(1)
        self._calls: dict[int, _Call] = {}
        """By their numbers; also those whose wait was cancelled, until their reply comes."""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watch: asyncio.TimerHandle | None = None
        """Runs while calls are under way."""
        self._silent_looks = 0
        self._unsent = 0
        """Bytes, at the last look."""
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

    async def call(self, message: bytes, take: Take, on_progress: Listener | None) -> bytes:
        """The outcome of a run, whose reply `take` has taken. A cancelled wait cancels the run at the host.

        Raises:
            ClusterError: the connection was lost before the reply came.
        """
        number, call = next(self._numbers) % _NUMBERS, _Call(take, on_progress)
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
            self._close_if_retired()

    def retire(self) -> None:
        """Closes it when the host has replied to all calls that are under way."""
        self._retired = True
        self._close_if_retired()

    @property
    def hangs(self) -> bool:
        """Whether it was closed since the host did not answer pings."""
        return self._hangs

    def data_received(self, data: bytes) -> None:
        self._silent_looks = 0  # a long reply over a slow network is no silence
        super().data_received(data)

    def take(self, kind: int, number: int, body: bytes) -> None:
        if not self._proven:
            self._prove(kind, body)
        elif kind == Kind.REPLY:
            self._replied(number, body)
        elif kind == Kind.PROGRESS and (call := self._calls.get(number)) is not None and call.on_progress is not None:
            try:
                call.context.run(call.on_progress, *_progress.decode(body))
            except Exception as error:
                if not isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
                    logger.exception("progress of a call could not be reported")
                    return
                raise ClusterError(f"The host's progress can't be read: {error}.") from error

    def lost(self, why: str) -> None:
        if self._watch is not None:
            self._watch.cancel()
        for waiting in (self._opened, *(call.reply for call in self._calls.values())):
            if not waiting.done():
                waiting.set_exception(ClusterError(f"The connection was lost: {why}."))
        self._calls.clear()
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # nobody may be waiting for it any more

    def _prove(self, kind: int, body: bytes) -> None:
        if kind == Kind.CHALLENGE and len(body) == CHALLENGE_BYTES and not self._nonces[0]:
            if body[0] != VERSION:
                raise ClusterError(
                    f"it speaks version {body[0]} of the frames, not {VERSION}: "
                    "run the same version of serena-central on all machines"
                )
            self._nonces = (body, nonce())
            self.send(Kind.PROOF, 0, self._nonces[1] + proof(self._secret, b"front", *self._nonces))
        elif kind == Kind.PROVEN and self._nonces[0] and proves(body, self._secret, b"host", *self._nonces):
            self._proven = True
            if not self._opened.done():
                self._opened.set_result(None)
        else:
            raise ClusterError("what listens there is not the project host")

    def _replied(self, number: int, outcome: bytes) -> None:
        call = self._calls.pop(number, None)
        if call is None:
            return
        try:
            call.context.run(_taken, call.take, outcome)
        except Exception:
            logger.exception("a reply could not be taken")  # whoever waits for it meets the same error
        else:
            self.send(Kind.TAKEN, number)
        if not call.reply.done():
            call.reply.set_result(outcome)
        self._close_if_retired()

    def _close_if_retired(self) -> None:
        if self._retired and not self._calls:
            self.close()

    def _look(self) -> None:
        self._watch = None
        if not self._calls:
            return
        unsent, before = self.unsent_bytes, self._unsent
        self._unsent = unsent
        if unsent < before:
            self._silent_looks = 0
        if self._silent_looks >= SILENT_LOOKS:
            self._hangs = True
            self.close("it does not answer")
            return
        if self._silent_looks:
            self.send(Kind.PING)
        self._silent_looks += 1
        self._watch = asyncio.get_running_loop().call_later(LOOKED_AT_S, self._look)


class _Opening:
    """An attempt to open a connection, for all who wait for one."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.failed: HostGone | None = None


class HostWire:
    """Sends runs to the host of one placement."""

    def __init__(self, placement: Placement, address: HostAddress | None) -> None:
        """Without an address nobody answers there."""
        self.placement = placement
        self._address = address
        self._connection: HostConnection | None = None
        self._opening: _Opening | None = None
        self._retired = False

    async def send(self, call: str, message: bytes, take: Take, on_progress: Listener | None) -> None:
        """Sends a run; returns when `take` has taken its reply.

        Raises:
            HostGone: the host ended, hangs or can't be reached.
            ClusterError: the message is too long, or the host failed.
        """
        if len(message) > MOST_BYTES:
            raise ClusterError(f"A call of {len(message)} bytes is too long for a project host.")
        connection = await self._connected()
        try:
            outcome = await connection.call(message, take, on_progress)
        except ClusterError as error:
            logger.info("call %s: %s", call, error)
            left = Left.ENDED if connection.hangs else await self._left()
            raise HostGone(str(error), left, begun=True) from error
        try:
            value_of(outcome)
        except CallCancelled as error:  # not by whoever waits here
            raise HostGone("it is ending", Left.ENDED, begun=False) from error

    def retire(self) -> None:
        """Calls that are under way get their replies; nothing else may be sent."""
        self._retired = True
        if self._connection is not None:
            self._connection.retire()

    async def _connected(self) -> HostConnection:
        """Single flight: an attempt that fails fails for all who wait for it."""
        while self._connection is None or self._connection.closed:
            if self._address is None:
                raise HostGone("it does not answer", Left.ENDED, begun=False)
            if (opening := self._opening) is not None:
                await opening.ended.wait()
                if opening.failed is not None:
                    raise HostGone(str(opening.failed), opening.failed.left, begun=False) from opening.failed
                continue
            opening = self._opening = _Opening()
            try:
                self._connection = await _opened(self._address)
            except HostGone as gone:
                opening.failed = gone
                raise
            finally:
                self._opening = None
                opening.ended.set()
            if self._retired:
                self._connection.retire()
                raise HostGone("it was replaced", Left.ENDED, begun=False)
        return self._connection

    async def _left(self) -> Left:
        try:
            await self._connected()
        except HostGone as gone:
            return gone.left
        return Left.LIVES


async def _opened(address: HostAddress) -> HostConnection:
    """Connects to a host; each side has proved then that it knows the secret.

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
    except ConnectionRefusedError as error:
        raise HostGone(f"nobody listens at {address.host}:{address.port}", Left.ENDED, begun=False) from error
    except (OSError, ClusterError) as error:  # TimeoutError is one
        why = str(error).rstrip(".") or "it does not answer"
        raise HostGone(f"{address.host}:{address.port}: {why}", Left.UNREACHABLE, begun=False) from error
    return connection


def _taken(take: Take, outcome: bytes) -> None:
    """Errors of the host's are no reply: whoever waits for it raises them."""
    try:
        reply = value_of(outcome)
    except SerenaCentralError:
        return
    take(reply)
