"""What stands between a proxy and its server, and what becomes of idle connections: nothing is lost, nothing is done
twice."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.child import PATIENCE_S, Child
from tests.support.intermediary import Front, Trouble, fronting
from tests.support.mcp import HANDSHAKE, Era, text_of
from tests.support.proxy import ProxyClient, proxying

pytestmark = pytest.mark.anyio

ERAS: list[Era] = ["handshake", "modern"]
AWAY = [Trouble(502), Trouble(503), Trouble(504)]


@asynccontextmanager
async def behind_a_front(serving: Child, era: Era, **more: str) -> AsyncGenerator[tuple[ProxyClient, Front]]:
    async with (
        fronting(serving.url, serving.front_port) as front,
        proxying(serving.folder, era, "--url", front.url, **more) as client,
    ):
        yield client, front


async def until_told_what_is_done_once(client: ProxyClient, front: Front) -> None:
    """The server says so in the stream that shows it that the proxy lives, at its beginning."""
    session = await client.session()
    with anyio.fail_after(PATIENCE_S):
        while b"calls_once" not in front.told[f"GET /api/v1/sessions/{session}/presence"]:
            await anyio.sleep(0.01)
    await client.session()  # by this answer, the proxy has read that one


def insertion(name: str) -> dict[str, Any]:
    body = f"def {name}(self) -> int:\n    return 1\n"
    return {
        "name": "insert_after_symbol",
        "arguments": {"name_path": "Cart/total", "relative_path": "cart.py", "body": body},
    }


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_is_away_for_a_while_is_asked_again(serving: Child, project: Path, era: Era) -> None:
    async with behind_a_front(serving, era) as (client, front):
        repeated = ["tools/list", "tools/call"]
        if era == "handshake":
            repeated += ["initialize", "notifications/initialized"]
        for name in repeated:
            front.ahead[name] = list(AWAY)
        front.ahead["ping"] = [*AWAY, *AWAY[:2]]
        await client.open()
        await client.ask("tools/list")
        await client.ask("ping")
        found = await client.call("search_for_pattern", substring_pattern="class Cart", project=str(project))
        assert "cart.py" in text_of(found)
        assert {front.seen[name] for name in repeated} == {len(AWAY) + 1}
        assert front.seen["ping"] == 6
        assert all(len(answers) == 1 for answers in client.answers.values())


async def test_a_server_that_forgets_a_client_during_the_handshake_is_begun_with_again(serving: Child) -> None:
    async with behind_a_front(serving, "handshake") as (client, front):
        front.ahead["notifications/initialized"] = [Trouble(404)]
        await client.open()
        assert "result" in await client.ask("tools/list")
        assert (front.seen["initialize"], front.seen["notifications/initialized"]) == (2, 2)


async def test_a_handshake_that_fails_behind_half_an_answer_can_be_made_again(serving: Child) -> None:
    async with behind_a_front(serving, "handshake") as (client, front):
        front.ahead["initialize"] = [Trouble(None, carried_out=True), Trouble(404)]
        about = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "proxied", "version": "1"}}
        assert "404" in (await client.ask("initialize", about))["error"]["message"]
        await client.open()
        assert "result" in await client.ask("tools/list")


@pytest.mark.parametrize("era", ERAS)
async def test_an_edit_whose_answer_is_lost_on_the_way_is_made_once_and_answered(
    serving: Child, project: Path, era: Era
) -> None:
    lost = [Trouble(502, carried_out=True), Trouble(None, carried_out=True), Trouble(503), Trouble(504)]
    async with behind_a_front(serving, era) as (client, front):
        await client.open()
        await client.call("activate_project", project=str(project))
        await until_told_what_is_done_once(client, front)
        before = front.seen["tools/call"]
        front.ahead["tools/call"] = list(lost)
        answer = await client.ask("tools/call", insertion("extra"))
        assert not answer["result"]["isError"], answer
        assert front.seen["tools/call"] - before == len(lost) + 1
        assert (project / "cart.py").read_text().count("def extra(") == 1


@pytest.mark.parametrize("trouble", [*AWAY, Trouble(None)])
async def test_a_call_that_may_not_be_repeated_is_told_to_be_in_doubt(serving: Child, trouble: Trouble) -> None:
    async with behind_a_front(serving, "modern") as (client, front):
        await client.ask("tools/list")
        front.ahead["tools/call"] = [trouble]
        answer = await client.ask("tools/call", {"name": "execute_shell_command", "arguments": {"command": "true"}})
        assert "may have been executed" in answer["error"]["message"]
        assert front.seen["tools/call"] == 1


async def test_an_idle_connection_that_was_closed_is_not_used_for_the_next_call(serving: Child) -> None:
    async with behind_a_front(serving, "modern") as (client, front):
        await client.ask("tools/list")
        with anyio.fail_after(PATIENCE_S):
            while not front.kept:
                await anyio.sleep(0.01)
        await front.hang_up()
        answer = await client.ask("tools/call", {"name": "execute_shell_command", "arguments": {"command": "true"}})
        assert "result" in answer
        assert front.seen["tools/call"] == 1


async def test_what_is_sent_as_the_server_closes_a_kept_connection_arrives_all_the_same(
    serving: Child, tmp_path: Path
) -> None:
    """The answer to the server's question for roots, which nobody would miss on this side."""
    no_project = str(serving.folder / "user")
    async with behind_a_front(serving, "handshake", CLAUDE_PROJECT_DIR=no_project) as (client, front):
        front.ahead["answer"] = [Trouble(None), Trouble(502)]
        await client.open(roots={"listChanged": True})
        with anyio.fail_after(PATIENCE_S):
            while not client.told:
                await client.read()
        result = {"roots": [{"uri": tmp_path.as_uri(), "name": "here"}]}
        await client.send_line(json.dumps({"jsonrpc": "2.0", "id": client.told[0]["id"], "result": result}).encode())
        with anyio.fail_after(PATIENCE_S):
            while json.loads(text_of(await client.call("get_current_config")))["working_folder"] != str(tmp_path):
                await anyio.sleep(0.01)
        assert front.seen["answer"] == 3


@pytest.mark.parametrize("era", ERAS)
async def test_a_connection_that_dies_in_the_middle_of_an_answer_is_no_answer(
    serving: Child, project: Path, era: Era
) -> None:
    async with behind_a_front(serving, era) as (client, front):
        await client.open()
        front.ahead["tools/list"] = [Trouble(None), Trouble(None, carried_out=True)]
        assert "result" in await client.ask("tools/list")
        assert front.seen["tools/list"] == 3
