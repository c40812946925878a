"""A front's connection to a project host: real sockets on loopback, without Ray."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import msgspec
import pytest

from serena_central.cluster import frames, host_wire
from serena_central.cluster.directory import Placement
from serena_central.cluster.frames import HEAD, HostAddress, Kind
from serena_central.cluster.host_wire import HostGone, HostWire
from serena_central.cluster.run_listener import MOST_UNPROVEN, Run, listening
from serena_central.core.errors import SerenaCentralError, UnknownProject
from serena_central.core.progress import Listener

pytestmark = pytest.mark.anyio

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

    async def run(self, message: bytes, report: Listener) -> bytes:
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


@asynccontextmanager
async def wired(run: Run) -> AsyncGenerator[tuple[HostWire, HostAddress]]:
    async with listening(run, "127.0.0.1") as address:
        wire = HostWire(PLACEMENT, address)
        yield wire, address
        wire.retire()


async def test_runs_are_answered_each_by_its_own_reply_however_many_are_under_way() -> None:
    host, replies = Host(), dict[int, bytes]()

    async def ask(wire: HostWire, number: int) -> None:
        replies[number] = await wire.send(str(number), b"%d" % number * 50_000, None)

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
            await wire.send("1", b"reports", lambda text, part: heard.append((text, part)))
            with pytest.raises(UnknownProject):
                await wire.send("2", b"refused", None)
            with pytest.raises(SerenaCentralError, match="ZeroDivisionError: by zero"):
                await wire.send("3", b"broken", None)
            assert await wire.send("4", b"next", None) == b"reply to next"
    assert heard == [("a half", 0.5), ("all", None)]


async def test_a_cancelled_wait_cancels_the_run_and_no_other() -> None:
    host = Host()
    async with wired(host.run) as (wire, _):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.send, "1", b"held", None)
                await host.begun.wait()
                tasks.cancel_scope.cancel()
            await host.cancelled.wait()
            assert await wire.send("2", b"next", None) == b"reply to next"


async def gone(wire: HostWire, message: bytes = b"held") -> HostGone:
    with pytest.raises(HostGone) as raised:
        await wire.send("1", message, lambda _text, _part: None)
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


async def test_a_host_that_ends_is_noticed_at_once_by_those_who_wait() -> None:
    host, ended = Host(), anyio.Event()

    async def serve(*, task_status: anyio.abc.TaskStatus[HostAddress]) -> None:
        async with listening(host.run, "127.0.0.1") as address:
            task_status.started(address)
            await ended.wait()

    async with anyio.create_task_group() as tasks:
        wire = HostWire(PLACEMENT, await tasks.start(serve))

        async def end() -> None:
            ended.set()

        lost = await while_held(host, wire, end)
        assert (lost.begun, lost.lives) == (True, False)
        assert host.cancelled.is_set()
        again = await gone(wire)
        assert (again.begun, again.lives) == (False, False)


async def test_a_connection_that_breaks_is_told_from_a_host_that_ended() -> None:
    host = Host()
    async with wired(host.run) as (wire, _):

        async def cut() -> None:
            connection = wire._connection
            assert connection is not None
            assert connection._transport is not None
            connection._transport.abort()

        lost = await while_held(host, wire, cut)
        assert (lost.begun, lost.lives) == (True, True)
        with anyio.fail_after(30):
            await host.cancelled.wait()
            assert await wire.send("2", b"next", None) == b"reply to next"


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
        assert (lost.begun, lost.lives) == (True, False)


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
                tasks.start_soon(wire.send, "1", b"held", None)
                await pinged.wait()
                host.go_on.set()


async def test_who_does_not_have_the_secret_is_not_served_and_serves_nobody() -> None:
    host = Host()
    async with wired(host.run) as (_, address):
        stranger = HostWire(PLACEMENT, HostAddress(address.host, address.port, b"another secret"))
        refused = await gone(stranger, b"hello")
        assert (refused.begun, refused.lives) == (False, False)
        assert "secret" not in repr(address)

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD.pack(32, Kind.CHALLENGE, 0) + bytes(32))
        await reader.readexactly(HEAD.size + 64)
        writer.write(HEAD.pack(32, Kind.PROVEN, 0) + bytes(32))
        assert await reader.read() == b""  # no run was sent
        writer.close()

    server = await asyncio.start_server(impostor, "127.0.0.1")
    try:
        port = server.sockets[0].getsockname()[1]
        with anyio.fail_after(30):
            await gone(HostWire(PLACEMENT, HostAddress("127.0.0.1", port, b"secret")), b"hello")
    finally:
        server.close()


@pytest.mark.parametrize(
    "sent",
    [
        HEAD.pack(frames.MOST_BYTES, Kind.RUN, 1),
        HEAD.pack(5, Kind.RUN, 1) + b"hello",
        HEAD.pack(64, Kind.PROOF, 0) + bytes(64),
        HEAD.pack(3, Kind.PROOF, 0) + b"abc",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
)
async def test_what_is_no_proof_closes_the_connection(sent: bytes) -> None:
    async with listening(Host().run, "127.0.0.1") as address:
        with anyio.fail_after(30):
            async with await anyio.connect_tcp(address.host, address.port) as stranger:
                assert len(await stranger.receive()) == HEAD.size + 32
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
            assert (answered, closed) == (MOST_UNPROVEN, MOST_UNPROVEN + 8)
            assert await wire.send("1", b"hello", None) == b"reply to hello"
        tasks.cancel_scope.cancel()


async def test_progress_that_can_not_be_read_ends_the_connection_and_not_the_front() -> None:
    async def talks_nonsense(message: bytes, report: Listener) -> bytes:
        report(cast("str", msgspec.Raw(b"\xc1")), None)
        await anyio.sleep_forever()
        return message

    async with wired(talks_nonsense) as (wire, _):
        with anyio.fail_after(30):
            lost = await gone(wire)
        assert lost.begun


def test_a_host_listens_on_a_loop_that_anyio_has_not_started() -> None:
    """As Ray's, where callbacks have no task by which anyio would know the loop."""

    async def ask() -> bytes:
        async with wired(Host().run) as (wire, _):
            return await wire.send("1", b"hello", None)

    assert asyncio.run(ask()) == b"reply to hello"
