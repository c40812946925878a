"""Upstreams of the modern era, and hooks around upstreams' tools."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from serena_central.hub.connection import MOST_QUESTIONS
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import MODERN, Era, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@asynccontextmanager
async def asked(running: RunningCentral, name: str, era: Era, questions: list[str]) -> AsyncGenerator[Client]:
    """A client that answers with its own name, and notes what it was asked."""

    async def elicit(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={"name": name})

    async with httpx2.AsyncClient(headers=running.authorized | {"x-serena-session": name}, timeout=60) as http:
        transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
        mode = "legacy" if era == "handshake" else MODERN
        async with Client(transport, mode=mode, elicitation_callback=elicit) as client:
            yield client


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_upstream_of_the_modern_era_is_called(tmp_path: Path, user: Path, era: Era) -> None:
    settings_of_user(user, {"one": scripted(modern_only=True)})
    async with running_central(tmp_path, QUICK) as running:
        questions: list[str] = []
        async with asked(running, "ann", era, questions) as ann:
            assert "one__echo" in {tool.name for tool in (await ann.list_tools()).tools}
            result = await ann.call_tool("one__echo", {"text": "hello"})
            assert isinstance(result.content[0], types.TextContent)
            assert result.content[0].text == "hello"
            result = await ann.call_tool("one__needs_input", {"text": "who?"})
            assert isinstance(result.content[0], types.TextContent)
            assert json.loads(result.content[0].text) == {"action": "accept", "content": {"name": "ann"}}
            assert questions == ["who?"]
            result = await ann.call_tool("one__needs_input", {"text": "who?", "more": MOST_QUESTIONS})
            assert f"it asked {MOST_QUESTIONS + 1} questions at once" in str(result.content[0])
            assert questions == ["who?"]
        (one,) = (await running.central.upstreams.hub()).upstreams()
        assert one.protocol == MODERN


async def test_hooks_run_around_upstreams_tools(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    seen = tmp_path / "seen"
    block = {"type": "command", "command": "echo no letters today >&2; exit 2"}
    note = {"type": "command", "command": f'printf "%s " "$TOOL_NAME" >> {seen}'}
    hooks = {
        "PreToolUse": [{"matcher": "mcp__one__echo", "hooks": [block]}],
        "PostToolUse": [{"matcher": "mcp__one__.*", "hooks": [note]}],
    }
    settings_of_user(user, {"one": scripted(log=str(log))}, hooks=hooks)
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with (
        running_central(tmp_path, QUICK) as running,
        running.raw("modern", x_serena_session="s", x_serena_project=str(root)) as client,
    ):
        blocked = await client.call("one__echo", text="a letter")
        assert blocked["isError"] is True
        assert "no letters today" in text_of(blocked)
        assert not events_in(log, "tools/call")
        assert text_of(await client.call("one__who")).isdigit()
        assert seen.read_text().split() == ["mcp__one__who"]
