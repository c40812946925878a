"""Calls that need their client: questions to its user and its model, log messages, content of all kinds.

The tools are those of the conformance suite; here they meet the official clients, restarts and other tokens.
"""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.testing.server import Era
from tests.conformance import fixtures
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import HANDSHAKE, RawClient, messages_in, sdk_client, text_of

pytestmark = pytest.mark.anyio

BOTH_ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])

LEVEL = "io.modelcontextprotocol/logLevel"
OFFERED = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
CLIENT = {"name": "raw", "version": "1"}
STEPS = "test_input_required_result_multi_round"


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path_factory.mktemp("channel"), catalogue=fixtures.catalogue()) as running:
        yield running


async def fill_in(_context: Any, params: Any) -> types.ElicitResult:
    values = {name: f"my {name}" for name in params.requested_schema["properties"]}
    return types.ElicitResult(action="accept", content=values)


async def think(_context: Any, params: Any) -> types.CreateMessageResult:
    said = params.messages[0].content.text
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text=f"re: {said}"), model="none")


@BOTH_ERAS
async def test_a_tool_asks_the_user_and_the_model_of_the_client_that_called_it(
    central: RunningCentral, era: Era
) -> None:
    answering = {"elicitation_callback": fill_in, "sampling_callback": think}
    async with sdk_client(central.url, era, central.authorized, **answering) as client:
        rounds = await client.call_tool(STEPS, {})
        both = await client.call_tool("test_sampling", {"prompt": "Hello"})
    assert text_of(rounds.model_dump()) == "my name likes my color."
    assert text_of(both.model_dump()) == "LLM response: re: Hello"


@BOTH_ERAS
async def test_asking_a_user_and_logging_need_no_sdk(
    central: RunningCentral, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def loaded(_lane: SdkLane) -> Any:
        raise AssertionError("a plain request came to the SDK")

    monkeypatch.setattr(SdkLane, "loaded", loaded)
    async with sdk_client(central.url, era, central.authorized, elicitation_callback=fill_in) as client:
        rounds = await client.call_tool(STEPS, {})
        logged = await client.call_tool("test_logging_tool", {})
    assert text_of(rounds.model_dump()) == "my name likes my color."
    assert text_of(logged.model_dump()) == "Logged."


async def test_a_cancelled_call_takes_its_question_back(central: RunningCentral) -> None:
    async with central.http() as http:
        client = RawClient(http, "handshake")
        begun = {"protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}}, "clientInfo": CLIENT}
        client.session_id = (await client.send("initialize", begun)).headers["mcp-session-id"]
        sent, lines = client.request("tools/call", {"name": STEPS, "arguments": {}}), list[str]()
        async with http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if "elicitation/create" in line:
                    cancelled = {"requestId": json.loads(sent.content)["id"]}
                    await client.notify("notifications/cancelled", cancelled)
    asked, taken_back = messages_in("\n".join(lines))
    assert (asked["method"], taken_back["method"]) == ("elicitation/create", "notifications/cancelled")
    assert taken_back["params"]["requestId"] == asked["id"]


async def test_what_answers_another_question_is_a_refusal(central: RunningCentral) -> None:
    async with central.http() as http:
        client = RawClient(http, "handshake")
        begun = {"protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}}, "clientInfo": CLIENT}
        client.session_id = (await client.send("initialize", begun)).headers["mcp-session-id"]
        sent = client.request("tools/call", {"name": "test_elicitation", "arguments": {"message": "Who?"}})
        lines = list[str]()
        async with http.stream("POST", "/mcp", content=sent.content, headers=sent.headers) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if "elicitation/create" in line:
                    answer = {"jsonrpc": "2.0", "id": messages_in(line)[0]["id"], "result": {"roots": []}}
                    await http.post("/mcp", json=answer, headers=client.headers("", {}))
    result = messages_in("\n".join(lines))[-1]["result"]
    assert "The client refused elicitation/create: its answer has no 'action'." in text_of(result)


@BOTH_ERAS
async def test_a_call_that_asked_is_no_failed_call(central: RunningCentral, era: Era) -> None:
    async with sdk_client(central.url, era, central.authorized, elicitation_callback=fill_in) as client:
        await client.call_tool("test_input_required_result_elicitation", {})
    (session,) = [one for one in central.central.sessions.sessions() if one.client_name == "test-client"][-1:]
    assert session.tools["test_input_required_result_elicitation"].errors == 0


async def test_a_user_who_declines_is_an_answer_to_the_tool_and_a_client_that_fails_is_a_refusal(
    central: RunningCentral,
) -> None:
    async def decline(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def fail(_context: Any, _params: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="no dialog here")

    asked = {"message": "Who?"}
    async with sdk_client(central.url, "handshake", central.authorized, elicitation_callback=decline) as client:
        declined = await client.call_tool("test_elicitation", asked)
    async with sdk_client(central.url, "handshake", central.authorized, elicitation_callback=fail) as client:
        failed = await client.call_tool("test_elicitation", asked)
    assert "action=decline" in text_of(declined.model_dump())
    assert failed.is_error
    assert "no dialog here" in text_of(failed.model_dump())


@BOTH_ERAS
async def test_a_client_that_offers_nothing_is_asked_nothing(central: RunningCentral, era: Era) -> None:
    async with central.raw(era) as client:
        answer = await client.send("tools/call", {"name": "test_sampling", "arguments": {"prompt": "Hello"}})
    (message,) = [one for one in messages_in(answer.text) if "id" in one]
    if era == "handshake":
        assert message["result"]["isError"]
        assert "sampling/createMessage" in text_of(message["result"])
    else:
        assert (answer.status_code, message["error"]["code"]) == (400, -32021)
        assert message["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def test_what_was_answered_before_a_restart_needs_no_second_answer(tmp_path: Path) -> None:
    async with running_central(tmp_path, catalogue=fixtures.catalogue()) as running, running.raw("modern") as client:
        first = await asked(client)
        second = await asked(client, first["requestState"], step1="Ada")
    assert [*second["inputRequests"]] == ["step2"]
    async with running_central(tmp_path, catalogue=fixtures.catalogue()) as running, running.raw("modern") as client:
        assert text_of(await asked(client, second["requestState"], step2="blue")) == "Ada likes blue."


async def test_a_state_counts_for_the_call_that_it_was_made_for_alone(central: RunningCentral) -> None:
    async with central.raw("modern") as client:
        state = (await asked(client))["requestState"]
        other = "test_input_required_result_tampered_state"
        for name, sent in ((other, state), (STEPS, state[:-4] + "AAAA"), (STEPS, "{}"), (STEPS, "v1.")):
            answer = await client.ask("tools/call", {"name": name, "requestState": sent, "_meta": OFFERED})
            assert answer["error"]["code"] == -32602, name


async def asked(client: RawClient, state: str | None = None, **answers: str) -> dict[str, Any]:
    keys = {"step1": "name", "step2": "color"}
    given = {step: {"action": "accept", "content": {keys[step]: value}} for step, value in answers.items()}
    params = {"name": STEPS, "arguments": {}, "_meta": OFFERED, "inputResponses": given}
    return (await client.ask("tools/call", params | ({"requestState": state} if state else {})))["result"]


@pytest.mark.parametrize(
    ("level", "expected"), [("debug", 4), ("warning", 2), ("error", 1), ("emergency", 0), (None, 0)]
)
@BOTH_ERAS
async def test_a_client_gets_log_messages_from_the_level_on_that_it_asked_for(
    central: RunningCentral, era: Era, level: str | None, expected: int
) -> None:
    async with central.raw(era) as client:
        meta = {LEVEL: level} if era == "modern" and level else {}
        if era == "handshake" and level:
            await client.ask("logging/setLevel", {"level": level})
        answer = await client.send("tools/call", {"name": "test_logging_tool", "arguments": {}, "_meta": meta})
    logged = [one["params"] for one in messages_in(answer.text) if one.get("method") == "notifications/message"]
    assert len(logged) == expected
    assert {one["logger"] for one in logged} <= {"conformance"}


@BOTH_ERAS
async def test_notes_of_answers_are_log_messages_too(central: RunningCentral, tmp_path: Path, era: Era) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text("class Cart: ...\n")
    async with central.raw(era) as client:
        if era == "handshake":
            await client.ask("logging/setLevel", {"level": "notice"})
        arguments = {"name_path_pattern": "Nothing", "project": str(tmp_path / "shop")}
        meta = {LEVEL: "notice"} if era == "modern" else {}
        answer = await client.send("tools/call", {"name": "find_symbol", "arguments": arguments, "_meta": meta})
    *news, last = messages_in(answer.text)
    logged = [one["params"] for one in news if one.get("method") == "notifications/message"]
    assert [one["data"] for one in logged] == last["result"]["structuredContent"]["notes"] != []
    assert {(one["level"], one["logger"]) for one in logged} == {("notice", "serena-central")}


@BOTH_ERAS
async def test_both_eras_declare_logging_and_only_lists_that_change(central: RunningCentral, era: Era) -> None:
    client_info = {"name": "raw", "version": "1"}
    begun = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client_info}
    async with central.http() as http:
        client = RawClient(http, era)
        answer = await (client.ask("initialize", begun) if era == "handshake" else client.ask("server/discover"))
    assert answer["result"]["capabilities"] == {
        "completions": {},
        "logging": {},
        "prompts": {"listChanged": False},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }


@BOTH_ERAS
async def test_content_of_other_kinds_reaches_the_client_and_is_named_elsewhere(
    central: RunningCentral, era: Era
) -> None:
    async with central.raw(era) as client, central.http() as http:
        kinds = await client.call("test_multiple_content_types")
        session = (await http.post("/api/v1/sessions", json={})).json()["session_id"]
        shown = await http.post("/api/v1/tools/test_multiple_content_types", json={"session": session, "arguments": {}})
    assert [one["type"] for one in kinds["content"]] == ["text", "image", "resource"]
    assert "structuredContent" not in kinds
    assert "[image image/png]" in shown.text
