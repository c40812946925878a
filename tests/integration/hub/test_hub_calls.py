"""Upstreams' tools are listed and called like our own, in both eras, by real processes."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.hub import list_changes, stdio
from serena_central.hub.snapshots import UpstreamState
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era, RawClient, sdk_client, text_of
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])


async def listed(client: RawClient) -> dict[str, dict]:
    return {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}


async def state(running: RunningCentral, name: str) -> UpstreamState | None:
    return (await running.central.upstreams.hub()).state(name)


@ERAS
async def test_tools_of_an_upstream_are_listed_and_called(tmp_path: Path, user: Path, era: Era) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw(era) as client:
        tools = await listed(client)
        assert tools["one__echo"]["description"] == "Does echo"
        assert tools["one__echo"]["inputSchema"]["properties"] == {"text": {"type": "string"}}
        assert text_of(await client.call("one__echo", text="hello")) == "hello"


@ERAS
async def test_all_kinds_of_content_pass_as_they_are(tmp_path: Path, user: Path, era: Era) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw(era) as client:
        result = await client.call("one__all")
        assert [part["type"] for part in result["content"]] == ["text", "image", "audio", "resource_link", "resource"]
        assert result["content"][4]["resource"] == {"uri": "scripted://two", "text": "embedded"}
        assert result["structuredContent"] == {"value": [1, 2, {"three": None}]}
        assert result["_meta"]["own"] == "kept"
        failed = await client.call("one__error", text="why")
        assert failed["isError"] is True
        assert text_of(failed) == "failed: why"


async def test_arguments_are_checked_before_anything_is_sent(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-006"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        refused = await client.call("one__strict", count=0, other=1)
        assert refused["isError"] is True
        assert "count: 0 is less than the minimum of 1" in text_of(refused)
        assert "Parameters: count, name." in text_of(refused)
        assert not events_in(log, "tools/call")
        assert "isError" not in await client.call("one__strict", count=1, name=None, semantic_context="words")
        (sent,) = events_in(log, "tools/call")
        assert sent["read"]["params"]["arguments"] == {"count": 1}


async def test_listing_starts_nothing_after_the_first_time(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-005"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        first = await listed(client)
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert await listed(client) == first
        assert len(events_in(log, "started")) == 1
        assert await state(running, "one") is None
        assert text_of(await client.call("one__echo", text="x")) == "x"
        assert len(events_in(log, "started")) == 2


async def test_an_upstream_that_is_killed_starts_again_at_the_next_call(tmp_path: Path, user: Path) -> None:
    """REL-004"""
    settings_of_user(user, {"one": scripted(), "two": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        before = text_of(await client.call("one__who"))
        other = text_of(await client.call("two__who"))
        dead = await client.call("one__boom")
        assert dead["isError"] is True
        assert "not available" in text_of(dead)
        assert "exit code -9" in text_of(dead)
        assert text_of(await client.call("one__who")) != before
        assert text_of(await client.call("two__who")) == other


async def test_after_the_fourth_crash_it_stays_down_until_a_person_restarts_it(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-008, REL-004"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        for _ in range(4):
            await client.call("one__boom")
        refused = text_of(await client.call("one__echo", text="x"))
        assert "serena-central mcp restart one" in refused
        assert await state(running, "one") is UpstreamState.FAILED
        assert len(events_in(log, "started")) == 4
        hub = await running.central.upstreams.hub()
        assert await hub.restart("one") == 0  # nothing ran; its failures are forgotten
        assert text_of(await client.call("one__echo", text="x")) == "x"


ANSWERS_ALWAYS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | json.loads(sys.argv[1])), flush=True)
"""


def always(**answer: Any) -> dict[str, Any]:
    """The entry of a server that has one answer to everything."""
    return {"command": sys.executable, "args": ["-c", ANSWERS_ALWAYS, json.dumps(answer)]}


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (always(result=None), "it refused the connection: its answer does not follow the protocol"),
        (always(error={"code": -32000, "message": "no licence"}), "it refused the connection: no licence"),
        (scripted(exit_at_start=3), "exit code 3; its stderr ends with: cannot start: no database"),
        (scripted(never_initialize=True) | {"env": {"MCP_TIMEOUT": "1000"}}, "it did not start within 1 s"),
    ],
)
async def test_one_that_does_not_start_says_why(tmp_path: Path, user: Path, bad: dict, expected: str) -> None:
    settings_of_user(user, {"bad": bad, "good": scripted()})
    async with (
        running_central(tmp_path, QUICK) as running,
        running.raw("modern") as client,
    ):
        tools = await listed(client)
        assert "good__echo" in tools
        assert not [name for name in tools if name.startswith("bad__")]
        (bad,) = [one for one in (await running.central.upstreams.hub()).upstreams() if one.name == "bad"]
        assert expected in bad.why


@pytest.mark.parametrize("script", [{"banner": "Welcome to the server!"}, {"stderr_bytes": 10_000_000}, {"fork": True}])
async def test_garbage_floods_and_forks_cost_nothing(tmp_path: Path, user: Path, script: dict) -> None:
    """REQ-MCP-002"""
    settings_of_user(user, {"one": scripted(**script)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":ID,"result":[]}',
        '{"jsonrpc":"2.0","id":ID,"result":null}',
        '{"id": ID, "jsonrpc": "2.0", "error": {"code": "EACCES"}}',
        '{"result":["of the TypeScript SDK"],"jsonrpc":"2.0","id":ID}',
        '{"jsonrpc":"2.0","id":ID,"result":{"content":' + "[" * 2000,
        '[{"jsonrpc":"2.0","id":ID,"result":[]}]',
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tmp_path: Path, user: Path, line: str) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with anyio.fail_after(60):  # a call has 300 s
            failed = await client.call("one__raw", text=line)
        assert failed["isError"] is True
        assert "its answer does not follow the protocol" in text_of(failed)
        assert text_of(await client.call("one__echo", text="x")) == "x"


async def test_answers_in_a_batch_are_taken_apart(tmp_path: Path, user: Path) -> None:
    """Of which some are for nobody."""
    answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"in a batch"}]}}'
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with anyio.fail_after(60):  # a call has 300 s
            assert text_of(await client.call("one__raw", text=f"[1, {answer}, null]")) == "in a batch"
        assert text_of(await client.call("one__raw", text=f"[]\n[[]]\n{answer}")) == "in a batch"


async def test_an_answer_with_a_number_that_is_none_is_passed_on(tmp_path: Path, user: Path) -> None:
    answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"read"}],"_meta":{"a":NaN}}}'
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__raw", text=answer)) == "read"


async def test_an_error_with_the_code_of_a_closed_connection_is_the_servers_own(tmp_path: Path, user: Path) -> None:
    """-32000 is what many servers use for all their errors. The connection goes on."""
    error = '{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"the quota is used up"}}'
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        first = text_of(await client.call("one__who"))
        refused = text_of(await client.call("one__raw", text=error))
        assert "refused the request (-32000): the quota is used up" in refused
        assert text_of(await client.call("one__who")) == first


async def test_an_answer_that_is_too_long_fails_its_call_at_once(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE_BYTES", 1_000_000)
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with anyio.fail_after(60):
            for line in ('{"jsonrpc":"2.0","id":ID,"result":"%s"}', '{"result":"%s","jsonrpc":"2.0","id":ID}'):
                failed = await client.call("one__raw", text=line % ("x" * 2_000_000))
                assert "its answer has 2 MB, the limit is 1 MB" in text_of(failed)
        assert text_of(await client.call("one__echo", text="x")) == "x"


async def test_an_answer_of_too_many_parts_fails_its_call_at_once(tmp_path: Path, user: Path) -> None:
    """Many small ones take a thousand times the memory of their text."""
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with anyio.fail_after(60):
            blocks = ",".join(['{"type":"text","text":"x"}'] * 200_000)
            answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[' + blocks + "]}}"
            failed = await client.call("one__raw", text=answer)
        assert "more than 200,000 objects and lists" in text_of(failed)
        assert text_of(await client.call("one__echo", text="x")) == "x"


async def test_lists_that_change_whenever_they_are_read_are_read_ever_more_rarely(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_changes, "PAUSE_S", 600)
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), restless=True)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        for number in range(30):
            assert text_of(await client.call("one__echo", text=str(number))) == str(number)
    assert 1 <= len(events_in(log, "tools/list")) <= 2


async def test_lists_that_could_not_be_read_after_a_change_are_read_again(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says only once that they have changed."""
    monkeypatch.setattr(list_changes, "PAUSE_S", 0.02)
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log), failing_lists=[2, 3])})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert "one__added" not in await listed(client)
        await client.call("one__grow", text="added")
        with anyio.fail_after(30):
            while "one__added" not in await listed(client):
                await anyio.sleep(0.02)
        (known,) = (await running.central.upstreams.hub()).upstreams()
        assert known.restarts == 0
    assert len(events_in(log, "tools/list")) == 4


async def test_of_lists_without_measure_the_beginning_is_offered(
    tmp_path: Path, user: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flood = [
        {"name": f"tool {number}", "description": "x" * 500_000, "inputSchema": {"type": "object"}}
        for number in range(20)
    ]
    (tmp_path / "tools.json").write_text(json.dumps(flood))
    settings_of_user(user, {"one": scripted(tools_file=str(tmp_path / "tools.json"))})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        found = await client.call("search_tools", query="tool", max_results=50)
        assert not found["isError"]
        assert text_of(await client.call("call_upstream_tool", name="one__echo", arguments={"text": "x"})) == "x"
        (known,) = [one for one in (await running.central.upstreams.hub()).upstreams() if one.name == "one"]
        assert 25 < known.tools < 35
    assert f"only the first {known.tools} of its tools are offered" in caplog.text


async def test_half_a_surrogate_pair_costs_an_answer_nothing_else(tmp_path: Path, user: Path) -> None:
    """JavaScript's JSON.stringify writes one where a text was cut within an emoji."""
    settings_of_user(user, {"one": scripted()})
    content = r'[{"type":"text","text":"\u00e9 cut here: \ud83d"}]'
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        with anyio.fail_after(60):
            answer = await client.call(
                "one__raw", text='{"result":{"content":' + content + '},"jsonrpc":"2.0","id":ID}'
            )
        assert text_of(answer) == "é cut here: ?"


async def test_a_call_that_is_never_answered_ends_at_its_deadline(tmp_path: Path, user: Path) -> None:
    """REQ-MCP-006"""
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log)) | {"timeout": 500}})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert (await client.call("one__never"))["isError"] is True
        assert text_of(await client.call("one__echo", text="x")) == "x"
        assert len(events_in(log, "started")) == 1
        assert len(events_in(log, "notifications/cancelled")) == 1


async def test_sixteen_sessions_share_one_process(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK) as running:
        found: list[str] = []

        async def one(number: int) -> None:
            async with running.raw("modern", x_serena_session=f"s{number}") as client:
                for step in range(10):
                    text = f"{number}-{step}"
                    assert text_of(await client.call("one__echo", text=text)) == text
                found.append(text_of(await client.call("one__who")))

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(one, number)
        assert len(set(found)) == 1
        assert len(found) == 16
        assert len(events_in(log, "started")) == 1


async def test_each_session_gets_the_progress_of_its_own_calls(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    heard: dict[int, list[str | None]] = {}

    async def one(running: RunningCentral, number: int) -> None:
        mine = heard.setdefault(number, [])

        async def progress(_value: float, _total: float | None, message: str | None) -> None:
            mine.append(message)

        headers = running.authorized | {"x-serena-session": f"s{number}"}
        async with sdk_client(running.url, "handshake", headers) as client:
            await client.call_tool("one__progress", {"text": f"of {number}"}, progress_callback=progress)

    async with running_central(tmp_path, QUICK) as running, anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(one, running, number)
    for number, messages in heard.items():
        assert messages
        assert {message for message in messages if message and message.startswith("of ")} <= {
            f"of {number} {step}" for step in (1, 2, 3)
        }


async def test_many_tools_are_found_by_words_instead_of_listed(tmp_path: Path, user: Path) -> None:
    more = [
        {
            "name": f"tool_{number}",
            "description": f"Sends a letter to {number} " * 20,
            "inputSchema": {"type": "object"},
        }
        for number in range(60)
    ]
    more[17]["description"] = "Opens a pull request"
    settings_of_user(user, {"one": scripted(tools=more)})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        tools = await listed(client)
        assert {"search_tools", "call_upstream_tool", "read_result"} <= tools.keys()
        assert not [name for name in tools if name.startswith("one__")]
        found = (await client.call("search_tools", query="pull requests"))["structuredContent"]["result"]
        assert found[0]["name"] == "one__tool_17"
        result = await client.call("call_upstream_tool", name="one__echo", arguments={"text": "hi"})
        assert text_of(result) == "hi"


async def test_without_upstreams_there_is_no_trace_of_the_hub(tmp_path: Path, user: Path) -> None:
    async with running_central(tmp_path) as running, running.raw("modern") as client:
        assert not {"search_tools", "call_upstream_tool", "read_result"} & (await listed(client)).keys()
        await client.call("list_projects")
        assert running.central.upstreams.running is None


async def test_a_denied_tool_is_neither_listed_nor_called(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()}, permissions={"deny": ["mcp__one__echo"]})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        tools = await listed(client)
        assert "one__who" in tools
        assert "one__echo" not in tools
        refused = await client.call("one__echo", text="x")
        assert "denied by the permission rule mcp__one__echo" in text_of(refused)


async def test_a_changed_configuration_counts_at_the_next_call(tmp_path: Path, user: Path) -> None:
    """REQ-INTEGRATION-001"""
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert "one__echo" in await listed(client)
        settings_of_user(user, {"two": scripted()})
        assert text_of(await client.call("two__echo", text="x")) == "x"
        assert "There is no tool" in text_of(await client.call("one__echo", text="x"))


async def test_one_that_no_configuration_has_any_more_is_ended(tmp_path: Path, user: Path) -> None:
    log = tmp_path / "log.jsonl"
    settings_of_user(user, {"one": scripted(log=str(log)), "two": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert text_of(await client.call("one__echo", text="x")) == "x"
        assert text_of(await client.call("two__echo", text="x")) == "x"
        settings_of_user(user, {"one": scripted(log=str(log)) | {"disabled": True}, "two": scripted()})
        assert "one__echo" not in await listed(client)
        with anyio.fail_after(30):
            while await state(running, "one") is not None:
                await anyio.sleep(0.01)
        assert len(events_in(log, "eof")) == 1
        assert await state(running, "two") is UpstreamState.READY


async def test_servers_of_a_repository_wait_for_trust(tmp_path: Path, user: Path) -> None:
    """REQ-INTEGRATION-001"""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": scripted()}}))
    settings_of_user(user, {}, enableAllProjectMcpServers=True)
    for trusted, expected in (([], False), ([str(root)], True)):
        async with (
            running_central(tmp_path, QUICK | {"trusted_roots": trusted}) as running,
            running.raw("modern", x_serena_project=str(root)) as client,
        ):
            assert ("own__echo" in await listed(client)) is expected


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "serena-proxy"},
        {"command": "uvx", "args": ["--from", "serena-central", "serena-mcp-server"]},
        {"command": sys.executable, "args": ["-m", "serena_central.proxy"]},
    ],
)
async def test_our_own_server_is_not_an_upstream(tmp_path: Path, user: Path, entry: dict) -> None:
    settings_of_user(user, {"self": entry})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert not [name for name in await listed(client) if name.startswith("self__")]
        assert "serena-central itself" in (await running.central.upstreams.hub()).of(Path.home()).left_out["self"]


async def test_a_session_that_came_through_a_hub_has_no_upstreams(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running:
        async with running.raw("modern", x_serena_hops="1", x_serena_session="a") as client:
            assert "one__echo" not in await listed(client)
        async with running.raw("modern", x_serena_session="b") as client:
            assert "one__echo" in await listed(client)
