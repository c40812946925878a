"""Claude Code's transcripts: `projects/<folder>/<session>.jsonl`, those of sub-agents in `<session>/subagents/`. The
folder is called after the path in which Claude Code was started; lines have the folder that its shell is in.

An answer is a line for each of its blocks, all with its id and with its usage, which grows while it is streamed.
Resumed and forked sessions copy earlier lines into a new file. Fields that only some versions write are optional here.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

import msgspec

from serena_central.core.decoding import json_decoder
from serena_central.core.paths import expanded
from serena_central.transcripts.lines import Lines, decode
from serena_central.transcripts.requests import (
    NO_TIME,
    NO_TOKENS,
    Dollars,
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
from serena_central.transcripts.source import Form, Source, Transcript, named_after

_USAGE = b'"usage":'
_FAILED = b'"is_error":true'
_PROGRESS = b'"agent_progress"'

_NOT_IN_NAMES = re.compile("[^A-Za-z0-9]")
"""What becomes `-` where a path is made the name of a folder of transcripts."""

_UNIQUE_ID = re.compile(r"msg_[0-9A-Za-z_]{20,}")
"""An id that Anthropic's API gave. It names one request: a replay of it may have another request id, or none."""


class _CacheCreation(msgspec.Struct):
    ephemeral_5m_input_tokens: Tokens | None = None
    ephemeral_1h_input_tokens: Tokens | None = None


class _ServerTools(msgspec.Struct):
    web_search_requests: Tokens | None = None


class _Usage(msgspec.Struct):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    cache_creation: _CacheCreation | None = None
    server_tool_use: _ServerTools | None = None
    speed: str | None = None


class _Block(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    content: list[_Block] | str | None = None


class _Line(msgspec.Struct, rename="camel"):
    timestamp: str | None = None
    message: _Message | str | None = None
    request_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    attribution_agent: str | None = None
    is_sidechain: bool | None = None
    cwd: str | None = None
    cost_usd: Dollars | None = msgspec.field(default=None, name="costUSD")


class _Progress(msgspec.Struct, rename="camel"):
    message: _Line
    agent_id: str | None = None


class _ProgressLine(msgspec.Struct, rename="camel"):
    """What a sub-agent does, as older versions wrote it into its parent's transcript."""

    data: _Progress
    session_id: str | None = None
    cwd: str | None = None


_LINE = json_decoder(_Line)
_PROGRESS_LINE = json_decoder(_ProgressLine)


def _roots(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """`projects` of each folder that `CLAUDE_CONFIG_DIR` lists, else of `~/.config/claude` and `~/.claude`."""
    named = [part.strip() for part in environment.get("CLAUDE_CONFIG_DIR", "").split(",")]
    folders = [expanded(part) for part in named if part]
    if not folders:
        xdg = environment.get("XDG_CONFIG_HOME", "")
        base = Path(xdg) if os.path.isabs(xdg) else home / ".config"  # noqa: PTH117
        folders = [base / "claude", home / ".claude"]
    return [folder if folder.name == "projects" else folder / "projects" for folder in folders]


def _read(source: Source, drop: Drop) -> Iterator[Found]:
    lines = Lines(source.file, source.consumed, drop)
    known = _Place(source)
    for offset, line in lines.with_any((_USAGE, _FAILED)):
        source.at = offset
        one = (_PROGRESS in line and _progress(line)) or decode(_LINE, offset, line, drop)
        message = one and one.message
        if one is None or not isinstance(message, _Message):
            continue
        if message.usage is not None:
            request = _request(one, message, message.usage, known)
            if isinstance(request, str):
                drop(Dropped(offset, request, message.model or ""))
            else:
                yield request
        elif isinstance(message.content, list):
            for block in message.content:
                if block.is_error and block.tool_use_id:
                    yield Failure(known.tool(one, block.tool_use_id))
    source.consumed = lines.consumed


def _progress(line: bytes) -> _Line | None:
    try:
        found = _PROGRESS_LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # the word is somewhere in its text
    one = found.data.message
    one.session_id, one.cwd = found.session_id, found.cwd
    one.agent_id, one.is_sidechain = found.data.agent_id, True
    return one


class _Place:
    """What a line that does not say it has from its file: the session, and the folder worked in."""

    def __init__(self, source: Source) -> None:
        parts = source.path.relative_to(source.root).parts
        self.session = _session(source)
        self.folder = next(iter(parts), "")
        self._origins: dict[tuple[str | None, ...], Origin] = {}
        self._parts: tuple[str | None, ...] = ()
        self._key = 0

    def origin(self, line: _Line, model: str) -> Origin:
        key = line.session_id, line.cwd, line.attribution_agent, line.agent_id, model
        found = self._origins.get(key)
        if found is None:
            agent = line.attribution_agent or line.agent_id or ("sub-agent" if line.is_sidechain else "")
            found = self._origins[key] = Origin(
                "claude-code", self._project(line.cwd), line.session_id or self.session, agent, model
            )
        return found

    def _project(self, cwd: str | None) -> str:
        """The folder that the transcripts are filed under, where `cwd` is that or below it; else `cwd`."""
        if cwd is None:
            return self.folder
        above = (cwd, *map(str, PurePath(cwd).parents))
        return next((one for one in above if _NOT_IN_NAMES.sub("-", one) == self.folder), cwd)

    def key(self, line: _Line, message: _Message) -> int:
        """Of the request. The rows of one answer follow each other: it is made once for them."""
        parts = message.id, line.request_id, line.session_id, line.agent_id
        if parts != self._parts or message.id is None:
            self._parts, self._key = parts, _key(line, message, self.session)
        return self._key

    def tool(self, line: _Line, tool: str) -> int:
        return _key_of_tool(tool, line.session_id or self.session, line.agent_id)


def _session(transcript: Transcript, stated: str = "") -> str:
    """A sub-agent's file lies below its session's folder."""
    parts = transcript.path.relative_to(transcript.root).parts
    return parts[1] if len(parts) > 2 else transcript.path.stem


def _tool_key(transcript: Transcript, call: str, session: str) -> int:
    stem = transcript.path.stem
    agent = stem.removeprefix("agent-") if "subagents" in transcript.path.parts else None
    return _key_of_tool(call, session, agent)


def _key_of_tool(call: str, session: str, agent: str | None) -> int:
    # Ids are unique over all sessions when a provider gives them, and in a conversation when anybody does.
    return key_of("tool", call, "" if call.startswith("toolu_") else session, agent)


def _request(line: _Line, message: _Message, usage: _Usage, known: _Place) -> Request | str:
    """The request, or why there is none."""
    at = milliseconds(line.timestamp) if line.timestamp else None
    if at is None:
        return NO_TIME
    split = usage.cache_creation
    written = usage.cache_creation_input_tokens or 0
    long = (split and split.ephemeral_1h_input_tokens) or 0
    short = (split and split.ephemeral_5m_input_tokens) or 0
    if not short + long:
        short, long = written, 0
    content = message.content if isinstance(message.content, list) else ()
    tools = {known.tool(line, one.id): one.name for one in content if one.type == "tool_use" and one.id and one.name}
    request = Request(
        key=known.key(line, message),
        at=at,
        origin=known.origin(line, message.model or ""),
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        write_5m=short,
        write_1h=long,
        read=usage.cache_read_input_tokens or 0,
        searches=(usage.server_tool_use and usage.server_tool_use.web_search_requests) or 0,
        fast=usage.speed == "fast",
        sidechain=bool(line.is_sidechain),
        stated_cost=line.cost_usd,
        tools=tools,
    )
    return request if request.tokens or request.searches or tools else NO_TOKENS


def _key(line: _Line, message: _Message, file_session: str) -> int:
    if message.id and _UNIQUE_ID.fullmatch(message.id):
        return key_of("claude-code", message.id)
    if message.id and line.request_id:
        return key_of("claude-code", message.id, line.request_id)
    session = line.session_id or file_session
    # Endpoints without request ids may count their messages from 0 in each conversation, sub-agents' among them.
    return key_of("claude-code", message.id or line.timestamp, None, session, line.agent_id)


def _is_transcript(name: str) -> bool:
    return name.endswith(".jsonl")


FORM = Form("claude-code", _roots, _is_transcript, _read, _session, _tool_key, named_after)
