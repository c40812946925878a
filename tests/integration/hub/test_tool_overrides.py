"""What the settings say of upstreams' tools holds wherever these are listed, found, called, allowed and hooked."""

import json
from pathlib import Path
from typing import Any

import pytest

from serena_central.config.load import load_server_config
from serena_central.core.errors import ConfigError
from tests.support.central import running_central, sources_in
from tests.support.mcp import RawClient, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio

OVERRIDES: dict[str, Any] = {
    "mcp__one__echo": {"name": "say", "description": "Repeats a zebra"},
    "mcp__one__who": {"hidden": True},
    "mcp__one__strict": {"defaults": {"count": 7}},
}
SETTINGS = QUICK | {"hub.tools": OVERRIDES}


async def listed(client: RawClient) -> dict[str, dict]:
    return {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}


async def test_a_tool_is_renamed_described_and_hidden(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern") as client:
        tools = await listed(client)
        assert tools["one__say"]["description"] == "Repeats a zebra"
        assert not {"one__echo", "one__who"} & set(tools)
        assert text_of(await client.call("one__say", text="hello")) == "hello"
        for gone in ("one__echo", "one__who"):
            assert "no tool named" in text_of(await client.call(gone, text="x"))
        (sent,) = events_in(log, "tools/call")
        assert sent["read"]["params"]["name"] == "echo"
        async with running.http() as http:
            shown = (await http.get("/api/v1/upstreams/one", params={"project": str(root)})).json()["tools"]
        assert ("one__say", "say", "echo") in {(one["offered_as"], one["name"], one["tool"]) for one in shown}
        assert "who" not in {one["tool"] for one in shown}


async def test_defaults_are_arguments_unless_a_call_names_them(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern") as client:
        schema = (await listed(client))["one__strict"]["inputSchema"]
        assert schema["required"] == []
        assert schema["properties"]["count"]["default"] == 7
        for given in ({}, {"count": None, "name": None}, {"count": 2, "name": "x"}):
            assert "isError" not in await client.call("one__strict", **given)
        sent = [one["read"]["params"]["arguments"] for one in events_in(log, "tools/call")]
        assert sent == [{"count": 7}, {"count": 7}, {"count": 2, "name": "x"}]
        assert "less than the minimum" in text_of(await client.call("one__strict", count=0))


async def test_searching_finds_and_calls_tools_as_they_are_overridden(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with (
        running_central(tmp_path, SETTINGS | {"hub.listing": "search"}) as running,
        running.raw("modern") as client,
    ):
        found = json.loads(text_of(await client.call("search_tools", query="zebra")))
        assert [one["name"] for one in found] == ["one__say"]
        found = json.loads(text_of(await client.call("search_tools", query="who", max_results=50)))
        assert "one__who" not in [one["name"] for one in found]
        called = await client.call("call_upstream_tool", name="one__say", arguments={"text": "hi"})
        assert text_of(called) == "hi"
        hidden = await client.call("call_upstream_tool", name="one__who", arguments={})
        assert hidden["isError"] is True


@pytest.mark.parametrize(
    "rule", ["mcp__one__echo", "mcp__serena-central__one__echo", "mcp__serena-central__one__say", "mcp__one"]
)
async def test_rules_hold_for_a_renamed_tool_by_either_name(tmp_path: Path, user: Path, rule: str) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))}, permissions={"deny": [rule]})
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern") as client:
        assert "one__say" not in await listed(client)
        assert (await client.call("one__say", text="x"))["isError"] is True
        assert not events_in(log, "tools/call")


async def test_excluded_tools_and_hooks_go_by_the_tools_own_name(tmp_path: Path, user: Path) -> None:
    seen = tmp_path / "seen"
    note = {"type": "command", "command": f'printf "%s " "$TOOL_NAME" >> {seen}'}
    hooks = {"PostToolUse": [{"matcher": "mcp__one__echo", "hooks": [note]}]}
    settings_of_user(user, {"one": scripted()}, hooks=hooks)
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with (
        running_central(tmp_path, SETTINGS) as running,
        running.raw("modern", x_serena_session="s", x_serena_project=str(root)) as client,
    ):
        assert text_of(await client.call("one__say", text="x")) == "x"
        assert seen.read_text().split() == ["mcp__one__echo"]
    async with (
        running_central(tmp_path, SETTINGS | {"excluded_tools": ["one__echo"]}) as running,
        running.raw("modern") as client,
    ):
        assert "one__say" not in await listed(client)


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ("mcp__one__echo: {name: 'two words'}", "hub.tools.mcp__one__echo.name", "characters"),
        ("mcp__one__echo: {hidden: perhaps}", "hub.tools.mcp__one__echo.hidden", "true or false"),
        ("mcp__one__echo: {nmae: say}", "hub.tools.mcp__one__echo", "name, description, hidden, defaults"),
        ("echo: {name: say}", "hub.tools.echo", "mcp__SERVER__TOOL"),
        ("mcp__one__echo: say", "hub.tools.mcp__one__echo", "a mapping"),
    ],
)
def test_a_wrong_override_is_refused_with_file_line_and_key(tmp_path: Path, line: str, key: str, said: str) -> None:
    sources = sources_in(tmp_path)
    before = "port: 9000\nhub:\n  listing: all\n  tools:\n    mcp__one__who: {hidden: true}\n"
    sources.user.write_text(f"{before}    {line}\n")
    with pytest.raises(ConfigError) as refused:
        load_server_config({}, sources)
    assert f"{sources.user}:6" in str(refused.value)
    assert key in str(refused.value)
    assert said in str(refused.value)
