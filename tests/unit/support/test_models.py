"""The scripted model in each wire format, written out as its documentation has it. What real SDKs and clients make of
it is asked by `make test-clients`."""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import httpx
import pytest

from tests.support.models import Call, Refusal, Request, Script, ScriptedModel, Text, ToolResult, scripted_model
from tests.support.models.script import ScriptEnded

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}

ANTHROPIC = {
    "model": "m",
    "max_tokens": 10,
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "find", "description": "Finds.", "input_schema": SCHEMA}],
    "messages": [
        {"role": "user", "content": "Where is Cart?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Wait."},
                {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"name": "Cart"}},
                {"type": "tool_use", "id": "toolu_2", "name": "find", "input": {"name": "Tart"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "cart.py"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such name", "is_error": True},
            ],
        },
    ],
}
CHAT = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Where is Cart?"}]},
        {
            "role": "assistant",
            "content": "Wait.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"name":"Cart"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "find", "arguments": '{"name":"Tart"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "cart.py"},
        {"role": "tool", "tool_call_id": "call_2", "content": "no such name"},
    ],
}
RESPONSES = {
    "model": "m",
    "instructions": "Be brief.",
    "tools": [{"type": "function", "name": "find", "description": "Finds.", "parameters": SCHEMA}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Where is Cart?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]},
        {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": '{"name":"Cart"}'},
        {"type": "function_call", "call_id": "call_2", "name": "find", "arguments": '{"name":"Tart"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "cart.py"},
        {"type": "function_call_output", "call_id": "call_2", "output": "no such name"},
    ],
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "find", "description": "Finds.", "parametersJsonSchema": SCHEMA}]}],
    "contents": [
        {"role": "user", "parts": [{"text": "Where is Cart?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Wait."},
                {"functionCall": {"name": "find", "args": {"name": "Cart"}}},
                {"functionCall": {"name": "find", "args": {"name": "Tart"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "find", "response": {"output": "cart.py"}}},
                {"functionResponse": {"name": "find", "response": {"error": "no such name"}}},
            ],
        },
    ],
}

BODIES: dict[str, dict[str, Any]] = {
    "anthropic": ANTHROPIC,
    "chat": CHAT,
    "responses": RESPONSES,
    "gemini": GEMINI,
}
"""A conversation of one turn, and the request for the second."""

PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}

each_format = pytest.mark.parametrize("form", list(BODIES))
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


async def post(model: ScriptedModel, form: str, body: Mapping[str, Any], *, streamed: bool = False) -> httpx.Response:
    path = PATHS.get(form)
    if path is None:
        path = "/v1beta/models/m:" + ("streamGenerateContent?alt=sse" if streamed else "generateContent")
    elif streamed:
        body = {**body, "stream": True}
    async with httpx.AsyncClient(base_url=model.url, timeout=30) as http:
        return await http.post(path, json=body)


async def read(form: str) -> Request:
    """The conversation as the script sees it."""
    async with scripted_model(lambda _request: Text("yes")) as model:
        assert (await post(model, form, BODIES[form])).status_code == 200
    (request,) = model.requests
    return request


@each_format
async def test_a_conversation_reads_the_same_in_each_format(form: str) -> None:
    request = await read(form)
    assert request.format == form
    assert (request.model, request.system, request.prompts) == ("m", "Be brief.", ["Where is Cart?"])
    assert (list(request.tools), request.tools["find"]["description"]) == (["find"], "Finds.")
    assert request.turns == 1
    flags = {"anthropic": (False, True), "gemini": (False, True)}.get(form, (None, None))
    texts = ("cart.py", "no such name")
    assert request.results == [ToolResult("find", text, failed) for text, failed in zip(texts, flags, strict=True)]
    assert request.body["tools"]
    assert request.headers["content-type"] == "application/json"


SAID = [Text("It is here."), Call("find", {"name": "Ünï"}), Call("find", {})]
"""Two calls, and a text that is cut in the middle where it is streamed."""


@each_way
@each_format
async def test_a_turn_arrives_in_full(form: str, streamed: bool) -> None:
    async with scripted_model([Text("no"), SAID]) as model:
        response = await post(model, form, BODIES[form], streamed=streamed)
    assert response.status_code == 200, response.text
    assert (model.requests[0].streamed, model.faults) == (streamed, [])
    calls = [("find", {"name": "Ünï"}), ("find", {})]
    if streamed:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert STREAMED[form](events_in(response.text)) == ("It is here.", calls)
    else:
        assert WHOLE[form](response.json()) == ("It is here.", calls)


@each_format
async def test_the_turn_of_a_new_conversation_is_the_first_step(form: str) -> None:
    key = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    fresh = {**BODIES[form], key: [item for item in BODIES[form][key] if item.get("role") == "user"][:1]}
    async with scripted_model([Text("first"), Text("second")]) as model:
        again = await post(model, form, BODIES[form])
        first = await post(model, form, fresh)
    assert "second" in again.text
    assert "first" in first.text


async def test_a_step_is_made_of_what_came_before_and_of_what_it_waits_for() -> None:
    waited = anyio.Event()

    async def last(request: Request) -> Text:
        await waited.wait()
        return Text(request.results[0].text.upper())

    async def ask() -> None:
        answers.append(await post(model, "chat", CHAT))

    answers: list[httpx.Response] = []
    with anyio.fail_after(30):
        async with scripted_model([Text("no"), last]) as model, anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            while not model.requests:
                await anyio.sleep(0.005)
            assert not answers
            waited.set()
    assert answers[0].json()["choices"][0]["message"]["content"] == "CART.PY"


@each_format
async def test_a_refusal_is_an_http_error_with_its_message(form: str) -> None:
    async with scripted_model(lambda _request: Refusal(529, "overloaded today")) as model:
        response = await post(model, form, BODIES[form])
    assert response.status_code == 529
    assert response.json()["error"]["message"] == "overloaded today"


@pytest.mark.parametrize(
    ("script", "fault"), [([Text("only one")], ScriptEnded), (lambda _request: 1 / 0, ZeroDivisionError)]
)
async def test_a_script_that_fails_is_a_failure_of_the_test(script: Script, fault: type[Exception]) -> None:
    with pytest.raises(fault):
        async with scripted_model(script) as model:
            assert (await post(model, "chat", CHAT)).status_code == 400


async def test_requests_without_tools_and_for_other_paths_stand_apart() -> None:
    async with scripted_model([], aside=Text("A title")) as model, httpx.AsyncClient(base_url=model.url) as http:
        response = await post(model, "chat", {"model": "m", "messages": [{"role": "user", "content": "Title?"}]})
        assert (await http.get("/v1/models")).status_code == 404
    assert response.json()["choices"][0]["message"] == {"role": "assistant", "content": "A title"}
    assert (model.requests, len(model.asides), model.elsewhere) == ([], 1, ["GET /v1/models"])


async def test_a_call_of_a_tool_in_a_namespace_is_sent_with_both_apart() -> None:
    group = {"type": "namespace", "name": "mcp__serena", "tools": RESPONSES["tools"]}
    async with scripted_model([Text("no"), Call("mcp__serena__find")]) as model:
        response = await post(model, "responses", {**RESPONSES, "tools": [group]})
    (item,) = response.json()["output"]
    assert (item["namespace"], item["name"]) == ("mcp__serena", "find")


# What a client makes of an answer: its text, and its calls with their arguments.
Heard = tuple[str, list[tuple[str, Any]]]


def events_in(text: str) -> list[dict[str, Any]]:
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


def heard_anthropic(message: Mapping[str, Any]) -> Heard:
    blocks = message["content"]
    assert message["stop_reason"] == "tool_use"
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    return "".join(block["text"] for block in blocks if block["type"] == "text"), calls


def streamed_anthropic(events: list[dict[str, Any]]) -> Heard:
    blocks: list[dict[str, Any]] = []
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append({**event["content_block"], "json": ""})
            case "content_block_delta":
                delta = event["delta"]
                blocks[-1]["text"] = blocks[-1].get("text", "") + delta.get("text", "")
                blocks[-1]["json"] += delta.get("partial_json", "")
    for block in blocks:
        block["input"] = json.loads(block["json"] or "null")
    return heard_anthropic({"content": blocks, **events[-2]["delta"]})


def heard_chat(completion: Mapping[str, Any]) -> Heard:
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "tool_calls"
    functions = [call["function"] for call in choice["message"]["tool_calls"]]
    return choice["message"]["content"], [(one["name"], json.loads(one["arguments"])) for one in functions]


def streamed_chat(events: list[dict[str, Any]]) -> Heard:
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    assert events[-1]["usage"]["total_tokens"]
    for event in events[:-1]:
        delta = event["choices"][0]["delta"]
        message["content"] += delta.get("content", "")
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                message["tool_calls"].append({"function": {"name": call["function"]["name"], "arguments": ""}})
            message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    finish = {"finish_reason": events[-2]["choices"][0]["finish_reason"]}
    return heard_chat({"choices": [{"message": message, **finish}]})


def heard_responses(response: Mapping[str, Any]) -> Heard:
    assert response["status"] == "completed"
    items = response["output"]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = [(one["name"], json.loads(one["arguments"])) for one in items if one["type"] == "function_call"]
    return "".join(texts), calls


def streamed_responses(events: list[dict[str, Any]]) -> Heard:
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    pieces: dict[str, str] = {}
    for event in events:
        if event["type"].endswith(".delta"):
            pieces[event["item_id"]] = pieces.get(event["item_id"], "") + event["delta"]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    for item in items:
        said = item["content"][0]["text"] if item["type"] == "message" else item["arguments"]
        assert pieces[item["id"]] == said
    assert events[-1]["response"]["output"] == items
    return heard_responses(events[-1]["response"])


def heard_gemini(response: Mapping[str, Any]) -> Heard:
    (candidate,) = response["candidates"]
    assert candidate["finishReason"] == "STOP"
    parts = candidate["content"]["parts"]
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    return "".join(part.get("text", "") for part in parts), calls


def streamed_gemini(events: list[dict[str, Any]]) -> Heard:
    candidates = [event["candidates"][0] for event in events]
    assert all("finishReason" not in candidate for candidate in candidates[:-1])
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    return heard_gemini({"candidates": [{**candidates[-1], "content": {"parts": parts}}]})


WHOLE = {"anthropic": heard_anthropic, "chat": heard_chat, "responses": heard_responses, "gemini": heard_gemini}
STREAMED = {
    "anthropic": streamed_anthropic,
    "chat": streamed_chat,
    "responses": streamed_responses,
    "gemini": streamed_gemini,
}
