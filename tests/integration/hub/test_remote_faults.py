"""Remote upstreams that break HTTP or the protocol: that costs the call which met it, and nothing else."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from serena_central.hub import bodies, remote_client, sse
from serena_central.hub.snapshots import UpstreamState
from tests.support.central import running_central
from tests.support.mcp import RawClient, text_of
from tests.support.upstreams import QUICK, settings_of_user

pytestmark = pytest.mark.anyio


def said(status: str, body: object = b"", kind: str = "application/json", *more: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(content)}", *more, "", ""]
    return "\r\n".join(head).encode() + content


def result(number: Any, text: str) -> dict[str, Any]:
    return {**head_of(number), "result": {"content": [{"type": "text", "text": text}]}}


def head_of(number: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number}


def crowded(number: Any) -> dict[str, Any]:
    """An answer of 200,000 lists."""
    return {**head_of(number), "result": {"content": [], "structuredContent": {"all": [[]] * 200_000}}}


def event(message: object) -> bytes:
    return f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()


class Cut(bytes):
    """An answer that breaks off: the connection ends before it is whole."""


class Broken:
    """A server of raw HTTP. `bad`: what the tool of this name answers to a request; `held` waits for `release`."""

    def __init__(self, bad: Callable[[int], bytes] = lambda number: b"") -> None:
        self.bad = bad
        self.release = anyio.Event()
        self.is_holding = anyio.Event()
        self.calls: list[str] = []
        self.lists = self.pings = 0
        self.refuses_pings = False
        self.sessions: list[str] = []
        self.unknown = said("400 Bad Request", b"No valid session ID provided", "text/plain")
        self.get = said("405 Method Not Allowed")
        self.broken_streams: list[bytes] | None = None
        """What is answered to each further GET, before the connection breaks; then there is a stream that lasts."""
        self.cancelling: bytes | None = said("202 Accepted")
        self.stream: Any = None
        """Of the older transport: all messages go there."""

    async def serve(self, stream: Any) -> None:
        reader = BufferedByteReceiveStream(stream)
        async with stream:
            while True:
                try:
                    head = (await reader.receive_until(b"\r\n\r\n", 100_000)).decode().lower()
                except (anyio.IncompleteRead, anyio.BrokenResourceError):
                    return
                sizes = [line for line in head.split("\r\n") if line.startswith("content-length:")]
                body = await reader.receive_exactly(int(sizes[0].split(":")[1])) if sizes else b""
                if head.startswith("get /sse"):
                    endpoint = b"event: endpoint\r\ndata: /messages\r\n\r\n"
                    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + endpoint)
                    self.stream = stream
                    await anyio.sleep_forever()
                if head.startswith("get /mcp") and self.broken_streams is not None:
                    if self.broken_streams:
                        await stream.send(self.broken_streams.pop(0))
                        return
                    news = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event(news))
                    await anyio.sleep_forever()
                answer = self.get if head.startswith(("get", "delete")) else await self.posted(head, json.loads(body))
                if not answer:
                    return
                if self.stream is not None and answer.startswith(b"HTTP/1.1 200"):
                    await self.stream.send(event(json.loads(answer.partition(b"\r\n\r\n")[2])))
                    answer = said("202 Accepted")
                await stream.send(answer)
                if isinstance(answer, Cut):
                    return

    async def posted(self, head: str, message: dict[str, Any]) -> bytes:
        number, params = message.get("id"), message.get("params") or {}
        empty = {**result(number, ""), "result": {}}
        match message.get("method"):
            case "initialize":
                session = f"session-{len(self.calls)}-{len(self.sessions)}"
                self.sessions.append(session)
                about = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
                answer = {**about, "serverInfo": {"name": "broken", "version": "1"}}
                ok = {"jsonrpc": "2.0", "id": number, "result": answer}
                return said("200 OK", ok, "application/json", f"mcp-session-id: {session}")
            case "notifications/cancelled":
                if self.cancelling is None:
                    await anyio.sleep_forever()
                return self.cancelling or b""
            case "tools/list" if not self.knows(head):
                return self.unknown
            case "tools/list":
                self.lists += 1
                schema = {"type": "object", "properties": {"text": {"type": "string"}}}
                tools = [{"name": name, "inputSchema": schema} for name in ("echo", "held", "bad")]
                return said("200 OK", {"jsonrpc": "2.0", "id": number, "result": {"tools": tools}})
            case "tools/call":
                return await self.called(head, number, params)
            case "ping":
                self.pings += 1
                return self.unknown if self.refuses_pings or not self.knows(head) else said("200 OK", empty)
            case _:
                return said("202 Accepted") if number is None else said("200 OK", empty)

    async def called(self, head: str, number: Any, params: dict[str, Any]) -> bytes:
        if not self.knows(head):
            return self.unknown
        self.calls.append(params["name"])
        if params["name"] == "held":
            self.is_holding.set()
            await self.release.wait()
        if params["name"] == "bad":
            return self.bad(number)
        return said("200 OK", result(number, params["name"]))

    def knows(self, head: str) -> bool:
        return self.stream is not None or any(f"mcp-session-id: {one}\r\n" in head for one in self.sessions)


@asynccontextmanager
async def served(broken: Broken, user: Path, kind: str = "http", **entry: Any) -> AsyncGenerator[None]:
    """The server `far` of the user's settings."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, broken.serve)
        path = "mcp" if kind == "http" else "sse"
        settings_of_user(user, {"far": {"type": kind, "url": f"http://127.0.0.1:{port}/{path}", **entry}})
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def beside_a_held_call(broken: Broken, client: RawClient) -> AsyncGenerator[None]:
    """Around what happens while a call of this client is in progress, which is answered afterwards."""
    answers: list[str] = []

    async def held() -> None:
        answers.append(text_of(await client.call("far__held")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held)
        with anyio.fail_after(30):
            await broken.is_holding.wait()
        yield
        broken.release.set()
    assert answers == ["held"]


FAULTS: dict[str, tuple[Callable[[int], bytes], str]] = {
    "reset": (lambda number: b"", "its answer did not arrive"),
    "cut_off": (lambda number: Cut(said("200 OK", result(number, "x"))[:-5]), "its answer did not arrive"),
    "not_compressed": (
        lambda number: said("200 OK", b"no gzip", "application/json", "content-encoding: gzip"),
        "can't be decompressed",
    ),
    "of_another_call": (lambda number: said("200 OK", result(number - 1, "not yours")), "one to another request"),
    "a_batch": (lambda number: said("200 OK", [result(number, "x")]), "does not follow the protocol"),
    "no_answer": (lambda number: said("200 OK", {"jsonrpc": "2.0", "method": "x"}), "does not follow the protocol"),
    "status": (
        lambda number: said("503 Service Unavailable", b"busy", "text/plain", "retry-after: 30"),
        "HTTP status 503 Service Unavailable; it wants to be called again in 30 s",
    ),
    "page": (lambda number: said("200 OK", b"<p>", "text/html"), "content of the type text/html instead of an answer"),
    "crowded": (lambda number: said("200 OK", crowded(number)), "more than 200,000 objects and lists"),
    "crowded_event": (
        lambda number: said("200 OK", event(crowded(number)), "text/event-stream"),
        "more than 200,000 objects and lists",
    ),
    "login": (lambda number: said("401 Unauthorized"), "run `serena-central mcp login far`"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_response_fails_its_call_alone(tmp_path: Path, user: Path, fault: str) -> None:
    answer, expected = FAULTS[fault]
    broken = Broken(answer)
    async with (
        served(broken, user),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as one,
        running.raw("modern") as other,
    ):
        async with beside_a_held_call(broken, other):
            for _ in range(5):
                assert expected in text_of(await one.call("far__bad"))
        assert text_of(await one.call("far__echo")) == "echo"
        assert len(broken.sessions) == 1


@pytest.mark.parametrize("value", ["Bearer canary-кто", "Bearer canary-line\n"])
async def test_a_header_that_can_t_be_sent_is_told_without_its_value(tmp_path: Path, user: Path, value: str) -> None:
    entry = {"headers": {"Authorization": value}}
    async with (
        served(Broken(), user, **entry),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as client,
    ):
        refused = text_of(await client.call("far__echo"))
    assert "a header of its entry can't be sent" in refused
    assert "canary" not in refused


async def test_half_a_surrogate_pair_costs_an_answer_over_http_nothing_else(tmp_path: Path, user: Path) -> None:
    broken = Broken(lambda number: said("200 OK", json.dumps(result(number, "half \ud83d")).encode()))
    async with served(broken, user), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("far__bad")) == "half ?"


async def test_an_answer_over_http_is_read_up_to_the_limit(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is compressed."""
    monkeypatch.setattr(bodies, "MAX_MESSAGE_BYTES", 1_000_000)
    broken = Broken(lambda number: said("200 OK", b" " * 2_000_000))
    async with served(broken, user), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert "the limit is 1 MB" in text_of(await client.call("far__bad"))
        assert text_of(await client.call("far__echo")) == "echo"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_nobody_waits_for_the_end_of_what_a_redirect_says(tmp_path: Path, user: Path, kind: str) -> None:
    """It would be kept in memory until then, however long it is."""
    endless = said("307 Temporary Redirect", b"moved", "text/html", "location: /mcp/").replace(
        b"h: 5", b"h: 5000000000"
    )
    broken = Broken(lambda number: endless)
    async with served(broken, user, kind), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        refused = text_of(await client.call("far__bad"))
        assert "edirect" in refused
        assert "within" not in refused
        assert text_of(await client.call("far__echo")) == "echo"


async def test_an_event_over_sse_with_too_many_parts_fails_its_call_alone(tmp_path: Path, user: Path) -> None:
    broken = Broken(lambda number: said("200 OK", crowded(number)))
    async with (
        served(broken, user, "sse"),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as one,
        running.raw("modern") as other,
    ):
        async with beside_a_held_call(broken, other):
            assert "more than 200,000 objects and lists" in text_of(await one.call("far__bad"))
        assert text_of(await one.call("far__echo")) == "echo"


@pytest.mark.parametrize("order", ["id first", "id last"])
async def test_an_event_over_sse_that_is_too_long_fails_its_call_alone(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(sse, "MAX_MESSAGE_BYTES", 1_000_000)

    def long(number: int) -> bytes:
        answer = result(number, "x" * 2_000_000)
        return said("200 OK", answer if order == "id first" else {"result": answer["result"], **head_of(number)})

    broken = Broken(long)
    async with (
        served(broken, user, "sse"),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as one,
        running.raw("modern") as other,
    ):
        async with beside_a_held_call(broken, other):
            assert "the limit is 1 MB" in text_of(await one.call("far__bad"))
        assert text_of(await one.call("far__echo")) == "echo"


async def test_a_request_that_is_not_found_ends_no_call_that_is_in_progress(tmp_path: Path, user: Path) -> None:
    """404 says that a session is unknown, but gateways also answer it to one request of a session that goes on."""
    broken = Broken(lambda number: said("404 Not Found", b"no route", "text/plain"))
    async with (
        served(broken, user),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as one,
        running.raw("modern") as other,
    ):
        async with beside_a_held_call(broken, other):
            assert "HTTP status 404 Not Found" in text_of(await one.call("far__bad"))
        assert len(broken.sessions) == 1


async def test_a_call_that_failed_is_made_once_where_there_is_no_stream_to_listen_on(
    tmp_path: Path, user: Path
) -> None:
    """Many servers answer 404 to a GET, which says nothing about the session."""
    error = {"jsonrpc": "2.0", "error": {"code": -32001, "message": "half done"}}
    broken = Broken(lambda number: said("200 OK", {**error, "id": number}))
    broken.get = said("404 Not Found")
    async with served(broken, user), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("far__echo")) == "echo"
        assert "half done" in text_of(await client.call("far__bad"))
        assert broken.calls == ["echo", "bad"]
        assert len(broken.sessions) == 1
        wire = tmp_path / "home" / "logs" / "mcp" / "far.log"
        with anyio.fail_after(30):
            while "can't be listened to: HTTP status 404" not in wire.read_text():
                await anyio.sleep(0.01)


async def test_a_server_that_refuses_all_of_a_session_gets_a_new_one(tmp_path: Path, user: Path) -> None:
    """400 is what many servers answer to a session that they don't know, where the protocol has 404."""
    broken = Broken(lambda number: broken.unknown)
    async with served(broken, user), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("far__echo")) == "echo"
        assert "HTTP status 400" in text_of(await client.call("far__bad"))
        assert broken.calls == ["echo", "bad"]
        broken.sessions.clear()
        assert text_of(await client.call("far__echo")) == "echo"
        assert broken.calls == ["echo", "bad", "echo"]


async def test_a_server_is_listened_to_again_however_often_that_breaks(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_client, "LISTEN_S", 0.01)
    broken = Broken()
    cut = said("200 OK", b"retry: 10\n\n" + b" " * 100, "text/event-stream")[:-50]
    busy = said("429 Too Many Requests")
    broken.broken_streams = [cut, b"", cut, said("502 Bad Gateway"), busy, busy, busy, cut, b"", cut]
    async with served(broken, user), running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("far__echo")) == "echo"
        with anyio.fail_after(30):
            while broken.lists < 2:
                await anyio.sleep(0.01)
        assert len(broken.sessions) == 1


@pytest.mark.parametrize("why", ["forgotten", "unreachable"])
async def test_a_server_that_is_not_there_for_us_any_more_is_noticed_by_a_health_check(
    tmp_path: Path, user: Path, why: str
) -> None:
    broken = Broken()
    settings = QUICK | {"hub.health_interval_s": 0.1}
    async with (
        served(broken, user),
        running_central(tmp_path, settings) as running,
        running.raw("modern") as client,
    ):
        assert text_of(await client.call("far__echo")) == "echo"
        hub = await running.central.upstreams.hub()
        broken.unknown = said("404 Not Found") if why == "forgotten" else b""
        broken.sessions.clear()
        with anyio.fail_after(30):
            while hub.state("far") is UpstreamState.READY:
                await anyio.sleep(0.01)
        expected = "does not know our session" if why == "forgotten" else "did not arrive"
        assert expected in hub.upstreams()[0].why
        assert text_of(await client.call("far__echo")) == "echo"


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found"])
async def test_a_server_that_refuses_pings_is_there_all_the_same(tmp_path: Path, user: Path, status: str) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "there is no method ping"}}
    broken = Broken()
    broken.unknown, broken.refuses_pings = said(status, error), True
    settings = QUICK | {"hub.health_interval_s": 0.1}
    async with served(broken, user), running_central(tmp_path, settings) as running, running.raw("modern") as client:
        assert text_of(await client.call("far__echo")) == "echo"
        with anyio.fail_after(30):
            while broken.pings < 3:
                await anyio.sleep(0.01)
        assert len(broken.sessions) == 1
        assert text_of(await client.call("far__echo")) == "echo"


async def test_a_cancellation_that_is_never_accepted_holds_up_no_other_call(tmp_path: Path, user: Path) -> None:
    broken = Broken()
    broken.cancelling = None
    async with (
        served(broken, user, timeout=500),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as client,
    ):
        assert "did not answer within" in text_of(await client.call("far__held"))
        assert text_of(await client.call("far__echo")) == "echo"


@pytest.mark.parametrize("fault", ["status", "reset"])
async def test_a_message_that_does_not_arrive_fails_its_call_alone_over_sse(
    tmp_path: Path, user: Path, fault: str
) -> None:
    answer, expected = FAULTS[fault]
    broken = Broken(answer)
    async with (
        served(broken, user, "sse"),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as client,
    ):
        for _ in range(5):
            assert expected in text_of(await client.call("far__bad"))
        assert text_of(await client.call("far__echo")) == "echo"


async def test_a_long_answer_passes_over_sse(tmp_path: Path, user: Path) -> None:
    broken = Broken(lambda number: said("200 OK", result(number, "x" * 2_000_000)))
    async with (
        served(broken, user, "sse"),
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as client,
    ):
        assert text_of(await client.call("far__bad")).startswith("xxx")
        assert text_of(await client.call("far__echo")) == "echo"
