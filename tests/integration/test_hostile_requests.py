"""Every route, asked in every odd way: by strangers, with the token, by a browser that is signed in. No answer is a
failure of the server (5xx), and no request is an error in its log."""

import logging
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from starlette.routing import Route

from tests.support.browser import visiting
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era

pytestmark = pytest.mark.anyio

AT_ONCE = 8

Who = Literal["a stranger", "a client", "a browser"]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X" * 40)

ODD = (
    *("%00", "%ff", "%C3%28", "%ED%A0%80", "%F0%9F%92%A9", "%0d%0aX-Injected:1", "%20", "%25", "%3F%23", "%", "%zz"),
    *(
        "..",
        "%2e%2e",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2f",
        "%2fetc%2fpasswd",
        "%5c..%5c",
        "/%2fa%00b",
        ".",
        "a//b",
        ";a=b",
    ),
    *("{}", "{0.__class__}", "%7b%7b7*7%7d%7d", "%3Cscript%3E", "%22%27", "-1", "9" * 50, "NaN", "1e309", "x" * 5000),
    *("[", "(" * 500, "*" * 500, "true", "null", "~", "~nobody%2fx", "$HOME"),
)
"""For the places in a path and the values of a query."""

BODIES = (
    *(b"", b"{", b"{}", b"[]", b"null", b'"x"', b"1e999", b"\xff\xfe", b"\0", b"[" * 5000, b'{"a":' * 5000),
    *(b'{"arguments": null}', b'{"arguments": {"a": "\\ud800"}}', b'{"arguments": {"project": "\\u0000"}}'),
    *(b'{"client_name": "\\ud800\\u0000"}', b'{"conversation": "\\u0000"}', b'{"conversation": "\\ud800"}'),
    *(
        b'{"folder": "\\u0000"}',
        b'{"folder": "/\\u0000"}',
        b'{"folder": "\\ud800"}',
        b'{"folder": "/", "modules": ["\\u0000"]}',
    ),
    *(b"a=%00&b=%ff&=&&", b"session=%00", b"session=x&session=y", b"root=%00", b"root=%ff", b"edit=%00", b"server=%00"),
    *(b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--x--", b"a" * 300_000, b"&" * 5000),
)

QUERIES = (
    *("before", "by", "client", "folder", "granularity", "key", "kind", "language", "level", "limit", "name", "open"),
    *("page", "path", "project", "q", "root", "server", "session", "severity", "sort", "state", "window", "words"),
)

HEADERS = (
    "Accept: \xff",
    "Accept: text/event-stream",
    "Accept: application/openmetrics-text;version=\xe9;q=x",
    "Content-Type: \xff/\xff; charset=nonsense",
    "Content-Type: multipart/form-data",
    "Cookie: =;;;\xff=\xff; serena_central_=x",
    "Origin: http://[",
    "Origin: null",
    "Authorization: Bearer \xff\xfe",
    "Authorization: Basic \xff",
    "Host: \xff",
    "Host: [::1",
    "Host:",
    "X-Serena-Session: \xff\xfe",
    "X-Serena-Session: " + "x" * 5000,
    "X-Serena-Project: /\xff/{}",
    "X-Serena-Project: ~nobody/x",
    "X-Serena-Context: ../../etc\xff",
    "X-Serena-Modes: ,,\xff,../x",
    "X-Serena-Parent: 99999999999999",
    "X-Serena-Parent: \xb2",
    "X-Serena-Conversation: \xff",
    "X-Serena-Call: \xff",
    "Mcp-Session-Id: \xff",
    "Mcp-Session-Id: " + "x" * 5000,
    "Mcp-Protocol-Version: \xff",
    "Mcp-Protocol-Version: 2025-06-18",
    "Mcp-Protocol-Version: 2026-07-28",
    "Mcp-Protocol-Version: 9999-99-99",
    "Mcp-Method: \xff",
    "Mcp-Name: =?base64?\xff?=",
    "Last-Event-ID: \xff",
    "Traceparent: \xff",
    "Traceparent: 00-" + "0" * 32 + "-" + "0" * 16 + "-00",
    "HX-Request: \xff",
    "Range: bytes=9-1",
    "If-None-Match: \xff",
    "Content-Encoding: gzip",
    "Connection: upgrade\r\nUpgrade: websocket",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x",
)


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    settings = {"allowed_roots": [str(tmp_path_factory.mktemp("roots"))], "tool_timeout_s": 20}
    async with running_central(tmp_path_factory.mktemp("central"), settings, patience_s=900) as running:
        yield running


@pytest.fixture(autouse=True)
def no_error_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@dataclass
class Asker:
    """Sends requests as one kind of caller, each on a connection of its own."""

    central: RunningCentral
    headers: str
    csrf: str = ""

    async def status(self, method: str, target: str, headers: str = "", body: bytes = b"") -> int:
        """0 where the server closed without an answer."""
        host = "" if "Host:" in headers else f"Host: {self.central.url.removeprefix('http://')}\r\n"
        head = f"{method} {target} HTTP/1.1\r\n{host}{self.headers}{headers}"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        came = b""
        port = int(self.central.url.rpartition(":")[2])
        with anyio.fail_after(60):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                try:
                    await stream.send(f"{head}Connection: close\r\n\r\n".encode("latin-1") + body)
                    while len(came) < 12:
                        came += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass
        return int(came[9:12] or 0)

    async def statuses(self, requests: list[tuple[Any, ...]]) -> set[int]:
        """Of many requests, some at a time; none is a failure."""
        left, seen, failed = list(requests), set[int](), list[str]()

        async def ask() -> None:
            while left:
                request = left.pop()
                status = await self.status(*request)
                seen.add(status)
                if status >= 500:
                    failed.append(f"{status}: {str(request)[:300]}")

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(ask)
        assert failed == []
        return seen

    def form(self, fields: bytes) -> bytes:
        return f"csrf={self.csrf}&".encode() + fields if self.csrf else fields


@pytest.fixture(params=["a stranger", "a client", "a browser"])
async def asker(central: RunningCentral, request: pytest.FixtureRequest) -> Asker:
    who: Who = request.param
    if who == "a stranger":
        return Asker(central, "")
    if who == "a client":
        return Asker(central, f"Authorization: {central.central.token.header()}\r\n")
    async with visiting(central) as visitor:
        csrf = await visitor.csrf()
        (cookie,) = visitor.http.cookies.items()
    return Asker(central, f"Cookie: {cookie[0]}={cookie[1]}\r\nOrigin: {central.url}\r\n", csrf)


def paths(central: RunningCentral, filling: str) -> list[str]:
    """Of all routes, with something in each place that is left open. The one that stops the server is left out."""
    found = {route.path for route in central.central.app.routes if isinstance(route, Route)}
    found = {"/mcp", "/mcp/", *found} - {"/api/v1/shutdown"}
    return sorted(re.sub(r"{[^}]*}", lambda _: filling, path) for path in found)


async def test_every_method(asker: Asker) -> None:
    all_paths = [*paths(asker.central, "x"), "/", "/nowhere", "*", "//", "http://evil.example/", "evil.example:80", "x"]
    statuses = await asker.statuses([(method, path) for method in METHODS for path in all_paths])
    assert {400, 401, 403} & statuses


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:20])
async def test_odd_paths(asker: Asker, odd: str) -> None:
    filled = [path for path in paths(asker.central, odd) if odd in path]
    more = [f"/{odd}", f"/api/{odd}", f"/dashboard/{odd}", f"/dashboard/static/{odd}", f"/mcp/{odd}", f"/health{odd}"]
    await asker.statuses([(method, path) for method in ("GET", "POST", "DELETE") for path in [*filled, *more]])


async def test_bytes_that_no_url_may_have(asker: Asker) -> None:
    odd = ("\xff", "é", "\x01", "\x7f", '"', "<>", "\\", "^`|")
    await asker.statuses(
        [("GET", f"{path}{bad}") for path in ("/", "/dashboard/", "/health?", "/api/x") for bad in odd]
    )


async def test_odd_queries(asker: Asker) -> None:
    targets = [path for path in paths(asker.central, "x") if not path.startswith("/dashboard/live")]
    every = [f"{name}={odd}" for odd in ODD for name in QUERIES]
    by_odd = ["&".join(every[start : start + len(QUERIES)]) for start in range(0, len(every), len(QUERIES))]
    some = ["=&&==", "&" * 3000, "limit=1&limit=x", "path=/&name=%00", "path=/x%00", "%00=%00", "page=999999&sort=-"]
    await asker.statuses([("GET", f"{path}?{query}") for path in targets for query in [*by_odd, *some]])


@pytest.mark.parametrize("odd", ["%00", "%ff", "%ED%A0%80", "/%00", "-1", "9" * 30, "x"])
async def test_each_value_of_a_query_by_itself(asker: Asker, odd: str) -> None:
    pages = ("events", "sessions", "project", "projects", "graph", "statistics", "servers", "uses", "findings", "tools")
    targets = [f"/dashboard/{page}" for page in pages] if asker.csrf else []
    targets += ["/api/v1/sessions", "/api/v1/edits", "/api/v1/events", "/api/v1/coverage", "/dashboard/enter"]
    await asker.statuses([("GET", f"{path}?{name}={odd}") for path in targets for name in QUERIES])


async def test_odd_headers(asker: Asker) -> None:
    some = (
        "/health",
        "/metrics",
        "/api/v1/sessions",
        "/mcp",
        "/dashboard",
        "/dashboard/static/x",
        "/api/v1/sessions/x/presence",
    )
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    await asker.statuses([("GET", path, header + "\r\n") for path in some for header in HEADERS])
    await asker.statuses([("POST", path, header + "\r\n", body) for path in some for header in HEADERS])


async def test_odd_bodies(asker: Asker) -> None:
    for path in paths(asker.central, "x"):
        bodies = [asker.form(body) if path.startswith("/dashboard") else body for body in BODIES]
        if path.endswith("/sign-out"):
            bodies = list(BODIES)  # without the form's token: it would sign this browser out
        await asker.statuses([("POST", path, "", body) for body in bodies])


@pytest.mark.parametrize("tool", ["find_symbol", "read_file", "nothing", "activate_project"])
async def test_odd_calls_over_the_api(central: RunningCentral, tool: str) -> None:
    asker = Asker(central, f"Authorization: {central.central.token.header()}\r\n")
    values = ('"\\u0000"', '"\\ud800"', "1e400", "[]", "{}", "null", '"' + "x" * 5000 + '"', "1" * 5000, "-0.0")
    names = ("name_path", "relative_path", "project", "", "\\u0000", "\\ud800")
    bodies = [f'{{"arguments": {{"{name}": {value}}}}}'.encode() for name in names for value in values]
    bodies += [f'{{"session": {value}}}'.encode() for value in values]
    await asker.statuses([("POST", f"/api/v1/tools/{tool}", "", body) for body in bodies])


async def test_odd_messages_of_mcp(central: RunningCentral, tmp_path: Path) -> None:
    accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    asker = Asker(central, f"Authorization: {central.central.token.header()}\r\n{accept}")
    version = "Mcp-Protocol-Version: 2026-07-28\r\n"
    messages = [
        *BODIES,
        *(
            b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % odd
            for odd in (b"null", b"1e400", b"[]", b'"\\ud800"', b"-1")
        ),
        *(b'{"jsonrpc":"2.0","id":1,"method":%s}' % odd for odd in (b"null", b"1", b'""', b'"\\ud800"', b'"\\u0000"')),
        *(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % odd for odd in (b"1", b"[]", b'{"name":1}')),
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":%s}}'
        % b'{"name":"\\ud800\\u0000","version":"\\ud800"}',
        b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 50 + b"{}]",
    ]
    await asker.statuses([("POST", "/mcp", more, body) for body in messages for more in ("", version)])


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("body", [b"", b'{"jsonrpc": "2.0", "id"'])
async def test_a_client_that_goes_before_its_message_is_whole_is_no_error(
    tmp_path: Path, era: Era, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_central(tmp_path) as central, central.raw(era) as client:
        await client.call("list_projects")
        headers = {**client.http.headers, **client.headers("resources/list", {}), "content-type": "application/json"}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "method": "POST",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "state": {},
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", int(central.url.rpartition(":")[2])),
            "headers": [
                (b"host", central.url.removeprefix("http://").encode()),
                *((key.lower().encode(), value.encode()) for key, value in headers.items()),
            ],
        }
        coming = iter([{"type": "http.request", "body": body, "more_body": True}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(coming, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        await central.central.app(scope, receive, send)
        assert (sent, caplog.records) == ([], [])
        assert not (await client.call("list_projects"))["isError"]
