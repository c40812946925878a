"""Resources, templates, prompts and long answers of upstreams."""

from pathlib import Path
from typing import Any

import pytest

from serena_central.mcp_server.sdk_lane import SdkLane
from tests.support.central import running_central
from tests.support.mcp import Era, text_of
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_resources_prompts_and_tools_pass_through_without_the_sdks_server(
    tmp_path: Path, user: Path, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def loaded(_lane: SdkLane) -> Any:
        raise AssertionError("a plain request came to the SDK")

    monkeypatch.setattr(SdkLane, "loaded", loaded)
    settings_of_user(user, {"one": scripted()})
    async with running_central(tmp_path, QUICK) as running, running.raw(era) as client:
        resources = (await client.ask("resources/list"))["result"]["resources"]
        assert "scripted://one" in [one["uri"] for one in resources]
        templates = (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert "scripted://n/{number}" in [one["uriTemplate"] for one in templates]
        for uri in ("scripted://one", "scripted://n/7"):
            read = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"]
            assert read == [{"uri": uri, "mimeType": "text/plain", "text": f"content of {uri}"}]
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]
        assert "one__greet" in [one["name"] for one in prompts]
        got = (await client.ask("prompts/get", {"name": "one__greet", "arguments": {"who": "Ann"}}))["result"]
        assert got["messages"][0]["content"]["text"] == "Greet Ann"
        assert text_of(await client.call("one__echo", text="told")) == "told"


async def test_a_rule_for_a_whole_server_closes_its_resources_and_prompts(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()}, permissions={"deny": ["mcp__one"]})
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        assert "error" in await client.ask("resources/read", {"uri": "scripted://one"})
        assert "error" in await client.ask("prompts/get", {"name": "one__greet", "arguments": {"who": "Ann"}})


async def test_an_answer_that_is_too_long_is_read_in_pages_by_its_session_alone(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"one": scripted()})
    async with (
        running_central(tmp_path, QUICK | {"max_answer_chars": 2000}) as running,
        running.raw("modern", x_serena_session="a") as client,
        running.raw("modern", x_serena_session="b") as other,
    ):
        result = await client.call("one__large", text="1000")
        text, note = (part["text"] for part in result["content"])
        offset = len(text)
        assert f"Characters 0 to {offset} of" in note
        result_id = note.partition('result_id="')[2].partition('"')[0]
        assert "no kept result" in text_of(await other.call("read_result", result_id=result_id, offset=offset))
        for _ in range(20):
            page = text_of(await client.call("read_result", result_id=result_id, offset=offset))
            text, offset = text + page, offset + len(page)
        assert text == "".join(f"line {number}\n" for number in range(1000))


async def test_a_long_answer_of_a_tool_that_was_searched_for_says_how_to_read_on(tmp_path: Path, user: Path) -> None:
    more = [{"name": f"t{number}", "description": "x" * 900, "inputSchema": {"type": "object"}} for number in range(30)]
    settings_of_user(user, {"one": scripted(tools=more)})
    settings = QUICK | {"max_answer_chars": 2000}
    async with running_central(tmp_path, settings) as running, running.raw("modern") as client:
        asked = {"name": "one__large", "arguments": {"text": "1000"}}
        result = await client.call("call_upstream_tool", **asked)
        text, note = (part["text"] for part in result["content"])
        assert f"Characters 0 to {len(text)} of" in note
        result_id = note.partition('result_id="')[2].partition('"')[0]
        page = text_of(await client.call("read_result", result_id=result_id, offset=len(text)))
        assert (text + page).startswith("".join(f"line {number}\n" for number in range(300)))
