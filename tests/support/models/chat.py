"""OpenAI's chat completions: POST /v1/chat/completions, whole or as chunks (OpenAI API reference, Chat Completions)."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.anthropic import pieces
from tests.support.models.request import Request, ToolResult, texts_of
from tests.support.models.script import Reply, SentCall, Text

Body = Mapping[str, Any]

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def read(body: Body) -> Request:
    called: dict[str, str] = {}
    prompts: list[str] = []
    results: list[ToolResult] = []
    system: list[str] = []
    turns = 0
    for message in body["messages"]:
        text = texts_of(message.get("content"))
        match message["role"]:
            case "assistant":
                turns += 1
                called |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
            case "tool":
                results.append(ToolResult(called[message["tool_call_id"]], text, None))
            case "user":
                prompts.append(text)
            case _:
                system.append(text)
    return Request(
        "chat",
        body["model"],
        bool(body.get("stream")),
        "\n".join(system),
        {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or ()},
        prompts,
        results,
        turns,
        body,
    )


def whole(request: Request, reply: Reply) -> Body:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_texts(reply)) or None}
    if calls := [_call(part) for part in reply if isinstance(part, SentCall)]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": USAGE}


def events(request: Request, reply: Reply) -> Iterator[Body]:
    def chunk(delta: Body, finish_reason: str | None = None) -> Body:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**_head(request, "chat.completion.chunk"), "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for text in _texts(reply):
        for piece in pieces(text):
            yield chunk({"content": piece})
    for index, part in enumerate(part for part in reply if isinstance(part, SentCall)):
        first, *rest = pieces(part.arguments)
        yield chunk(
            {"tool_calls": [{"index": index, **_call(part), "function": {"name": part.tool, "arguments": first}}]}
        )
        for piece in rest:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(reply))
    yield {**_head(request, "chat.completion.chunk"), "choices": [], "usage": USAGE}


def _head(request: Request, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.turns}", "object": kind, "created": 0, "model": request.model}


def _call(part: SentCall) -> dict[str, Any]:
    return {"id": part.id, "type": "function", "function": {"name": part.tool, "arguments": part.arguments}}


def _texts(reply: Reply) -> list[str]:
    return [part.text for part in reply if isinstance(part, Text)]


def _finish_reason(reply: Reply) -> str:
    return "stop" if all(isinstance(part, Text) for part in reply) else "tool_calls"
