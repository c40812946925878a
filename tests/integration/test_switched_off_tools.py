"""Tools that permission rules switch off are not listed, and clients hear when that changes."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    return root


@pytest.fixture
async def running(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path) as running:
        yield running


def rules(root: Path, **lists: list[str]) -> None:
    (root / ".claude" / "settings.json").write_text(json.dumps({"permissions": lists}))


async def listed(client: RawClient) -> set[str]:
    return {tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_tool_that_a_rule_switches_off_is_not_listed(running: RunningCentral, root: Path, era: str) -> None:
    async with running.raw(era, x_serena_session="own") as client:  # type: ignore[arg-type]
        everything = await listed(client)
        await client.call("activate_project", project=str(root))
        assert await listed(client) == everything
        rules(root, deny=["Edit", "mcp__serena-central__find_file", "Read(./.env)"], ask=["Grep"], allow=["Glob"])
        left = everything - await listed(client)
        assert {"create_text_file", "replace_symbol_body", "find_file", "search_for_pattern"} <= left
        assert not {"find_symbol", "list_dir", "read_file", "read_memory"} & left
        rules(root, deny=["mcp__serena"])
        assert await listed(client) == set()
        assert "denied by the permission rule" in text_of(await client.call("find_symbol", name_path_pattern="x"))
        rules(root)
        assert await listed(client) == everything


async def test_a_client_hears_at_its_next_call_that_its_tools_changed(running: RunningCentral, root: Path) -> None:
    async with running.raw("handshake") as client:
        await client.call("activate_project", project=str(root))
        assert "create_text_file" in await listed(client)
        headers = {**client.headers("", {}), "accept": "text/event-stream"}
        async with client.http.stream("GET", "/mcp", headers=headers) as stream:
            rules(root, deny=["Edit"])
            await client.call("create_text_file", relative_path="x", content="x")
            with anyio.fail_after(60):
                async for line in stream.aiter_lines():
                    if "notifications/tools/list_changed" in line:
                        break
    assert not (root / "x").exists()
