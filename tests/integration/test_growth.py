"""What a server holds does not grow with the calls that it answers."""

import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Message

from serena_central.app import Application
from tests.support.central import running_parts
from tests.support.mcp import MODERN

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WARM_UP = 500
"""Calls that fill what is bounded: what lately happened, in many places."""

PAUSE_EVERY = 500
"""Calls, after which queued rows are written, as between the calls of agents."""


@pytest.mark.parametrize(("calls", "most_bytes"), [(1000, 300_000), (1_000_000, 2_000_000)])
async def test_memory_does_not_grow_with_calls(tmp_path: Path, calls: int, most_bytes: int) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    async with running_parts(tmp_path) as central:
        asked = [
            ("find_symbol", {"name_path_pattern": "Cart/total", "project": str(root)}),
            ("get_symbols_overview", {"relative_path": "cart.py", "project": str(root)}),
            ("search_for_pattern", {"substring_pattern": "total", "project": str(root)}),
            ("find_symbol", {"name_path_pattern": "Nothing", "project": str(root)}),
            ("read_file", {"relative_path": "missing.py", "project": str(root)}),
        ]
        await called(central, asked, WARM_UP)
        tracemalloc.start()
        try:
            await called(central, asked, WARM_UP)
            before = held()
            await called(central, asked, calls)
            after = held()
        finally:
            tracemalloc.stop()
    largest = [str(one) for one in after.compare_to(before, "lineno")[:10]]
    grown = sum(one.size_diff for one in after.compare_to(before, "filename"))
    assert grown < most_bytes, (grown / calls, largest)


async def called(central: Application, asked: list[tuple[str, dict[str, Any]]], calls: int) -> None:
    """Makes so many calls over HTTP's interface, in turns, from one session."""
    for number in range(calls):
        name, arguments = asked[number % len(asked)]
        body = await exchange(central, name, arguments, number)
        assert body["id"] == number, body
        if number % PAUSE_EVERY == 0:
            await central.store.writer.flush()
    await central.store.writer.flush()
    await anyio.sleep(0.05)


async def exchange(central: Application, name: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    content = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
    headers = {
        "host": "127.0.0.1",
        "authorization": central.token.header(),
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": name,
        "x-serena-session": "grows-not",
        "content-length": str(len(content)),
    }
    return json.loads(await answered(central.app, headers, content))


async def answered(app: ASGIApp, headers: dict[str, str], content: bytes) -> bytes:
    """The body of a response, without a socket between."""
    sent = [{"type": "http.request", "body": content, "more_body": False}]
    body = bytearray()

    async def receive() -> Message:
        if not sent:
            await anyio.sleep_forever()
        return sent.pop()

    async def send(message: Message) -> None:
        body.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 24280),
        "state": {},
    }
    await app(scope, receive, send)
    return bytes(body)


def held() -> tracemalloc.Snapshot:
    gc.collect()
    own = tracemalloc.Filter(inclusive=False, filename_pattern=tracemalloc.__file__)
    return tracemalloc.take_snapshot().filter_traces([own])
