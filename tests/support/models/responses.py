"""OpenAI's responses: POST /v1/responses, whole or as an event stream (OpenAI API reference, Responses).

Codex groups the tools of an MCP server in a namespace. Such a tool is offered here as `namespace__name`, and a call of
it is sent with both apart.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.models.anthropic import pieces
from tests.support.models.request import Request, ToolResult, texts_of
from tests.support.models.script import Reply, SentCall, Text

Body = Mapping[str, Any]

CALLS = ("function_call", "custom_tool_call", "tool_search_call", "local_shell_call")
MODELS_OWN = (*CALLS, "reasoning")


def read(body: Body) -> Request:
    given = body["input"]
    items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    called: dict[str, str] = {}
    prompts: list[str] = []
    results: list[ToolResult] = []
    system = [body.get("instructions") or ""]
    turns = 0
    models = False
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        was, models = models, kind in MODELS_OWN or role == "assistant"
        turns += models and not was
        if kind in CALLS:
            called[item["call_id"]] = _full_name(item)
        elif kind.endswith("_output"):
            results.append(ToolResult(called[item["call_id"]], texts_of(item.get("output")), None))
        elif role == "user":
            prompts.append(texts_of(item["content"]))
        elif not models:
            system.append(texts_of(item.get("content")))
    return Request(
        "responses",
        body["model"],
        bool(body.get("stream")),
        "\n".join(system),
        _tools(body.get("tools") or ()),
        prompts,
        results,
        turns,
        body,
    )


def whole(request: Request, reply: Reply) -> Body:
    items = [_item(request, part, index) for index, part in enumerate(reply)]
    return {**_head(request), "status": "completed", "output": items, "usage": _USAGE}


def events(request: Request, reply: Reply) -> Iterator[Body]:
    for number, event in enumerate(_events(request, reply)):
        yield {**event, "sequence_number": number}


def _events(request: Request, reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _head(request)}
    yield {"type": "response.in_progress", "response": _head(request)}
    for index, part in enumerate(reply):
        item = _item(request, part, index)
        where = {"output_index": index, "item_id": item["id"]}
        begun = {"content": []} if isinstance(part, Text) else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, **begun, "status": "in_progress"},
        }
        if isinstance(part, Text):
            where["content_index"] = 0
            empty = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **where, "part": empty}
            for piece in pieces(part.text):
                yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **where, "text": part.text, "logprobs": []}
            yield {"type": "response.content_part.done", **where, "part": item["content"][0]}
        else:
            for piece in pieces(part.arguments):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
            done = {"name": item["name"], "arguments": part.arguments}
            yield {"type": "response.function_call_arguments.done", **where, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole(request, reply)}


_USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}


def _head(request: Request) -> dict[str, Any]:
    return {
        "id": f"resp_{request.turns}",
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": request.model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": None,
    }


def _item(request: Request, part: Text | SentCall, index: int) -> dict[str, Any]:
    if isinstance(part, Text):
        said = {"type": "output_text", "text": part.text, "annotations": []}
        return {
            "type": "message",
            "id": f"msg_{request.turns}_{index}",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
    tool = request.tools.get(part.tool, {})
    named = {"name": tool.get("name", part.tool)}
    if "namespace" in tool:
        named["namespace"] = tool["namespace"]
    return {
        "type": "function_call",
        "id": f"fc_{request.turns}_{index}",
        "call_id": part.id,
        **named,
        "arguments": part.arguments,
        "status": "completed",
    }


def _tools(given: Any) -> dict[str, Mapping[str, Any]]:
    tools: dict[str, Mapping[str, Any]] = {}
    for tool in given:
        if tool["type"] == "namespace":
            for one in tool["tools"]:
                tools[_full_name({"namespace": tool["name"], **one})] = {**one, "namespace": tool["name"]}
        else:
            tools[tool.get("name", tool["type"])] = tool
    return tools


def _full_name(item: Body) -> str:
    name = item.get("name", item["type"])
    return f"{item['namespace']}__{name}" if item.get("namespace") else name
