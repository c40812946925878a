"""What strangers can do to a server by its connections alone: without a token, on real sockets, with either parser."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from serena_central.access import connections
from serena_central.access.connections import HEAD_BYTES, Deadlines
from serena_central.cli.checks.server import check_server
from serena_central.core.places import Places
from tests.support.central import RunningCentral, running_central
from tests.support.child import Child, run_command, serving_child

pytestmark = pytest.mark.anyio

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)

MOST_SENT = 8 * 1024 * 1024
"""What the system's own buffers take besides what the server reads is far less."""


@pytest.fixture(params=["httptools", "h11"])
async def central(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[RunningCentral]:
    if request.param == "h11":
        monkeypatch.setattr(connections, "HttpToolsProtocol", None)
    async with running_central(tmp_path) as running:
        yield running


async def connected(url: str) -> SocketStream:
    return await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2]))


def head_of(url: str, start: str = "GET /health", *more: str) -> bytes:
    return "\r\n".join([f"{start} HTTP/1.1", f"Host: {url.removeprefix('http://')}", *more, "", ""]).encode()


async def until_closed(stream: SocketStream) -> bytes:
    """All that came before the server closed."""
    came = b""
    with anyio.fail_after(60), suppress(*GONE):
        while True:
            came += await stream.receive()
    return came


async def answer_to(stream: SocketStream) -> tuple[int, bytes]:
    """Status and body of the next answer."""
    came = b""
    with anyio.fail_after(60):
        while not (found := re.search(rb"(?i)content-length: (\d+)(?:\r\n[^\r]+)*\r\n\r\n", came)):
            came += await stream.receive()
        while len(came) < found.end() + int(found[1]):
            came += await stream.receive()
    return int(came[9:12]), came[found.end() :]


async def sent_until_closed(stream: SocketStream, begin: bytes, piece: bytes) -> tuple[int, bytes]:
    """How much the server took of something without an end, and what it said."""
    sent = 0
    with anyio.fail_after(60), suppress(*GONE):
        await stream.send(begin)
        while sent < MOST_SENT:
            await stream.send(piece)
            sent += len(piece)
    return sent, await until_closed(stream)


ENDLESS = {
    "a method": (b"", b"G" * 4096),
    "a path": (b"GET /", b"x" * 4096),
    "a query": (b"GET /health?", b"x" * 4096),
    "the name of a header": (b"GET / HTTP/1.1\r\n", b"x" * 4096),
    "a header": (b"GET / HTTP/1.1\r\nX: ", b"x" * 4096),
    "headers": (b"GET / HTTP/1.1\r\n", b"X: 1\r\n" * 512),
    "empty lines": (b"", b"\r\n" * 2048),
    "a chunk's extension": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;x=", b"x" * 4096),
    "trailers": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: 1\r\n" * 512),
    "a trailer": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 4096),
    "requests": (b"", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 512),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_never_ends_is_closed(central: RunningCentral, what: str) -> None:
    if what == "requests" and connections.HttpToolsProtocol is None:
        pytest.skip("h11 reads one request at a time, and nothing more before it is answered")
    begin, piece = ENDLESS[what]
    async with await connected(central.url) as stream:
        sent, _ = await sent_until_closed(stream, begin, piece)
    assert sent < MOST_SENT
    async with central.http() as http:
        assert (await http.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("X: " + "x" * (HEAD_BYTES - 200), 200),
        ("X: " + "x" * HEAD_BYTES, 431),
        ("\r\n".join(f"X-{number}: 1" for number in range(97)), 200),
        ("\r\n".join(f"X-{number}: 1" for number in range(101)), 431),
        ("\r\n".join(f"X-{number}: 1" for number in range(9000)), 431),
    ],
    ids=["large", "too large", "many", "too many", "far too many"],
)
@pytest.mark.parametrize("path", ["/health", "/api/v1/sessions"])
async def test_a_head_that_comes_at_once_is_held_to_the_same_bounds(
    central: RunningCentral, header: str, status: int, path: str
) -> None:
    async with await connected(central.url) as stream:
        await stream.send(head_of(central.url, f"GET {path}", header))
        answered, _ = await answer_to(stream)
    assert answered == (401 if status == 200 and path != "/health" else status)


async def test_a_url_counts_as_part_of_the_head(central: RunningCentral) -> None:
    async with await connected(central.url) as stream:
        await stream.send(head_of(central.url, "GET /health?" + "x" * HEAD_BYTES))
        assert (await answer_to(stream))[0] == 431


async def test_who_asks_and_sends_nothing_more_is_answered(central: RunningCentral) -> None:
    for _ in range(20):
        async with await connected(central.url) as stream:
            await stream.send(head_of(central.url))
            await stream.send_eof()
            assert (await until_closed(stream)).startswith(b"HTTP/1.1 200 ")


async def test_what_was_on_its_way_when_the_server_stopped_is_answered(central: RunningCentral) -> None:
    async with await connected(central.url) as stream, await connected(central.url) as idle:
        for one in (stream, idle):
            await one.send(head_of(central.url))
            assert (await answer_to(one))[0] == 200
        for connection in list(central.server.server_state.connections):
            connection.shutdown()  # as uvicorn does when it stops
        await stream.send(head_of(central.url))
        assert (await until_closed(stream)).startswith(b"HTTP/1.1 200 ")
        assert await until_closed(idle) == b""


async def test_trailers_are_no_headers(central: RunningCentral) -> None:
    async with await connected(central.url) as stream:
        head = head_of(central.url, "POST /api/v1/shutdown", "Transfer-Encoding: chunked")
        await stream.send(head + f"0\r\nAuthorization: {central.central.token.header()}\r\n\r\n".encode())
        assert (await answer_to(stream))[0] == 401


async def test_a_slow_head_a_slow_body_and_an_answer_that_nobody_takes_are_closed(central: RunningCentral) -> None:
    central.central.connections.deadlines = Deadlines(head_s=1, answer_s=1, idle_s=1, body_pause_s=600)
    authorized = f"Authorization: {central.central.token.header()}"
    post = head_of(central.url, "POST /api/v1/sessions", "Content-Length: 16", "Expect: 100-continue", authorized)
    async with AsyncExitStack() as stack:
        silent, half, idle, unread, known, known_idle = [
            await stack.enter_async_context(await connected(central.url)) for _ in range(6)
        ]
        await half.send(b"GET /health HTTP/1.1\r\n")
        await idle.send(head_of(central.url))
        await unread.send(head_of(central.url, "POST /health", "Content-Length: 1000") + b"x")
        await known.send(post)
        with anyio.fail_after(60):
            assert b"100 Continue" in await known.receive()
        await known_idle.send(head_of(central.url, "GET /health", authorized))
        for stream in (silent, half, idle, unread):
            await until_closed(stream)
        # A client with the token is as slow as it likes, and its connection is kept.
        await known.send(b'{"client_name":1')
        assert (await answer_to(known))[0] == 400
        await answer_to(known_idle)
        await known_idle.send(head_of(central.url, "GET /health", authorized))
        assert (await answer_to(known_idle))[0] == 200


async def test_a_login_makes_a_connection_known(central: RunningCentral) -> None:
    central.central.connections.deadlines = Deadlines(head_s=1, answer_s=1, idle_s=1)
    path = central.central.dashboard.one_time_link()
    async with await connected(central.url) as browser, await connected(central.url) as stranger:
        await browser.send(head_of(central.url, f"GET {path}"))
        with anyio.fail_after(60):
            cookie = re.search(rb"(?i)set-cookie: ([^;]+)", await browser.receive())
        assert cookie
        async with await connected(central.url) as later:
            await later.send(head_of(central.url, "GET /dashboard/about", f"Cookie: {cookie[1].decode()}"))
            with anyio.fail_after(60):
                assert (await later.receive()).startswith(b"HTTP/1.1 200 ")
            await until_closed(stranger)
            count = central.central.connections.count()
    assert count["authenticated"] == 1


async def test_silent_connections_keep_no_owner_out(tmp_path: Path) -> None:
    """1,300 of them, at a server that may have 1,024 descriptors."""
    async with serving_child(tmp_path, descriptors=1024) as child, AsyncExitStack() as stack:
        async with child.http() as early:
            assert (await early.get("/api/v1/stats")).status_code == 200
            for _ in range(1300):
                stream = await stack.enter_async_context(await connected(child.url))
                await stream.send(b"GET / HTTP/1.1\r\n")
            async with child.http() as late:
                stats = (await late.get("/api/v1/stats")).json()
            assert (await early.get("/api/v1/stats")).status_code == 200
        assert stats["connections"]["unauthenticated"] <= 256
        assert stats["connections"]["closed_for_room"] >= 1300 - 256
        assert stats["descriptors"] == {"limit": 1024, "exhausted_at": None}
        assert (await run_command(tmp_path, "status")).code == 0


async def test_a_server_without_descriptors_says_so_once_and_the_doctor_too(tmp_path: Path) -> None:
    async with serving_child(tmp_path, descriptors=200) as child:
        async with AsyncExitStack() as stack:
            await with_all_descriptors_used(child, stack)
            log = tmp_path / "home" / "logs" / "server.log"
            with anyio.fail_after(180):  # a server that rests looks once a minute
                while "file descriptors are in use" not in log.read_text():
                    await anyio.sleep(0.05)
            during = list(check_server(Places(tmp_path / "home")))
        with anyio.fail_after(60):
            while not (after := await stats_of(child)):
                await anyio.sleep(0.05)
        again = list(check_server(Places(tmp_path / "home")))
    assert log.read_text().count("file descriptors are in use") == 1
    assert "Traceback" not in log.read_text()
    assert after["descriptors"]["exhausted_at"] > 0
    for report, state in ((during, "failed"), (again, "warning")):
        (found,) = [check for check in report if check.name == "server's open files"]
        assert (found.state, "200" in found.says) == (state, True)


async def with_all_descriptors_used(child: Child, stack: AsyncExitStack) -> None:
    """Authenticated connections, which nothing bounds, until one is closed at once."""
    token = (child.folder / "home" / "token").read_text().strip()
    head = head_of(child.url, "GET /health", f"Authorization: Bearer {token}")
    for _ in range(400):
        stream = await stack.enter_async_context(await connected(child.url))
        try:
            await stream.send(head)
            await answer_to(stream)
        except GONE:
            return
    raise AssertionError("a server with 200 descriptors took 400 connections")


async def stats_of(child: Child) -> dict[str, dict[str, float]]:
    """Empty while the server takes no connections."""
    with suppress(*GONE, OSError):
        async with await connected(child.url) as stream:
            token = (child.folder / "home" / "token").read_text().strip()
            await stream.send(head_of(child.url, "GET /api/v1/stats", f"Authorization: Bearer {token}"))
            status, body = await answer_to(stream)
            return json.loads(body) if status == 200 else {}
    return {}
