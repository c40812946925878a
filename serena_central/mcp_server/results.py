"""A tool's answer as the result of `tools/call`: its text, and its data as structured content.

Clients differ in what they show a model. Most show the text. Codex and Claude Code show `structuredContent` in its
place: it holds all that the text says, and what is not visible as escapes. Gemini CLI makes structured content of a
text that is JSON, and rejects the result if that is not an object. One rule serves all: data is sent in both forms, and
so is a text that a client could take for data.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from serena_central.core.quoting import with_escapes_shown
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool

_STARTS = frozenset('["-0123456789tfn')
"""First characters of JSON values other than objects."""


MODERN = "2026-07-28"
"""The first version of the era without a handshake."""


def wire(result: dict[str, Any]) -> dict[str, Any]:
    """A result as the modern era wants it; in the handshake era the SDK drops what that era does not know."""
    return {"resultType": "complete", **result}


def result_of_era(result: dict[str, Any], version: str) -> dict[str, Any]:
    """A result in wire form that does not go through the SDK, for a protocol version."""
    if version >= MODERN:
        return result
    return {key: value for key, value in result.items() if key != "resultType"}


def call_result(answer: Answer, tool: Tool | None) -> dict[str, Any]:
    """The result in wire form. `structuredContent` fits the tool's `output_schema`."""
    if answer.passed is not None:
        return _passed_on(answer.passed, answer)
    texts: list[Mapping[str, Any]] = [{"type": "text", "text": block} for block in answer.blocks]
    result: dict[str, Any] = {
        "content": texts if answer.content is None else [*answer.content.blocks, *texts[1:]],
        "isError": False,
        "_meta": {"tokenEstimate": answer.token_estimate},
    }
    if answer.content is not None:
        if answer.content.structured is not None:
            result["structuredContent"] = answer.content.structured
    elif answer.data is not None:
        result["structuredContent"] = _structured(msgspec.json.decode(with_escapes_shown(answer.data)), answer.notes)
    elif (tool is not None and tool.answers is not None) or _passes_for_data(answer.blocks[0]):
        result["structuredContent"] = _structured(answer.blocks[0], answer.notes)
    return wire(result)


def _passed_on(result: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """An upstream's result as it came; notes of ours follow its content."""
    content: list[Any] = list(result.get("content") or ())
    notes = answer.blocks[len(content) or 1 :]
    return wire({**result, "content": [*content, *({"type": "text", "text": note} for note in notes)]})


def _structured(result: Any, notes: list[str]) -> dict[str, Any]:
    return {"result": result, "notes": notes} if notes else {"result": result}


def _passes_for_data(text: str) -> bool:
    """Whether a client that parses the text as JSON gets something other than an object."""
    if text.lstrip("\t\n\r ")[:1] not in _STARTS:
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)  # no limit to the number of digits
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
