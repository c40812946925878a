"""What was said in a client's session: prompts, answers, calls of tools and their results, from its native transcript.

A stream, in the file's order. Records of kinds that this version does not know are left out.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from serena_central.core.decoding import from_json
from serena_central.transcripts.lines import LONGEST, Lines
from serena_central.transcripts.records import SUMMARY
from serena_central.transcripts.reports import SessionUsage
from serena_central.transcripts.requests import Dropped
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in

Role = Literal["user", "assistant", "tool_call", "tool_result", "summary"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """`at` is ISO 8601. Of tools, `tool` is the name and `call` the id that joins call and result; `given` are the
    call's arguments. `agent` names the sub-agent, if it is one's. `session` is the session that a line states, in
    transcripts of several sessions; "" in others."""

    role: Role
    at: str
    text: str = ""
    tool: str = ""
    call: str = ""
    given: Any = None
    failed: bool = False
    agent: str = ""
    session: str = ""


Data = dict[str, Any]

PROMPT_CHARS = 200

DOCUMENT = ".json"
"""The suffix of a transcript that is one JSON document, with its messages in a list."""

_COMMAND = re.compile(r"<command-(?:name|args)>(.*?)</command-(?:name|args)>", re.DOTALL)
_COMMAND_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")


def files_of(roots: Sequence[Root], session: SessionUsage) -> list[FoundFile]:
    """The transcripts of a session: of its main conversation first, then of its sub-agents. By their names: there may
    be nothing of it in one."""
    own = [one for one in roots if one.form.client == session.client]
    found = [one for one in transcripts_in(own) if one.root.form.may_hold(Path(one.path), one.root.folder, session)]
    return sorted(found, key=lambda one: (one.path.count("/"), one.path))


def messages_of(files: Sequence[FoundFile], session: str) -> Iterator[Message]:
    """What transcripts hold of a session.

    Raises:
        OSError
    """
    for file in files:
        yield from (one for one in messages(file) if one.session in ("", session))


def messages(found: FoundFile) -> Iterator[Message]:
    """What a transcript holds.

    Raises:
        OSError
    """
    return messages_in(found.root.form.client, Path(found.path))


def prompt_before(client: str, path: Path, call: str, session: str) -> str:
    """The first line of the prompt that a tool call of a session in a transcript answers; "" where there is none."""
    prompt = ""
    try:
        for message in messages_in(client, path):
            if message.session not in ("", session):
                continue
            if message.role == "user" and message.text.strip():
                prompt = message.text.strip().splitlines()[0][:PROMPT_CHARS]
            if message.role == "tool_call" and message.call == call:
                break
    except OSError:
        return ""
    return prompt


def messages_in(client: str, path: Path) -> Iterator[Message]:
    """What a transcript of a client holds.

    Raises:
        OSError
    """
    reading = _READERS[client]
    with path.open("rb", buffering=0) as file:
        if path.suffix == DOCUMENT:
            for one in _list(_data(file.read(LONGEST)).get("messages")):
                yield from reading(one)
            return
        for _, line in Lines(file, 0, _ignore).all():
            yield from reading(_data(line))


def messages_with(found: FoundFile, texts: Sequence[bytes], *, any_case: bool = False) -> Iterator[Message]:
    """What those lines of a transcript hold that have one of these texts, in any case of ASCII's letters if they are
    lower case and it is wanted. The rest costs a search only; of a transcript that is one document, all is given.

    Raises:
        OSError
    """
    path, reading = Path(found.path), _READERS[found.root.form.client]
    if path.suffix == DOCUMENT:
        yield from messages(found)
        return
    with path.open("rb", buffering=0) as file:
        lines = Lines(file, 0, _ignore)
        for _, line in lines.with_text(texts) if any_case else lines.with_any(texts):
            yield from reading(_data(line))


def _data(line: bytes) -> Data:
    try:
        found = from_json(line)
    except msgspec.DecodeError:
        return {}
    return cast(Data, found) if isinstance(found, dict) else {}


def _claude(line: Data) -> Iterator[Message]:
    at, agent = str(line.get("timestamp") or ""), str(line.get("attributionAgent") or line.get("agentId") or "")
    message = line.get("message")
    if line.get("type") == "summary":
        yield Message(role="summary", at=at, text=str(line.get("summary") or ""))
    if not isinstance(message, dict) or line.get("type") not in ("user", "assistant") or line.get("isMeta"):
        return
    said = cast(Data, message)
    content = said.get("content")
    role: Role = "summary" if line.get("isCompactSummary") else "assistant" if line["type"] == "assistant" else "user"
    if isinstance(content, str):
        content = [{"type": "text", "text": _typed(content) if role == "user" else content}]
    for block in _list(content):
        match block.get("type"):
            case "text" if block.get("text"):
                yield Message(role=role, at=at, text=str(block["text"]), agent=agent)
            case "tool_use":
                name, call = str(block.get("name") or ""), str(block.get("id") or "")
                yield Message(role="tool_call", at=at, tool=name, call=call, given=block.get("input"), agent=agent)
            case "tool_result":
                yield Message(
                    role="tool_result",
                    at=at,
                    text=_text(block.get("content")),
                    call=str(block.get("tool_use_id") or ""),
                    failed=bool(block.get("is_error")),
                    agent=agent,
                )
            case _:
                pass


def _typed(text: str) -> str:
    """What a person typed: a command by its name and arguments, not as the form that Claude Code keeps of it; "" where
    it is the output of one."""
    if text.startswith(_COMMAND_OUTPUT):
        return ""
    return " ".join(filter(None, _COMMAND.findall(text))) if text.startswith("<command-") else text


def _codex(line: Data) -> Iterator[Message]:
    at, payload = str(line.get("timestamp") or ""), line.get("payload")
    if not isinstance(payload, dict):
        return
    item = cast(Data, payload)
    if line.get("type") == "compacted":
        yield Message(role="summary", at=at, text=str(item.get("message") or ""))
    if line.get("type") != "response_item":
        return
    match item.get("type"):
        case "message" if item.get("role") in ("user", "assistant"):
            text = _text(item.get("content"))
            if not text.startswith(("<environment_context>", "<user_instructions>")):
                yield Message(role=item["role"], at=at, text=text)
        case "function_call" | "custom_tool_call":
            given = item.get("arguments", item.get("input"))
            yield Message(
                role="tool_call",
                at=at,
                tool=str(item.get("name") or ""),
                call=str(item.get("call_id") or ""),
                given=_arguments(given),
            )
        case "function_call_output" | "custom_tool_call_output":
            yield Message(
                role="tool_result", at=at, text=_text(item.get("output")), call=str(item.get("call_id") or "")
            )
        case _:
            pass


def _gemini(line: Data) -> Iterator[Message]:
    at = str(line.get("timestamp") or "")
    if line.get("type") == "user":
        text = _text(line.get("content"))
        if text and not text.startswith("<session_context>"):
            yield Message(role="user", at=at, text=text)
    elif line.get("type") == "gemini":
        calls = _list(line.get("toolCalls"))
        # It is written again with its calls: the text stands in the first one.
        if line.get("content") and not calls:
            yield Message(role="assistant", at=at, text=_text(line.get("content")))
        for call in calls:
            name, number = str(call.get("name") or ""), str(call.get("id") or "")
            yield Message(role="tool_call", at=at, tool=name, call=number, given=call.get("args"))
            failed, shown = call.get("status") == "error", _text(call.get("resultDisplay"))
            yield Message(role="tool_result", at=at, text=shown, call=number, failed=failed)


def _own(line: Data) -> Iterator[Message]:
    at, session = str(line.get("timestamp") or ""), str(line.get("sessionId") or "")
    text, agent = _text(line.get("content")), str(line.get("agent") or "")
    tool, call = str(line.get("toolName") or ""), str(line.get("toolCallId") or "")
    match line.get("role"):
        case "user":
            compacted = any(one.get("type") == SUMMARY for one in _list(line.get("attachments")))
            yield Message(role="summary" if compacted else "user", at=at, text=text, session=session)
        case "assistant" if text:
            yield Message(role="assistant", at=at, text=text, agent=agent, session=session)
        case "tool_call":
            yield Message(role="tool_call", at=at, tool=tool, call=call, given=line.get("toolInput"), session=session)
        case "tool_result":
            output, failed = _output(line.get("output")), line.get("status") != "ok"
            yield Message(role="tool_result", at=at, text=output, call=call, failed=failed, session=session)
        case _:
            pass


_READERS: dict[str, Callable[[Data], Iterator[Message]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "messages": _own,
}


def _list(value: Any) -> list[Data]:
    return (
        [cast(Data, one) for one in cast("list[Any]", value) if isinstance(one, dict)]
        if isinstance(value, list)
        else []
    )


def _text(value: Any) -> str:
    """The words of a content: a text, or a list of blocks."""
    if isinstance(value, str):
        return value
    return "\n".join(str(one["text"]) for one in _list(value) if isinstance(one.get("text"), str))


def _output(value: Any) -> str:
    """A result: a text, a list of blocks, or other data."""
    return _text(value) or ("" if value in (None, "", []) else json.dumps(value, ensure_ascii=False))


def _arguments(value: Any) -> Any:
    """Codex keeps arguments as JSON text; a patch is a text of its own."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _ignore(_: Dropped) -> None:
    pass
