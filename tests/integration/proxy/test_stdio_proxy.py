"""Clients over stdio through a real proxy to a real server: both eras, many at once, and what clients get wrong."""

import json
import random
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation

from tests.support.child import PATIENCE_S, Child, environment
from tests.support.mcp import MODERN, Era, text_of
from tests.support.proxy import PROXY, proxying

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["handshake", "modern"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_official_client_works_over_stdio(serving: Child, era: Era) -> None:
    command, *arguments = PROXY
    parameters = StdioServerParameters(
        command=command, args=arguments, env=environment(serving.folder), cwd=serving.folder
    )
    with anyio.fail_after(60):
        async with Client(
            stdio_client(parameters),
            mode="legacy" if era == "handshake" else MODERN,
            client_info=Implementation(name="sdk", version="1"),
        ) as client:
            assert "find_symbol" in [tool.name for tool in (await client.list_tools()).tools]
            answers: list[str] = []

            async def ask() -> None:
                result = await client.call_tool("get_current_config", {})
                assert not result.is_error
                answers.append(json.loads(result.content[0].text)["session"])  # pyright: ignore

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(ask)
            assert len(answers) == 10
            assert len(set(answers)) == 1
            assert answers[0].startswith("proxy-")


async def test_a_client_whose_folder_was_deleted_is_served(serving: Child, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && exec {' '.join(PROXY)}"
    parameters = StdioServerParameters(command="sh", args=["-c", command], env=environment(serving.folder))
    with anyio.fail_after(60):
        async with Client(stdio_client(parameters), mode="legacy") as client:
            assert not (await client.call_tool("get_current_config", {})).is_error


async def test_the_server_knows_the_client_its_folder_and_its_conversation(serving: Child, tmp_path: Path) -> None:
    folder = tmp_path / "prøject  42%"
    folder.mkdir()
    async with proxying(serving.folder, "modern", CLAUDE_PROJECT_DIR=str(folder)) as client:
        session = await client.session()
        async with serving.http() as http:
            shown = (await http.get(f"/api/v1/sessions/{session}")).json()
        assert shown["working_folder"] == str(folder)
        assert shown["client_name"] == "proxied"
        assert shown["identified_by"] == "explicit"
    async with proxying(serving.folder, "modern", "--project", str(tmp_path), "--context", "ide") as client:
        config = json.loads(text_of(await client.call("get_current_config")))
        assert config["working_folder"] == str(tmp_path)


async def test_twenty_clients_share_a_server_and_nothing_else(serving: Child) -> None:
    sessions: list[str] = []

    async def one(number: int) -> None:
        async with proxying(serving.folder, ERAS[number % 2]) as client:
            await client.open()
            session = await client.session()
            sessions.append(session)
            assert {await client.session() for _ in range(5)} == {session}

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert len(set(sessions)) == 20


@pytest.mark.parametrize("era", ERAS)
async def test_a_thousand_calls_in_any_order_with_cancels_get_one_answer_each_and_cancelled_ones_one_at_most(
    serving: Child, tmp_path: Path, era: Era
) -> None:
    chance = random.Random(7)
    ids: list[int | str] = [10_000 + number if number % 2 else f"id-{number}" for number in range(1000)]
    chance.shuffle(ids)
    cancelled = set(chance.sample(ids, 200))
    async with proxying(serving.folder, era) as client:
        await client.open()

        async def send() -> None:
            for number in ids:
                arguments = {"relative_path": f"nowhere/{number}.py", "project": str(tmp_path)}
                await client.begin("tools/call", {"name": "read_file", "arguments": arguments}, as_id=number)
                if number in cancelled:
                    await client.notify("notifications/cancelled", {"requestId": number})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            with anyio.fail_after(120):
                while not set(ids) - cancelled <= set(client.answers):
                    await client.read()
        await client.ask("ping" if era == "handshake" else "tools/list")
        for number in ids:
            answers = client.answers.get(number, [])
            assert len(answers) == 1 or (number in cancelled and not answers)
            assert all(f"nowhere/{number}.py" in text_of(answer["result"]) for answer in answers)


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_no_message_is_answered_and_the_rest_goes_on(serving: Child, era: Era) -> None:
    async with proxying(serving.folder, era) as client:
        await client.open()
        bad = {
            b"{": -32700,
            b"\xff\xfe{}": -32700,
            b'{"a": "\x00"}': -32700,
            b"[" * 100_000: -32700,
            b"[]": -32600,
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
            b"7": -32600,
            b'{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
            b'{"jsonrpc":"2.0","id":{},"method":"ping"}': -32600,
            b'{"jsonrpc":"2.0","id":true,"method":"ping"}': -32600,
            b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}': -32700,
            b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}': -32600,
            b'{"jsonrpc":"2.0"}': -32600,
            b"x" * (100 * 1024 * 1024): -32600,
        }
        for line, code in bad.items():
            client.answers.clear()
            await client.send_line(line)
            answer = await client.answer(None)
            assert answer["error"]["code"] == code, (line[:60], answer)
        for empty in (b"", b"  ", b"\r"):
            await client.send_line(empty)
        await client.send_line(b'{"jsonrpc":"2.0","id":5000,"method":"ping","params":[]}')
        assert (await client.answer(5000))["error"]["code"] == -32600
        for _ in range(2000):
            await client.notify("notifications/progress", {"progressToken": "none", "progress": 1})
        assert (await client.ask("no/such/method"))["error"]["code"] == -32601
        assert "result" in await client.ask("tools/list")


async def test_names_that_no_header_carries_unchanged_arrive(serving: Child) -> None:
    """The modern era repeats a tool's name in a header, and servers compare the two."""
    async with proxying(serving.folder, "modern") as client:
        for name in ("ünïcode", "with\nline end", " spaces ", "=?base64?eA==?=", "\U0001f600", "x" * 3000):
            answer = await client.ask("tools/call", {"name": name, "arguments": {}})
            assert "There is no tool named" in text_of(answer["result"]), answer


async def test_a_request_too_large_for_the_server_is_answered_with_its_reason(serving: Child) -> None:
    async with proxying(serving.folder, "modern") as client:
        answer = await client.ask("tools/call", {"name": "read_file", "arguments": {"relative_path": "x" * 20_000_000}})
        assert "bytes" in answer["error"]["message"]
        assert "result" in await client.ask("tools/list")


async def test_a_client_that_reads_nothing_makes_the_server_wait_and_no_memory_grow(
    serving: Child, tmp_path: Path
) -> None:
    """Sixty-four answers of 2 MB each are on their way before it reads the first."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "large.txt").write_text("x" * 2_000_000)
    arguments = {"relative_path": "large.txt", "project": str(tmp_path), "max_answer_chars": 3_000_000}
    async with proxying(serving.folder, "modern") as client, serving.http() as http:
        session = await client.session()
        ids = [f"large-{number}" for number in range(64)]
        for number in ids:
            await client.begin("tools/call", {"name": "read_file", "arguments": arguments}, as_id=number)
        with anyio.fail_after(PATIENCE_S):
            while (await http.get(f"/api/v1/sessions/{session}")).json()["tool_call_count"] <= len(ids):
                await anyio.sleep(0.01)
        for number in ids:
            assert len(text_of((await client.answer(number))["result"])) >= 2_000_000
        assert most_memory_kb(client.process.pid) < 100_000


def most_memory_kb(pid: int) -> int:
    """The most that a process has held in memory so far."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])


async def test_half_a_line_before_the_end_counts_and_the_last_answers_arrive(serving: Child) -> None:
    async with proxying(serving.folder, "modern") as client:
        await client.ask("tools/list")
        await client.send_raw(client.message("tools/list", {}, "last"))
        await client.end_input()
        assert "result" in await client.answer("last")
        assert await client.ended() == 0
    async with proxying(serving.folder, "modern") as client:
        await client.send_raw(b'{"jsonrpc":"2.0","id":1,"meth')
        await client.end_input()
        assert (await client.answer(None))["error"]["code"] == -32700
        assert await client.ended() == 0


async def test_input_from_a_file_is_read_as_from_a_pipe(serving: Child, tmp_path: Path) -> None:
    async with proxying(serving.folder, "modern") as client:
        lines = [client.message("tools/list", {}, number) for number in range(20)]
    script = tmp_path / "script"
    script.write_bytes(b"\n".join(lines))
    with script.open("rb") as source, anyio.fail_after(60):
        ended = await anyio.run_process(list(PROXY), stdin=source, env=environment(serving.folder), cwd=tmp_path)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(20))
    assert all("result" in answer for answer in answers)


async def test_a_client_that_asks_for_its_roots_is_heard(serving: Child, tmp_path: Path) -> None:
    async with proxying(serving.folder, "handshake") as client:
        await client.open(roots={"listChanged": True})
        with anyio.fail_after(60):
            while not client.told:
                await client.read()
        (asked,) = client.told
        assert asked["method"] == "roots/list"
        result = {"roots": [{"uri": tmp_path.as_uri(), "name": "here"}]}
        await client.send_line(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())
        assert "result" in await client.ask("ping")


async def test_printed_configuration_starts_a_proxy(serving: Child) -> None:
    ended = await anyio.run_process([*PROXY, "--print-config", "--context", "ide"], env=environment(serving.folder))
    entry = json.loads(ended.stdout)["mcpServers"]["serena"]
    assert entry["args"][-2:] == ["--context", "ide"]
    assert entry["env"] == {"SERENA_CENTRAL_HOME": str(serving.folder / "home")}
    command = (entry["command"], *entry["args"])
    async with proxying(serving.folder, "modern", command=command) as client:
        assert (await client.session()).startswith("proxy-")


async def test_wrong_usage_is_told_on_stderr(serving: Child) -> None:
    ended = await anyio.run_process([*PROXY, "--url", "nonsense"], check=False, env=environment(serving.folder))
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert b"not a server URL" in ended.stderr


async def test_the_client_must_not_repeat_an_id_that_waits(serving: Child) -> None:
    async with proxying(serving.folder, "modern") as client:
        message = client.message("tools/list", {}, 1)
        await client.send_raw(message + b"\n" + message + b"\n")
        both: list[dict[str, object]] = []
        with anyio.fail_after(60):
            while len(client.answers.get(1, both)) < 2:
                await client.read()
        assert sorted("error" in answer for answer in client.answers[1]) == [False, True]
