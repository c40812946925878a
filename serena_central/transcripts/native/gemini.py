"""Gemini CLI's chats: `tmp/<project>/chats/session-*.jsonl` of `~/.gemini`, in older versions one JSON document each.

A message is written again when its tool calls have ended. Input includes what was cached; thoughts are billed as
output, the results of built-in tools as input.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from serena_central.core.decoding import json_decoder
from serena_central.core.errors import SerenaCentralError
from serena_central.core.nofollow import open_following
from serena_central.core.paths import expanded
from serena_central.files.text import read_bytes
from serena_central.transcripts.lines import LONGEST, Lines, decode
from serena_central.transcripts.requests import (
    NO_TIME,
    NO_TOKENS,
    TOO_LONG,
    Drop,
    Dropped,
    Failure,
    Found,
    Origin,
    Request,
    Tokens,
    key_of,
    milliseconds,
)
from serena_central.transcripts.source import Form, Source, Transcript

if TYPE_CHECKING:
    from serena_central.transcripts.reports import SessionUsage


LONGEST_PATH = 4096


class _Tokens(msgspec.Struct):
    input: Tokens | None = None
    output: Tokens | None = None
    cached: Tokens | None = None
    thoughts: Tokens | None = None
    tool: Tokens | None = None


class _ToolCall(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    status: str | None = None


class _Message(msgspec.Struct, rename="camel"):
    type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    model: str | None = None
    tokens: _Tokens | None = None
    tool_calls: list[_ToolCall] | None = None
    session_id: str | None = None


class _Changed(msgspec.Struct):
    messages: list[_Message] | None = None


class _Line(_Message):
    changed: _Changed | None = msgspec.field(default=None, name="$set")


class _Document(msgspec.Struct, rename="camel"):
    session_id: str | None = None
    messages: list[_Message] = []


_LINE = json_decoder(_Line)
_DOCUMENT = json_decoder(_Document)


def _roots(home: Path, environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("GEMINI_CLI_HOME", "").strip()
    return [(expanded(named) if named else home) / ".gemini" / "tmp"]


def _is_transcript(name: str) -> bool:
    return name.startswith("session-") and name.endswith((".jsonl", ".json"))


def _read(source: Source, drop: Drop) -> Iterator[Found]:
    project = _project(source)
    messages = _document(source, drop) if source.path.suffix == ".json" else _lines(source, drop)
    for offset, message in messages:
        source.at = offset
        if message.type != "gemini" or message.tokens is None:
            continue
        session = _session(source)
        request = _request(message, message.tokens, Origin("gemini", project, session, "", message.model or ""))
        if isinstance(request, str):
            drop(Dropped(offset, request))
            continue
        yield request
        for call in message.tool_calls or ():
            if call.id and call.status == "error":
                yield Failure(key_of("tool", call.id, session))


def _lines(source: Source, drop: Drop) -> Iterator[tuple[int, _Message]]:
    lines = Lines(source.file, source.consumed, drop)
    for offset, one in lines.decoded(_LINE, (b'"tokens":', b'"sessionId":')):
        if one.session_id:
            source.state = {"session": one.session_id}
        yield offset, one
        for message in (one.changed and one.changed.messages) or ():
            yield offset, message
    source.consumed = lines.consumed


def _document(source: Source, drop: Drop) -> Iterator[tuple[int, _Message]]:
    """A document is written as a whole: it is read from its start each time."""
    source.file.seek(0)
    content = source.file.read(LONGEST + 1)
    source.consumed = 0
    if len(content) > LONGEST:
        drop(Dropped(0, TOO_LONG))
        return
    document = decode(_DOCUMENT, 0, content, drop)
    if document is None:
        return
    if document.session_id:
        source.state = {"session": document.session_id}
    for message in document.messages:
        yield 0, message


def _request(message: _Message, tokens: _Tokens, origin: Origin) -> Request | str:
    at = milliseconds(message.timestamp) if message.timestamp else None
    if at is None:
        return NO_TIME
    given = (tokens.input or 0) + (tokens.tool or 0)
    cached = min(tokens.cached or 0, given)
    calls = {
        key_of("tool", one.id, origin.session): one.name for one in message.tool_calls or () if one.id and one.name
    }
    request = Request(
        key=key_of("gemini", origin.session, message.id or message.timestamp),
        at=at,
        origin=origin,
        input=given - cached,
        output=(tokens.output or 0) + (tokens.thoughts or 0),
        read=cached,
        tools=calls,
    )
    return request if request.tokens or calls else NO_TOKENS


def _session(transcript: Transcript, stated: str = "") -> str:
    return transcript.state.get("session") or transcript.path.stem.removeprefix("session-")


def _tool_key(transcript: Transcript, call: str, session: str) -> int:
    return key_of("tool", call, session)


def _may_hold(path: Path, root: Path, one: "SessionUsage") -> bool:
    """Its files are named by the beginning of the id."""
    return any(one.session[:8] in part for part in path.relative_to(root).parts)


def _project(source: Source) -> str:
    """The project's root, which its folder of chats names; else that folder's name."""
    folder = source.root / source.path.relative_to(source.root).parts[0]
    try:
        content, _ = read_bytes(folder / ".project_root", max_bytes=LONGEST_PATH, opener=open_following)
        return content.decode().strip() or folder.name
    except (OSError, UnicodeDecodeError, SerenaCentralError):
        return folder.name


FORM = Form("gemini", _roots, _is_transcript, _read, _session, _tool_key, _may_hold)
