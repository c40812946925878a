"""What an upstream asks in the middle of a call reaches the client of that call, and no other."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from starlette.responses import Response

from serena_central.hub.connection import MOST_QUESTIONS
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import MODERN, Era, text_of
from tests.support.serving import serving
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])


@asynccontextmanager
async def person(running: RunningCentral, name: str, era: Era) -> AsyncGenerator[Client]:
    """A client that answers questions with its own name."""

    async def sample(_context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        asked = params.messages[0].content
        text = f"{name} was asked {asked.text if isinstance(asked, types.TextContent) else ''}"
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text=text), model="m")

    async def elicit(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": name})

    headers = running.authorized | {"x-serena-session": name}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
        mode = "legacy" if era == "handshake" else MODERN
        async with Client(transport, mode=mode, sampling_callback=sample, elicitation_callback=elicit) as client:
            yield client


async def called(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return result.content[0].text  # type: ignore[union-attr]


@ERAS
async def test_sampling_and_elicitation_reach_the_caller(tmp_path: Path, user: Path, era: Era) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, person(running, "ann", era) as ann:
        assert "ann was asked why" in await called(ann, "one__ask", text="why")
        answer = json.loads(await called(ann, "one__elicit", text="who?"))
        assert answer == {"action": "accept", "content": {"name": "ann"}}


async def test_roots_are_the_folder_that_the_session_works_in(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with (
        running_central(tmp_path, QUICK) as running,
        running.raw("modern", x_serena_session="s", x_serena_project=str(tmp_path)) as client,
    ):
        result = await client.call("one__roots")
        assert json.loads(result["content"][0]["text"])["roots"][0]["uri"] == tmp_path.as_uri()


async def test_a_client_without_sampling_is_not_asked(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        result = await client.call("one__ask", text="x")
        assert "does not support it" in result["content"][0]["text"]


async def test_a_call_has_no_more_than_some_questions_open_at_its_client(tmp_path: Path, user: Path) -> None:
    log = anyio.Path(tmp_path / "log.jsonl")
    settings_of_user(user, {"one": scripted(log=str(log))})
    open_now, may_answer = 0, anyio.Event()

    async def sample(_context: Any, _params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        nonlocal open_now
        open_now += 1
        if open_now == MOST_QUESTIONS:
            while (await log.read_text()).count("which is the limit") < 3:  # an answer makes room for another question
                await anyio.sleep(0.05)
            may_answer.set()
        await may_answer.wait()
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="yes"), model="m")

    async with (
        running_central(tmp_path, QUICK) as running,
        httpx2.AsyncClient(headers=running.authorized, timeout=30) as http,
        Client(
            streamable_http_client(f"{running.url}/mcp", http_client=http), mode="legacy", sampling_callback=sample
        ) as client,
    ):
        answers = await called(client, "one__pester", text=str(MOST_QUESTIONS + 3))
        assert (answers.count('"yes"'), answers.count("which is the limit")) == (MOST_QUESTIONS, 3)
        assert "yes" in await called(client, "one__ask", text="again")


async def test_a_server_that_asks_and_reads_nothing_is_left_without_answers(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__deaf", text="6000")) == "6000"
        wire = tmp_path / "home" / "logs" / "mcp" / "one.log"
        with anyio.fail_after(20):
            while "does not read answers as fast" not in await anyio.Path(wire).read_text():
                await anyio.sleep(0.05)


@ERAS
async def test_sixteen_sessions_are_never_asked_for_each_other(tmp_path: Path, user: Path, era: Era) -> None:
    """Over stdio: who asks is learned at the first question; from then on each session has its own process."""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running:
        async with person(running, "first", era) as first:
            assert "first was asked 0" in await called(first, "one__ask", text="0")

        async def one(number: int) -> None:
            async with person(running, f"p{number}", era) as client:
                for step in range(3):
                    assert await called(client, "one__echo", text=str(step)) == str(step)
                    assert f"p{number} was asked {step}" in await called(client, "one__ask", text=str(step))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(one, number)
    assert len(events_in(log, "started")) == 1 + 4


@asynccontextmanager
async def remote(kind: str, forgetting: set[bytes] | None = None) -> AsyncGenerator[str]:
    """A server made with the SDK, over HTTP. Once `forgetting` holds anything, it answers 404 to the sessions of that
    moment."""
    server = MCPServer("remote")

    @server.tool()
    async def echo(text: str) -> str:
        """Echoes."""
        return text

    @server.tool()
    async def ask(text: str, context: Context) -> str:
        """Asks the client."""
        message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
        await context.report_progress(1, 2, f"asking {text}")
        result = await context.session.create_message([message], max_tokens=5, related_request_id=context.request_id)
        return result.content.text  # type: ignore[union-attr]

    served = server.streamable_http_app() if kind == "http" else server.sse_app()
    seen: set[bytes] = set()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        session = next((value for name, value in scope.get("headers", ()) if name == b"mcp-session-id"), None)
        if forgetting and session is not None and session in forgetting | seen:
            forgetting.update(seen)
            seen.clear()
            await Response(status_code=404)(scope, receive, send)
            return
        if session is not None and not forgetting:
            seen.add(session)
        await served(scope, receive, send)

    async with serving(uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))) as url:
        yield url + ("/mcp" if kind == "http" else "/sse")


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_remote_server_is_called(tmp_path: Path, user: Path, kind: str) -> None:
    """REQ-MCP-003, REQ-MCP-004"""
    async with remote(kind) as url:
        settings_of_user(user, {"far": {"type": kind, "url": url}})
        async with running_central(tmp_path, QUICK) as running, person(running, "ann", "handshake") as ann:
            assert "far__echo" in [tool.name for tool in (await ann.list_tools()).tools]
            assert await called(ann, "far__echo", text="hello") == "hello"
            assert await called(ann, "far__ask", text="why") == "ann was asked why"


async def test_questions_of_a_remote_server_reach_their_callers_over_one_connection(tmp_path: Path, user: Path) -> None:
    async with remote("http") as url:
        settings_of_user(user, {"far": {"type": "http", "url": url}})
        async with running_central(tmp_path, QUICK) as running:

            async def one(number: int) -> None:
                async with person(running, f"p{number}", "handshake") as client:
                    for step in range(3):
                        assert await called(client, "far__ask", text=str(step)) == f"p{number} was asked {step}"

            async with anyio.create_task_group() as tasks:
                for number in range(16):
                    tasks.start_soon(one, number)
            assert len((await running.central.upstreams.hub()).upstreams()) == 1


async def test_a_server_that_forgot_the_session_is_initialized_again(tmp_path: Path, user: Path) -> None:
    forgotten: set[bytes] = set()
    async with remote("http", forgotten) as url:
        settings_of_user(user, {"far": {"type": "http", "url": url}})
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            assert text_of(await client.call("far__echo", text="1")) == "1"
            forgotten.add(b"all that are known")
            assert text_of(await client.call("far__echo", text="2")) == "2"
