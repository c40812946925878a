import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from serena_central.access.auth import AuthGate, credential_of, is_loopback, refuse_open_binding
from serena_central.access.token import Token
from serena_central.core.errors import ConfigError

pytestmark = pytest.mark.anyio

TOKEN = Token(b"t" * 40)
GOOD = {"host": "127.0.0.1:24280", "authorization": TOKEN.header()}


async def _admitted(scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    answer = json.dumps({"credential": credential_of(scope), "body": len(body)}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer})


async def _ask(
    headers: dict[str, str] | list[tuple[str, str]],
    *,
    guard: AuthGate | None = None,
    path: str = "/mcp",
    chunks: list[bytes] | None = None,
) -> tuple[int, dict[bytes, bytes], Any]:
    guard = guard or AuthGate(_admitted, token=TOKEN, open_paths=["/health"], max_body_bytes=100)
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "server": ("127.0.0.1", 24280),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
    }
    bodies = chunks or [b""]
    incoming = iter(
        {"type": "http.request", "body": body, "more_body": index + 1 < len(bodies)}
        for index, body in enumerate(bodies)
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return next(incoming)

    async def send(message: Message) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


async def test_a_caller_with_the_token_is_known_by_its_credential() -> None:
    status, _, answer = await _ask(GOOD)
    assert (status, answer) == (200, {"credential": TOKEN.credential, "body": 0})


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer wrong", f"Basic {'t' * 40}", "Bearer " + "t" * 41, "Bearer é"]
)
async def test_a_missing_or_wrong_token_is_challenged(authorization: str) -> None:
    status, headers, answer = await _ask(GOOD | {"authorization": authorization})
    assert status == 401
    assert headers[b"www-authenticate"].startswith(b"Bearer")
    assert answer["error"]["kind"] == "unauthorized"


async def test_an_open_path_needs_no_token_but_a_known_host() -> None:
    assert (await _ask({"host": "localhost:24280"}, path="/health"))[0] == 200
    assert (await _ask({"host": "evil.example"}, path="/health"))[0] == 403


@pytest.mark.parametrize("host", ["localhost:24280", "LOCALHOST:24280", "127.0.0.1:24280", "[::1]:24280"])
async def test_loopback_names_with_our_port_are_ours(host: str) -> None:
    assert (await _ask(GOOD | {"host": host}))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:24280", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:24280", ""]
)
async def test_foreign_hosts_are_refused(host: str) -> None:
    assert (await _ask(GOOD | {"host": host}))[0] == 403


async def test_two_host_headers_are_refused() -> None:
    assert (await _ask([*GOOD.items(), ("host", "127.0.0.1:24280")]))[0] == 403


async def test_names_from_the_settings_are_ours_with_any_port_or_the_one_given() -> None:
    guard = AuthGate(_admitted, token=TOKEN, hosts=["devbox", "proxy:8443"])
    assert (await _ask(GOOD | {"host": "devbox"}, guard=guard))[0] == 200
    assert (await _ask(GOOD | {"host": "devbox:9"}, guard=guard))[0] == 200
    assert (await _ask(GOOD | {"host": "proxy:8443"}, guard=guard))[0] == 200
    assert (await _ask(GOOD | {"host": "proxy:8444"}, guard=guard))[0] == 403
    assert (await _ask(GOOD | {"host": "proxy"}, guard=guard))[0] == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:24280", "http://LOCALHOST:24280", "http://[::1]:24280"])
async def test_this_servers_own_pages_may_call(origin: str) -> None:
    assert (await _ask(GOOD | {"origin": origin}))[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "http://localhost", "http://127.0.0.1", "https://[::1]:1", "https://127.0.0.1:24280"],
)
async def test_pages_of_other_programs_on_this_machine_may_not(origin: str) -> None:
    assert (await _ask(GOOD | {"origin": origin}))[0] == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("devbox:24280", "http://devbox:24280", 200),
        ("devbox", "http://devbox", 200),
        ("devbox", "https://devbox", 200),  # TLS ends in front of the server
        ("devbox:443", "https://devbox", 200),
        ("devbox:24280", "http://devbox:3000", 403),
        ("devbox:24280", "https://devbox", 403),
        ("localhost:8080", "http://localhost:8080", 200),
        ("localhost:8080", "http://localhost:3000", 403),
        ("127.0.0.1:24280", "http://proxy:8443", 200),
        ("127.0.0.1:24280", "https://proxy:8443", 200),
        ("127.0.0.1:24280", "https://proxy:8444", 403),
        ("127.0.0.1:24280", "https://box.example", 200),
        ("127.0.0.1:24280", "http://box.example", 403),
        ("127.0.0.1:24280", "http://devbox", 403),
    ],
)
async def test_an_origin_is_ours_by_scheme_name_and_port(host: str, origin: str, status: int) -> None:
    hosts = ["devbox", "localhost", "proxy:8443", "box.example"]
    guard = AuthGate(_admitted, token=TOKEN, hosts=hosts, origins=["https://box.example"])
    assert (await _ask(GOOD | {"host": host, "origin": origin}, guard=guard))[0] == status


async def test_a_hundred_headers_are_the_limit() -> None:
    more = [(f"x-{number}", "") for number in range(98)]
    assert (await _ask([*GOOD.items(), *more]))[0] == 200
    status, _, answer = await _ask([("x-more", ""), *GOOD.items(), *more])
    assert (status, answer["error"]["kind"]) == (431, "too_large")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "file://", "http://localhost.evil.example", "chrome-extension://x"]
)
async def test_foreign_origins_are_refused_even_with_the_token(origin: str) -> None:
    assert (await _ask(GOOD | {"origin": origin}))[0] == 403


async def test_a_declared_body_over_the_limit_is_refused_unread() -> None:
    status, _, answer = await _ask(GOOD | {"content-length": "101"})
    assert (status, answer["error"]["kind"]) == (413, "too_large")


async def test_an_undeclared_body_is_cut_off_at_the_limit() -> None:
    chunked = GOOD | {"transfer-encoding": "chunked"}
    assert (await _ask(chunked, chunks=[b"x" * 60, b"x" * 41]))[0] == 413


async def test_an_undeclared_body_within_the_limit_arrives_whole() -> None:
    status, _, answer = await _ask(GOOD | {"transfer-encoding": "chunked"}, chunks=[b"x" * 60, b"x" * 40])
    assert (status, answer["body"]) == (200, 100)


async def test_websockets_are_closed() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    await AuthGate(_admitted, token=TOKEN)({"type": "websocket", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_without_a_token_callers_share_one_credential() -> None:
    status, _, answer = await _ask({"host": "localhost:24280"}, guard=AuthGate(_admitted, token=None))
    assert (status, answer["credential"]) == (200, "anybody")


def test_a_network_is_never_served_without_a_token_nor_with_every_folder() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.10"):
        assert is_loopback(host)
        refuse_open_binding(host, None, [])
    for host in ("0.0.0.0", "::", "192.168.1.2", "devbox", ""):
        refuse_open_binding(host, TOKEN, ["/projects"])
        with pytest.raises(ConfigError, match="central_server_host"):
            refuse_open_binding(host, None, ["/projects"])
        with pytest.raises(ConfigError, match="allowed_roots"):
            refuse_open_binding(host, TOKEN, [])
