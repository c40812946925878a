"""Sixteen sessions at one upstream, all at once: ids, progress, cancellations and questions reach the right caller."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import uvicorn
from mcp.client import Client
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era, sdk_client
from tests.support.serving import serving
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SESSIONS = 16

STEPS = 2
"""Calls of each kind that a session makes, one after the other; the kinds are called at the same time."""


HEARTBEAT = "one__"
"""What the server itself reports of a call that takes long begins so."""


LIBRARY_PATIENCE_S = 5.0
"""After which the MCP SDK gives up to send a cancellation."""


SETTINGS = QUICK | {"hub.start_timeout_s": 200}
"""Seventeen processes that start together on a machine that does much else."""


class Name(BaseModel):
    name: str


@asynccontextmanager
async def remote(cancelled: list[str], reached: Callable[[Any], Any] = lambda app: app) -> AsyncGenerator[str]:
    """The tools of the scripted server over HTTP; `cancelled` gets the texts of calls of `hold` that were cancelled.
    `reached` wraps its application."""
    server = MCPServer("remote")

    @server.tool()
    async def echo(text: str) -> str:
        return text

    @server.tool()
    async def progress(text: str, context: Context) -> str:
        for step in (1, 2, 3):
            await context.report_progress(step, 3, f"{text} {step}")
        return text

    @server.tool()
    async def elicit(text: str, context: Context) -> str:
        answer = await context.elicit(text, Name)
        return answer.model_dump_json()

    @server.tool()
    async def hold(text: str, context: Context) -> str:
        await context.report_progress(1, 3, f"holding {text}")
        try:
            await anyio.sleep_forever()
        except BaseException:
            cancelled.append(text)
            raise
        return text

    config = uvicorn.Config(reached(server.streamable_http_app()), log_config=None, timeout_graceful_shutdown=1)
    async with serving(uvicorn.Server(config)) as url:
        yield f"{url}/mcp"


async def called(client: Client, tool: str, text: str, **options: Any) -> str:
    result = await client.call_tool(f"one__{tool}", {"text": text}, **options)
    return result.content[0].text  # type: ignore[union-attr]


class Visitor:
    """One session, which answers questions with its own name and the question."""

    def __init__(self, number: int) -> None:
        self.name = f"p{number}"
        self.era: Era = "modern" if number % 2 else "handshake"
        self.asked: list[str] = []
        self.heard: list[tuple[str, str]] = []
        """The call, and what was reported of it."""

    def connected(self, running: RunningCentral) -> Any:
        headers = running.authorized | {"x-serena-session": self.name}
        return sdk_client(running.url, self.era, headers, timeout_s=200, elicitation_callback=self._elicit)

    async def _elicit(self, _context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": f"{self.name} on {params.message}"})

    def texts(self, kind: str) -> list[str]:
        return [f"{self.name} {kind} {step}" for step in range(STEPS)]

    async def storm(self, client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            for one in (self._echo, self._progress, self._cancel, self._question):
                tasks.start_soon(one, client)
        assert self.asked == self.texts("question")
        assert all(message[:-2] == text for text, message in self.heard)

    async def _echo(self, client: Client) -> None:
        for text in self.texts("echo"):
            assert await called(client, "echo", text) == text

    async def _progress(self, client: Client) -> None:
        for text in self.texts("progress"):

            async def note(_value: float, _total: float | None, message: str | None, text: str = text) -> None:
                if message and not message.startswith(HEARTBEAT):
                    self.heard.append((text, message))

            assert await called(client, "progress", text, progress_callback=note) == text

    async def _cancel(self, client: Client) -> None:
        for text in self.texts("hold"):
            await self.cancel(client, text)

    async def cancel(self, client: Client, text: str) -> None:
        """Calls `hold`, and cancels it as soon as it is known to have begun."""
        with anyio.CancelScope() as call:

            async def held(_value: float, _total: float | None, message: str | None) -> None:
                if message and not message.startswith(HEARTBEAT):
                    assert message == f"holding {text}"
                    call.cancel()

            pytest.fail(await called(client, "hold", text, progress_callback=held))

    async def _question(self, client: Client) -> None:
        for text in self.texts("question"):
            answer = await called(client, "elicit", text)
            assert f"{self.name} on {text}" in answer, answer


async def storm(running: RunningCentral) -> list[str]:
    """Returns the texts of the calls that were cancelled."""
    visitors = [Visitor(number) for number in range(SESSIONS)]

    async def one(visitor: Visitor) -> None:
        async with visitor.connected(running) as client:
            await visitor.storm(client)

    async with anyio.create_task_group() as tasks:
        for visitor in visitors:
            tasks.start_soon(one, visitor)
    assert any(visitor.heard for visitor in visitors)
    return sorted(text for visitor in visitors for text in visitor.texts("hold"))


async def test_a_storm_over_one_connection_to_a_remote_server(tmp_path: Path, user: Path) -> None:
    cancelled: list[str] = []
    async with remote(cancelled) as url:
        settings_of_user(user, {"one": {"type": "http", "url": url}})
        async with running_central(tmp_path, SETTINGS) as running:
            expected = await storm(running)
            assert len((await running.central.upstreams.hub()).upstreams()) == 1
            with anyio.fail_after(60):
                while len(cancelled) < len(expected):
                    await anyio.sleep(0.01)
            assert sorted(cancelled) == expected


async def test_a_slow_server_hears_of_all_that_is_cancelled(tmp_path: Path, user: Path) -> None:
    """Messages reach it one by one. Those that wait for the first longer than a library's patience are not lost."""
    cancelled: list[str] = []
    slow = anyio.Event()

    def reached(app: Any) -> Any:
        async def first_is_slow(scope: Any, receive: Any, send: Any) -> None:
            async def noted() -> Any:
                message = await receive()
                if b"notifications/cancelled" in message.get("body", b"") and not slow.is_set():
                    slow.set()
                    await anyio.sleep(LIBRARY_PATIENCE_S + 1)
                return message

            await app(scope, noted, send)

        return first_is_slow

    async with remote(cancelled, reached) as url:
        settings_of_user(user, {"one": {"type": "http", "url": url}})
        async with running_central(tmp_path, SETTINGS) as running:
            visitor = Visitor(0)
            async with visitor.connected(running) as client, anyio.create_task_group() as tasks:
                for text in ("a", "b", "c"):
                    tasks.start_soon(visitor.cancel, client, text)
            with anyio.fail_after(60):
                while len(cancelled) < 3:
                    await anyio.sleep(0.01)
            assert slow.is_set()
            assert sorted(cancelled) == ["a", "b", "c"]


async def test_a_storm_over_stdio(tmp_path: Path, user: Path) -> None:
    """Who is asked can't be known from a message: each session has a process of its own for that tool alone."""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, SETTINGS) as running:
        first = Visitor(100)
        async with first.connected(running) as client:
            assert "p100 on who" in await called(client, "elicit", "who")
        expected = await storm(running)
        with anyio.fail_after(60):
            while len(events_in(log, "cancelled")) < len(expected):
                await anyio.sleep(0.05)
        assert sorted(one["text"] for one in events_in(log, "cancelled")) == expected
    calls = [json.loads(line).get("read", {}) for line in log.read_text().splitlines()]
    assert len([one for one in calls if one.get("method") == "tools/call"]) == SESSIONS * STEPS * 4 + 1
    assert len(events_in(log, "started")) == 1 + SESSIONS
