"""A front's connection to a project host: real sockets on loopback, without Ray."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

import anyio
import anyio.lowlevel
import msgspec
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from serena_central.cluster import frames, host_wire
from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import HEAD, HostAddress, Kind
from serena_central.cluster.host_wire import HostGone, HostWire, Left
from serena_central.cluster.run_listener import MOST_UNPROVEN, Run, RunReply, listening
from serena_central.core.errors import ClusterError, SerenaCentralError, UnknownProject
from serena_central.core.progress import Listener

pytestmark = pytest.mark.anyio

Closing = Callable[[], Awaitable[None]]

PLACEMENT = Placement(root="/src/shop", epoch=1, node="a", host="host-1")


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Servers run on uvloop, whose transports are their own; hosts on either."""
    return "asyncio", {"use_uvloop": request.param}


class Host:
    """Answers with what it was sent; `held` runs wait until they are let go."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go_on = anyio.Event()
        self.cancelled = anyio.Event()
        self.settled: list[tuple[bytes, bool]] = []
        self.settles = anyio.Event()

    async def run(self, message: bytes, report: Listener) -> RunReply:
        try:
            reply = await self.reply_to(message, report)
        except anyio.get_cancelled_exc_class():
            reply = b"cancelled"  # what was changed until then

        def settle(taken: bool) -> None:
            self.settled.append((message, taken))
            self.settles.set()

        return RunReply(reply, settle)

    async def reply_to(self, message: bytes, report: Listener) -> bytes:
        if message == b"held":
            self.begun.set()
            try:
                await self.go_on.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
        if message == b"reports":
            report("a half", 0.5)
            report("all", None)
        if message == b"refused":
            raise UnknownProject("shop", [])
        if message == b"broken":
            raise ZeroDivisionError("by zero")
        return b"reply to " + message


async def sent(wire: HostWire, message: bytes, on_progress: Listener | None = None) -> bytes:
    replies: list[bytes] = []
    await wire.send("1", message, replies.append, on_progress)
    (reply,) = replies
    return reply


@asynccontextmanager
async def wired(run: Run) -> AsyncGenerator[tuple[HostWire, HostAddress]]:
    async with listening(run, "127.0.0.1") as address:
        wire = HostWire(PLACEMENT, address)
        yield wire, address
        wire.retire()


async def test_runs_are_answered_each_by_its_own_reply_however_many_are_under_way() -> None:
    host, replies = Host(), dict[int, bytes]()

    async def ask(wire: HostWire, number: int) -> None:
        replies[number] = await sent(wire, b"%d" % number * 50_000)

    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(40):
                    tasks.start_soon(ask, wire, number)
    assert replies == {number: b"reply to " + b"%d" % number * 50_000 for number in range(40)}


async def test_progress_is_heard_while_the_run_lasts_and_errors_come_as_they_were_raised() -> None:
    heard: list[tuple[str, float | None]] = []
    async with wired(Host().run) as (wire, _):
        with anyio.fail_after(30):
            await sent(wire, b"reports", lambda text, part: heard.append((text, part)))
            with pytest.raises(UnknownProject):
                await sent(wire, b"refused")
            with pytest.raises(SerenaCentralError, match="ZeroDivisionError: by zero"):
                await sent(wire, b"broken")
            assert await sent(wire, b"next") == b"reply to next"
    assert heard == [("a half", 0.5), ("all", None)]


async def test_a_cancelled_wait_cancels_the_run_and_no_other() -> None:
    host = Host()
    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sent, wire, b"held")
                await host.begun.wait()
                tasks.cancel_scope.cancel()
            await host.cancelled.wait()
            assert await sent(wire, b"next") == b"reply to next"


@asynccontextmanager
async def standing_between(handle: Callable[[SocketStream], Awaitable[None]]) -> AsyncGenerator[tuple[int, Closing]]:
    """A program at a port of its own, where a front expects its host; and what ends its listening."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def serve() -> None:
        try:
            await listener.serve(handled)
        except* anyio.ClosedResourceError:
            pass

    async def handled(front: SocketStream) -> None:
        async with front:
            await handle(front)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield listener.extra(SocketAttribute.local_port), listener.aclose
        tasks.cancel_scope.cancel()


async def copied(source: SocketStream, sink: SocketStream, size: int = 1000, pause_s: float = 0.0) -> None:
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await sink.send(await source.receive(size))
            await anyio.sleep(pause_s)


async def gone(wire: HostWire, message: bytes = b"held") -> HostGone:
    with pytest.raises(HostGone) as raised:
        await sent(wire, message, lambda _text, _part: None)
    return raised.value


async def while_held(host: Host, wire: HostWire, then: Callable[[], Awaitable[None]]) -> HostGone:
    found: list[HostGone] = []

    async def wait() -> None:
        found.append(await gone(wire))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await host.begun.wait()
            await then()
    return found[0]


async def test_a_host_that_is_gone_is_noticed_at_once_by_those_who_wait() -> None:
    host = Host()
    async with wired(host.run) as (_, address):
        streams: list[SocketStream] = []

        async def process(front: SocketStream) -> None:
            """Stands for the host's process, until it is killed."""
            async with await anyio.connect_tcp(address.host, address.port) as up, anyio.create_task_group() as tasks:
                streams.extend((front, up))
                tasks.start_soon(copied, front, up)
                tasks.start_soon(copied, up, front)

        async with standing_between(process) as (port, close):
            wire = HostWire(PLACEMENT, HostAddress("127.0.0.1", port, address.secret))

            async def kill() -> None:
                await close()
                for stream in streams:
                    await anyio.aclose_forcefully(stream)

            lost = await while_held(host, wire, kill)
            assert (lost.begun, lost.left) == (True, Left.ENDED)
            await host.cancelled.wait()
            again = await gone(wire)
            assert (again.begun, again.left) == (False, Left.ENDED)


async def test_a_connection_that_breaks_is_told_from_a_host_that_ended() -> None:
    host = Host()
    async with wired(host.run) as (wire, _):

        async def cut() -> None:
            connection = wire._connection
            assert connection is not None
            assert connection._transport is not None
            connection._transport.abort()

        lost = await while_held(host, wire, cut)
        assert (lost.begun, lost.left) == (True, Left.LIVES)
        with anyio.fail_after(30):
            await host.cancelled.wait()
            assert await sent(wire, b"next") == b"reply to next"


async def test_a_host_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_wire, "LOOKED_AT_S", 0.02)
    host = Host()
    async with wired(host.run) as (wire, _):

        async def hang() -> None:
            connection = wire._connection
            assert connection is not None
            assert connection._transport is not None
            connection._transport.pause_reading()

        lost = await while_held(host, wire, hang)
        assert (lost.begun, lost.left) == (True, Left.ENDED)


async def test_a_long_run_of_a_host_that_answers_pings_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_wire, "LOOKED_AT_S", 0.01)
    pinged = anyio.Event()
    monkeypatch.setattr(host_wire, "SILENT_LOOKS", 3)
    host = Host()
    real = host_wire.HostConnection.send

    def send(connection: host_wire.HostConnection, kind: Kind, number: int = 0, body: bytes = b"") -> None:
        counted.append(kind)
        if counted.count(Kind.PING) == 8:
            pinged.set()
        real(connection, kind, number, body)

    counted: list[Kind] = []
    monkeypatch.setattr(host_wire.HostConnection, "send", send)
    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sent, wire, b"held")
                await pinged.wait()
                host.go_on.set()


async def test_who_does_not_have_the_secret_is_not_served_and_serves_nobody() -> None:
    host = Host()
    async with wired(host.run) as (_, address):
        stranger = HostWire(PLACEMENT, HostAddress(address.host, address.port, b"another secret"))
        refused = await gone(stranger, b"hello")
        assert (refused.begun, refused.left) == (False, Left.UNREACHABLE)
        assert "secret" not in repr(address)

    asked: list[bytes] = []

    async def impostor(front: SocketStream) -> None:
        await front.send(HEAD.pack(33, Kind.CHALLENGE, 0) + bytes([frames.VERSION, *bytes(32)]))
        asked.append(await BufferedByteReceiveStream(front).receive_exactly(HEAD.size + 64))
        await front.send(HEAD.pack(32, Kind.PROVEN, 0) + bytes(32))
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            asked.append(await front.receive())

    async with standing_between(impostor) as (port, _):
        with anyio.fail_after(30):
            await gone(HostWire(PLACEMENT, HostAddress("127.0.0.1", port, b"secret")), b"hello")
    assert len(asked) == 1  # its proof, and no run


@pytest.mark.parametrize(
    "sent",
    [
        HEAD.pack(frames.MOST_BYTES, Kind.RUN, 1),
        HEAD.pack(5, Kind.RUN, 1) + b"hello",
        HEAD.pack(65, Kind.PROOF, 0) + bytes(65),
        HEAD.pack(3, Kind.PROOF, 0) + b"abc",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
)
async def test_what_is_no_proof_closes_the_connection(sent: bytes) -> None:
    async with listening(Host().run, "127.0.0.1") as address:
        with anyio.fail_after(30):
            async with await anyio.connect_tcp(address.host, address.port) as stranger:
                assert len(await stranger.receive()) == HEAD.size + 33
                await stranger.send(sent)
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stranger.receive()


async def test_connections_without_a_proof_are_few_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.cluster.run_listener.PROVING_S", 0.5)
    async with wired(Host().run) as (wire, address), anyio.create_task_group() as tasks:
        answered, closed = 0, 0

        async def idle() -> None:
            nonlocal answered, closed
            async with await anyio.connect_tcp(address.host, address.port) as stranger:
                try:
                    await stranger.receive()
                    answered += 1
                    await stranger.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    closed += 1

        with anyio.fail_after(30):
            async with anyio.create_task_group() as strangers:
                for _ in range(MOST_UNPROVEN + 8):
                    strangers.start_soon(idle)
            assert (answered, closed) == (MOST_UNPROVEN + 8, MOST_UNPROVEN + 8)
            assert await sent(wire, b"hello") == b"reply to hello"
        tasks.cancel_scope.cancel()


async def test_progress_that_can_not_be_read_ends_the_connection_and_not_the_front() -> None:
    async def talks_nonsense(message: bytes, report: Listener) -> RunReply:
        report(cast("str", msgspec.Raw(b"\xc1")), None)
        await anyio.sleep_forever()
        return RunReply(message, lambda _taken: None)

    async with wired(talks_nonsense) as (wire, _):
        with anyio.fail_after(30):
            lost = await gone(wire)
        assert lost.begun


async def test_the_reply_of_a_cancelled_call_is_taken_all_the_same() -> None:
    host, late = Host(), list[bytes]()
    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.send, "1", b"held", late.append, None)
                await host.begun.wait()
                tasks.cancel_scope.cancel()
            await host.settles.wait()
    assert late == [b"cancelled"]
    assert host.settled == [(b"held", True)]


async def test_a_reply_that_nobody_took_is_known_to_the_host() -> None:
    host = Host()
    async with wired(host.run) as (wire, address):
        assert await sent(wire, b"hello") == b"reply to hello"

        async def deaf(front: SocketStream) -> None:
            """Cuts the connection instead of delivering a reply."""
            async with await anyio.connect_tcp(address.host, address.port) as up, anyio.create_task_group() as tasks:
                tasks.start_soon(copied, front, up)
                for length in (33, 32):
                    await front.send(await BufferedByteReceiveStream(up).receive_exactly(HEAD.size + length))
                await up.receive(1)
                for stream in (up, front):
                    await anyio.aclose_forcefully(stream)
                tasks.cancel_scope.cancel()

        async with standing_between(deaf) as (port, _):
            with anyio.fail_after(30):
                through = HostWire(PLACEMENT, HostAddress("127.0.0.1", port, address.secret))
                assert (await gone(through, b"unheard")).begun
                while len(host.settled) < 2:
                    await anyio.lowlevel.checkpoint()
        through.retire()
    assert host.settled == [(b"hello", True), (b"unheard", False)]


async def test_a_host_that_ends_replies_to_what_it_cancels() -> None:
    host, ended = Host(), anyio.Event()

    async def serve(*, task_status: anyio.abc.TaskStatus[HostAddress]) -> None:
        async with listening(host.run, "127.0.0.1") as address:
            task_status.started(address)
            await ended.wait()

    async with anyio.create_task_group() as tasks:
        wire = HostWire(PLACEMENT, await tasks.start(serve))
        replies: list[bytes] = []

        async def wait() -> None:
            await wire.send("1", b"held", replies.append, None)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(wait)
                await host.begun.wait()
                ended.set()
        assert replies == [b"cancelled"]
        assert (await gone(wire)).left is Left.ENDED


async def test_a_long_reply_over_a_slow_network_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_wire, "LOOKED_AT_S", 0.05)
    size = 3_000_000

    async def long(message: bytes, report: Listener) -> RunReply:
        return RunReply(b"x" * size, lambda _taken: None)

    async with wired(long) as (_, address):

        async def slow(front: SocketStream) -> None:
            """A piece at a time, in more than the time after which a silent host counts as hanging."""
            async with await anyio.connect_tcp(address.host, address.port) as up, anyio.create_task_group() as tasks:
                tasks.start_soon(copied, front, up)
                await copied(up, front, size // 25, 0.02)

        async with standing_between(slow) as (port, _):
            wire = HostWire(PLACEMENT, HostAddress("127.0.0.1", port, address.secret))
            with anyio.fail_after(60):
                assert len(await sent(wire, b"long")) == size
            wire.retire()


async def test_an_attempt_to_connect_that_fails_fails_for_all_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_wire, "PROVING_S", 0.3)
    attempts = 0

    async def silent(front: SocketStream) -> None:
        nonlocal attempts
        attempts += 1
        await anyio.sleep_forever()

    found: list[HostGone] = []
    async with standing_between(silent) as (port, _):
        wire = HostWire(PLACEMENT, HostAddress("127.0.0.1", port, b"secret"))

        async def ask() -> None:
            found.append(await gone(wire))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(ask)
    assert attempts == 1
    assert [(one.left, one.begun) for one in found] == [(Left.UNREACHABLE, False)] * 5


async def test_an_answer_that_is_too_long_is_an_error_and_its_edits_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serena_central.cluster.run_listener.MOST_BYTES", 1000)
    host = Host()
    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            with pytest.raises(ClusterError, match="too long"):
                await sent(wire, b"x" * 2000)
            assert await sent(wire, b"next") == b"reply to next"
    assert host.settled[0] == (b"x" * 2000, False)


async def test_a_host_of_another_version_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.cluster.run_listener.VERSION", 1)
    async with wired(Host().run) as (wire, _):
        with anyio.fail_after(30):
            refused = await gone(wire, b"hello")
    assert "same version" in str(refused)
    assert refused.left is Left.UNREACHABLE


async def test_a_listener_that_fails_spoils_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_text: str, _part: float | None) -> None:
        raise ZeroDivisionError

    async with wired(Host().run) as (wire, _):
        with anyio.fail_after(30):
            assert await sent(wire, b"reports", fails) == b"reply to reports"
    assert "could not be reported" in caplog.text


def test_a_host_listens_on_a_loop_that_anyio_has_not_started() -> None:
    """As Ray's, where callbacks have no task by which anyio would know the loop."""

    async def ask() -> bytes:
        async with wired(Host().run) as (wire, _):
            return await sent(wire, b"hello")

    assert asyncio.run(ask()) == b"reply to hello"
