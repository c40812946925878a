"""Anthropic's messages: POST /v1/messages, whole or as an event stream (docs.anthropic.com, Messages and Streaming)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from tests.support.models.request import Request, ToolResult, texts_of
from tests.support.models.script import Reply, Text

Body = Mapping[str, Any]


def read(body: Body) -> Request:
    called: dict[str, str] = {}
    prompts: list[str] = []
    results: list[ToolResult] = []
    system = [texts_of(body.get("system"))]
    turns = 0
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            turns += 1
            called |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
            continue
        if message["role"] == "system":  # Claude Code's environment stands between the user's messages
            system.append(texts_of(blocks))
            continue
        prompts += [block["text"] for block in blocks if block["type"] == "text"]
        results += [
            ToolResult(called[one["tool_use_id"]], texts_of(one.get("content")), bool(one.get("is_error")))
            for one in blocks
            if one["type"] == "tool_result"
        ]
    return Request(
        "anthropic",
        body["model"],
        bool(body.get("stream")),
        "\n".join(system),
        {tool["name"]: tool for tool in body.get("tools", ())},
        prompts,
        results,
        turns,
        body,
    )


def whole(request: Request, reply: Reply) -> Body:
    return {
        **_head(request),
        "content": [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else {"type": "tool_use", "id": part.id, "name": part.tool, "input": json.loads(part.arguments)}
            for part in reply
        ],
        "stop_reason": _stop_reason(reply),
        "usage": {"input_tokens": request.input_tokens, "output_tokens": 1},
    }


def events(request: Request, reply: Reply) -> Iterator[Body]:
    yield {"type": "message_start", "message": _head(request)}
    for index, part in enumerate(reply):
        if isinstance(part, Text):
            begun, deltas = {"type": "text", "text": ""}, ("text_delta", "text", part.text)
        else:
            begun = {"type": "tool_use", "id": part.id, "name": part.tool, "input": {}}
            deltas = ("input_json_delta", "partial_json", part.arguments)
        kind, key, text = deltas
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for piece in pieces(text):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def pieces(text: str) -> tuple[str, ...]:
    """A text in two parts, as streams bring it."""
    middle = len(text) // 2
    return (text[:middle], text[middle:]) if middle else (text,)


def _head(request: Request) -> dict[str, Any]:
    return {
        # A compacted conversation counts its turns from the start again: its prompts are others.
        "id": f"msg_{request.turns}_{crc32(repr(request.prompts).encode()):08x}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": request.input_tokens, "output_tokens": 0},
    }


def _stop_reason(reply: Reply) -> str:
    return "end_turn" if all(isinstance(part, Text) for part in reply) else "tool_use"
