"""Gemini's generateContent and streamGenerateContent, below /{version}/models (ai.google.dev, API reference)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.anthropic import pieces
from tests.support.models.request import Request, ToolResult, texts_of
from tests.support.models.script import Reply, SentCall, Text

Body = Mapping[str, Any]


def read(body: Body, model: str, *, streamed: bool) -> Request:
    prompts: list[str] = []
    results: list[ToolResult] = []
    turns = 0
    for content in body["contents"]:
        if content.get("role") == "model":
            turns += 1
            continue
        for part in content["parts"]:
            if "functionResponse" in part:
                results.append(_result(part["functionResponse"]))
            elif "text" in part:
                prompts.append(part["text"])
    tools = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
    return Request(
        "gemini",
        model,
        streamed,
        texts_of((body.get("systemInstruction") or {}).get("parts")),
        {tool["name"]: tool for tool in tools},
        prompts,
        results,
        turns,
        body,
    )


def whole(request: Request, reply: Reply) -> Body:
    return _answer(request, [_part(part) for part in reply], last=True)


def events(request: Request, reply: Reply) -> Iterator[Body]:
    """Texts come in pieces, calls whole."""
    parts = [
        each
        for part in reply
        for each in ([{"text": piece} for piece in pieces(part.text)] if isinstance(part, Text) else [_part(part)])
    ]
    for number, part in enumerate(parts, 1):
        yield _answer(request, [part], last=number == len(parts))


def _answer(request: Request, parts: list[Body], *, last: bool) -> Body:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": request.model,
        "responseId": f"response_{request.turns}",
    }


def _part(part: Text | SentCall) -> Body:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"functionCall": {"id": part.id, "name": part.tool, "args": json.loads(part.arguments)}}


def _result(response: Body) -> ToolResult:
    """The convention of the format: `output` holds an answer, `error` an error; anything else is an answer itself."""
    said = response["response"]
    failed = "error" in said
    value = said["error"] if failed else said.get("output", said)
    return ToolResult(response["name"], value if isinstance(value, str) else json.dumps(value), failed)
