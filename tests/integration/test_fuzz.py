"""Any arguments for any tool, and any bytes for any route, over real HTTP: no 500, no internal error, a clean log."""

import logging
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serena_central.tools.catalogue import Tool
from serena_central.tools.families import CATALOGUE
from tests.support.central import RunningCentral, running_central
from tests.support.generated_arguments import OPTIONAL, huge_file, odd_arguments, odd_project
from tests.support.mcp import ACCEPT, HANDSHAKE, MODERN, Era, RawClient, messages_in
from tests.support.scripted import behave, scripted_ty

pytestmark = pytest.mark.anyio

PATIENCE_S = 120

CALLS_OF_A_TOOL = 6
"""About so many in each era; of the longer run, 40. `test_bad_input.py` meets each parameter of each tool."""

bounded = settings(
    max_examples=25,
    derandomize=True,  # the same every time: a failure in CI is a failure here
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
async def central(folder: Path) -> AsyncGenerator[RunningCentral]:
    """One server for all, with a language server that starts at once: some tools restart it."""
    scripted_ty(folder)
    root = odd_project(folder / "shop", huge_file(folder))
    behave(folder, root.name)
    async with running_central(folder, {"included_optional_tools": OPTIONAL}, patience_s=900) as running:
        yield running


@pytest.fixture(scope="module")
async def http(central: RunningCentral) -> AsyncGenerator[httpx.AsyncClient]:
    async with central.http() as http:
        yield http


@pytest.fixture(params=["handshake", "modern"])
async def client(request: pytest.FixtureRequest, central: RunningCentral, folder: Path) -> AsyncGenerator[RawClient]:
    era: Era = request.param
    async with central.raw(era, x_serena_session=f"fuzz-{era}") as client:
        await client.call("activate_project", project=str(folder / "shop"))
        yield client


@pytest.fixture(autouse=True)
def no_bug_is_logged(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    yield
    bugs = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert bugs == []


async def well_answered(http: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """The answer, which tells of no failure inside the server."""
    with anyio.fail_after(PATIENCE_S):
        response = await http.send(request)
    assert response.status_code < 500 or response.status_code in (502, 503, 504), response.text
    assert "Internal error" not in response.text
    assert "Traceback" not in response.text
    return response


tool_calls = st.sampled_from(list(CATALOGUE)).flatmap(lambda tool: st.tuples(st.just(tool), odd_arguments(tool)))


async def _answered_or_refused(
    client: RawClient, folder: Path, call: tuple[Tool, dict[str, Any]], in_project: bool
) -> None:
    tool, arguments = call
    if tool.on_project and in_project:
        arguments = {**arguments, "project": str(folder / "shop")}
    request = client.request("tools/call", {"name": tool.name, "arguments": arguments})
    answer = messages_in((await well_answered(client.http, request)).text)[-1]
    assert answer["result"]["content"]
    assert all(block["type"] == "text" for block in answer["result"]["content"])


@settings(bounded, max_examples=CALLS_OF_A_TOOL * len(CATALOGUE.names()))
@given(call=tool_calls, in_project=st.booleans())
async def test_any_arguments_of_any_tool_are_answered_or_refused_in_words(
    client: RawClient, folder: Path, call: tuple[Tool, dict[str, Any]], in_project: bool
) -> None:
    await _answered_or_refused(client, folder, call, in_project)


@pytest.mark.slow
@settings(bounded, max_examples=40 * len(CATALOGUE.names()))
@given(call=tool_calls, in_project=st.booleans())
async def test_many_more_arguments_of_any_tool_are_answered_or_refused_in_words(
    client: RawClient, folder: Path, call: tuple[Tool, dict[str, Any]], in_project: bool
) -> None:
    await _answered_or_refused(client, folder, call, in_project)


METHODS = ["initialize", "tools/list", "tools/call", "ping", "server/discover", "resources/read", "prompts/get",
    "logging/setLevel", "notifications/initialized", "notifications/cancelled", "no/such/method", ""]  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | st.text(max_size=5) | json_values,
        "method": st.sampled_from(METHODS) | json_values,
        "params": st.fixed_dictionaries(
            {},
            optional={"name": st.sampled_from(["find_symbol", "", 3]), "arguments": json_values, "_meta": json_values},
        )
        | json_values,
        "result": json_values,
        "error": json_values,
    },
)
header_values = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60
) | st.sampled_from([HANDSHAKE, MODERN, "tools/call", "find_symbol", "x" * 5000, "../..", "${PWD}", "/", "~"])
HEADERS = ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "x-serena-session", "x-serena-project",
    "x-serena-context", "x-serena-conversation", "accept", "content-type", "origin", "last-event-id", "user-agent",
    "x-serena-anything", "traceparent", "cookie"]  # fmt: skip


@pytest.mark.parametrize("version", [HANDSHAKE, MODERN, None])
@bounded
@given(body=messages | st.lists(messages, max_size=3) | json_values)
async def test_any_json_to_mcp_is_answered(http: httpx.AsyncClient, version: str | None, body: Any) -> None:
    headers = {**ACCEPT, **({"mcp-protocol-version": version} if version else {})}
    response = await well_answered(http, http.build_request("POST", "/mcp", json=body, headers=headers))
    assert '"code":-32603' not in response.text, response.text


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["/mcp", "/api/v1/sessions", "/api/v1/tools/find_symbol", "/api/v1/events"])
@bounded
@given(
    headers=st.dictionaries(st.sampled_from(HEADERS), header_values, max_size=5),
    body=st.binary(max_size=200) | st.sampled_from([b"{", b"[]", b"\xff\xfe", b'"\xed\xa0\x80"', b"{}" * 50]),
    query=st.dictionaries(
        st.sampled_from(["limit", "before", "kind", "state", "session", "open"]), st.text(max_size=9)
    ),
)
async def test_any_headers_bytes_and_queries_are_answered(
    http: httpx.AsyncClient, method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, str]
) -> None:
    sent = {name: value.strip().encode("latin-1") for name, value in headers.items()}
    request = http.build_request(method, path, content=body, headers={**ACCEPT, **sent}, params=query)
    if (method, path) == ("GET", "/mcp"):
        request.headers["mcp-session-id"] = "nobody"  # else a stream may open, and stay open
    await well_answered(http, request)


RAW = [
    b"",
    b"\r\n\r\n",
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"GET\r\n\r\n",
    b"GET /mcp HTTP/9.9\r\n\r\n",
    b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: {host}\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nhost: {host}\r\n\r\n",
    b"GET /api/%00%ff%2e%2e/x HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ncontent-length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ncontent-length: 10, 11\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    (
        b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ntransfer-encoding: chunked\r\n"
        b"content-length: 5\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: {host}\r\n\r\n"
    ),
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nhost: evil\r\nauthorization: {token}\r\ncontent-length: 2\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {token}\r\ncontent-length: 2\r\nx: a\r\n b: c\r\n\r\n{}",
    (
        b"GET /health HTTP/1.1\r\nhost: {host}\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n"
    ),
    b"GET /health HTTP/1.1\r\nhost: {host}\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT evil:80 HTTP/1.1\r\nhost: {host}\r\n\r\n",
]


@pytest.mark.parametrize("hostile", RAW, ids=lambda raw: repr(raw[:30]))
async def test_bytes_that_are_no_request_harm_nobody(central: RunningCentral, hostile: bytes) -> None:
    host = central.url.removeprefix("http://")
    sent = hostile.replace(b"{host}", host.encode()).replace(b"{token}", central.central.token.header().encode())
    name, _, port = host.partition(":")
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp(name, int(port)) as stream:
            answer = b""
            try:
                await stream.send(sent)
                await stream.send_eof()
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
    for status in (b" 500 ", b" 501 ", b" 101 "):
        assert status not in answer.partition(b"\r\n")[0] + b" ", answer
    async with central.http() as http:
        assert (await http.get("/health")).status_code == 200
