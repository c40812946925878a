"""Codex's rollouts: `sessions/YYYY/MM/DD/rollout-*.jsonl` of `$CODEX_HOME` (`~/.codex`), and `archived_sessions/`.

`token_count` is cumulative over the session, and repeated whenever limits are reported; input includes what was cached,
output includes reasoning. A forked session begins with a copy of its parent's lines at new times. So a request is known
by the cumulative counts after it, in the session where the line of forks began.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.core.decoding import converted, json_decoder
from serena_central.core.paths import expanded
from serena_central.transcripts.lines import Lines
from serena_central.transcripts.requests import (
    NO_TIME,
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

UUID_CHARS = 36
"""The end of a rollout's name is its session's id."""

_MARKERS = (
    b'"token_count"',
    b'"turn_context"',
    b'"session_meta"',
    b'"function_call"',
    b'"custom_tool_call"',
    b'"CommandExecution"',
)


class _Tokens(msgspec.Struct):
    input_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    cache_write_input_tokens: Tokens = 0
    output_tokens: Tokens = 0

    def minus(self, other: "_Tokens") -> "_Tokens":
        return _Tokens(*(mine - theirs for mine, theirs in zip(_counts(self), _counts(other), strict=True)))


class _Info(msgspec.Struct):
    total_token_usage: _Tokens | None = None
    last_token_usage: _Tokens | None = None


class _Payload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    cwd: str | None = None
    model: str | None = None
    forked_from_id: str | None = None
    info: _Info | None = None
    name: str | None = None
    call_id: str | None = None
    item: dict[str, Any] | None = None


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: _Payload | None = None


_LINE = json_decoder(_Line)


def _counts(tokens: _Tokens) -> tuple[int, int, int, int]:
    return cast(tuple[int, int, int, int], msgspec.structs.astuple(tokens))


def _roots(home: Path, environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("CODEX_HOME", "").strip()
    folder = expanded(named) if named else home / ".codex"
    return [folder / "sessions", folder / "archived_sessions"]


class _Session(msgspec.Struct):
    """What the next lines of a rollout depend on."""

    session: str
    lineage: str
    cwd: str = ""
    model: str = ""
    total: _Tokens = msgspec.field(default_factory=_Tokens)
    tools: dict[str, str] = {}
    """Calls since the last count: id → name."""


def _read(source: Source, drop: Drop) -> Iterator[Found]:
    stem = source.path.stem
    session = converted(source.state, _Session) if source.state else _Session(session=stem, lineage=stem)
    lines = Lines(source.file, source.consumed, drop)
    for offset, one in lines.decoded(_LINE, _MARKERS):
        source.at = offset
        payload = one.payload
        if payload is None:
            continue
        if one.type == "session_meta":
            _begin(session, payload, first=offset == 0)
        elif one.type == "turn_context":
            session.model = payload.model or session.model
            session.cwd = payload.cwd or session.cwd
        elif payload.type in ("function_call", "custom_tool_call") and payload.call_id and payload.name:
            session.tools[payload.call_id] = payload.name
        elif payload.type == "token_count":
            request = _request(session, one.timestamp, payload.info)
            if isinstance(request, str):
                drop(Dropped(offset, request))
            elif request is not None:
                yield request
        elif payload.item and payload.item.get("status") == "failed" and isinstance(payload.item.get("id"), str):
            yield Failure(_tool(session, payload.item["id"]))
    source.consumed = lines.consumed
    source.state = msgspec.to_builtins(session)


def _begin(session: _Session, meta: _Payload, *, first: bool) -> None:
    """The first line of a rollout says what it is; a fork goes on with its parent's first line."""
    if first:
        session.session = meta.id or session.session
        session.lineage = meta.forked_from_id or session.session
        session.cwd = meta.cwd or ""
    elif meta.id:
        session.lineage = meta.forked_from_id or meta.id


def _request(session: _Session, timestamp: str | None, info: _Info | None) -> Request | str | None:
    """None where nothing was spent since the last count, a text where it cannot be counted."""
    if info is None:
        return None
    total = info.total_token_usage
    if total is None:
        if info.last_token_usage is None:
            return None
        spent = info.last_token_usage
        total = _Tokens(*(a + b for a, b in zip(_counts(session.total), _counts(spent), strict=True)))
    else:
        spent, last = total.minus(session.total), info.last_token_usage
        # It counts from the start again, though perhaps past where it was: then nothing came before its last request.
        if min(_counts(spent)) < 0 or (total == last and total != session.total):
            spent = last or total
    at = milliseconds(timestamp) if timestamp else None
    if at is None:
        return NO_TIME
    session.total = total
    if not any(_counts(spent)):
        return None
    tools = {_tool(session, call): name for call, name in session.tools.items()}
    session.tools = {}
    cached = min(spent.cached_input_tokens, spent.input_tokens)
    written = min(spent.cache_write_input_tokens, spent.input_tokens - cached)
    return Request(
        key=key_of("codex", session.lineage, *map(str, _counts(total))),
        at=at,
        origin=Origin("codex", session.cwd, session.session, "", session.model),
        input=spent.input_tokens - cached - written,
        output=spent.output_tokens,
        write_5m=written,
        read=cached,
        tools=tools,
    )


def _tool(session: _Session, call: str) -> int:
    return key_of("tool", call, session.lineage)


def _session(transcript: Transcript, stated: str = "") -> str:
    return transcript.state.get("session") or transcript.path.stem[-UUID_CHARS:]


def _tool_key(transcript: Transcript, call: str, session: str) -> int:
    return key_of("tool", call, transcript.state.get("lineage") or session)


def _is_transcript(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith(".jsonl")


FORM = Form("codex", _roots, _is_transcript, _read, _session, _tool_key, named_after)
