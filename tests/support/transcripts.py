"""Lines of transcripts as the clients write them, shortened to what is read of them."""

import json
from pathlib import Path
from typing import Any

SONNET = "claude-sonnet-4-5-20250929"


def claude(
    message: str,
    *,
    at: str = "2026-11-01T10:00:00.000Z",
    request: str | None = "req_1",
    session: str = "s-1",
    model: str = SONNET,
    tools: dict[str, str] | None = None,
    agent: str | None = None,
    cwd: str = "/home/u/shop",
    input: int = 10,  # noqa: A002
    output: int = 100,
    write: int = 0,
    hour: int = 0,
    read: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A row of an answer. `write` are tokens written to the cache, `hour` of them are kept for an hour."""
    usage = {
        "input_tokens": input,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": write - hour, "ephemeral_1h_input_tokens": hour},
        "output_tokens": output,
    }
    calls = [{"type": "tool_use", "id": one, "name": name, "input": {}} for one, name in (tools or {}).items()]
    line = {
        "isSidechain": agent is not None,
        "type": "assistant",
        "timestamp": at,
        "cwd": cwd,
        "sessionId": session,
        "message": {"id": message, "model": model, "role": "assistant", "content": calls, "usage": usage},
        "version": "2.1.330",
    }
    if request:
        line["requestId"] = request
    if agent:
        line["agentId"] = agent
    return line | more


def failed(tool: str, *, session: str = "s-1") -> dict[str, Any]:
    """The result of a tool call that failed."""
    block = {"type": "tool_result", "tool_use_id": tool, "content": "no", "is_error": True}
    content = {"role": "user", "content": [block]}
    return {"type": "user", "timestamp": "2026-11-01T10:00:01.000Z", "sessionId": session, "message": content}


def codex(
    total: tuple[int, int, int], last: tuple[int, int, int] | None = None, at: str = "2026-11-01T10:00:00.000Z"
) -> dict[str, Any]:
    """A count of tokens: input, of these cached, output."""

    def tokens(given: tuple[int, int, int]) -> dict[str, int]:
        return dict(zip(("input_tokens", "cached_input_tokens", "output_tokens"), given, strict=True))

    info = {"total_token_usage": tokens(total)} | ({"last_token_usage": tokens(last)} if last else {})
    return {"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": info}}


def codex_meta(session: str, **more: Any) -> dict[str, Any]:
    payload = {"id": session, "cwd": "/home/u/shop", "cli_version": "0.169.0"} | more
    return {"timestamp": "2026-11-01T09:59:00.000Z", "type": "session_meta", "payload": payload}


def codex_turn(model: str = "gpt-5-codex", cwd: str = "/home/u/shop") -> dict[str, Any]:
    return {
        "timestamp": "2026-11-01T09:59:30.000Z",
        "type": "turn_context",
        "payload": {"model": model, "cwd": cwd},
    }


def gemini(message: str, *, input: int, output: int) -> dict[str, Any]:  # noqa: A002
    tokens = {"input": input, "output": output, "cached": 0, "thoughts": 0, "tool": 0, "total": input + output}
    return {
        "id": message,
        "timestamp": "2026-11-01T10:00:00.000Z",
        "type": "gemini",
        "content": "",
        "tokens": tokens,
        "model": "gemini-2.5-pro",
    }


def written(file: Path, *lines: dict[str, Any] | bytes) -> Path:
    """Appends lines; bytes as they are."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as out:
        for line in lines:
            out.write(line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() + b"\n")
    return file
