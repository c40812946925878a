"""This server's own transcripts, as far as they tell what its tasks spent: those of the runner `messages`.

Sessions of clients and tasks of other runners stand there too, without tokens: they count by the clients' transcripts.
A file holds a day of all sessions of a project.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import UnsetType

from serena_central.transcripts.lines import Lines
from serena_central.transcripts.own_files import DAY_FILE, root_of
from serena_central.transcripts.records import DECODER, AssistantMessage, ToolResult, project_hash
from serena_central.transcripts.requests import (
    EARLIEST_MS,
    LATEST_MS,
    NO_TIME,
    NO_TOKENS,
    Drop,
    Dropped,
    Failure,
    Found,
    Origin,
    Request,
    key_of,
)
from serena_central.transcripts.source import Form, Source, Transcript

if TYPE_CHECKING:
    from serena_central.transcripts.reports import SessionUsage

CLIENT = "messages"
"""As the runner is called."""

SESSIONS = "sessions"
"""In the state of a transcript: the sessions of which it holds answers with tokens."""

MARKERS = (b'"role":"assistant"', b'"status":"error"', b'"status":"cancelled"', b'"status":"deadline"')


def _read(source: Source, drop: Drop) -> Iterator[Found]:
    lines = Lines(source.file, source.consumed, drop)
    project = root_of(source.path.parent) or source.path.parent.name
    sessions: list[str] = source.state.setdefault(SESSIONS, [])
    for offset, record in lines.decoded(DECODER, MARKERS):
        source.at = offset
        session = str(record.session_id)
        if isinstance(record, ToolResult):
            yield Failure(_key_of_tool(record.tool_call_id, session))
        elif isinstance(record, AssistantMessage):
            request = _request(record, project, session)
            if isinstance(request, Request):
                if session not in sessions:
                    sessions.append(session)
                yield request
            else:
                drop(Dropped(offset, request))
    source.consumed = lines.consumed


def _request(record: AssistantMessage, project: str, session: str) -> Request | str:
    """The request, or why there is none."""
    at = round(record.timestamp.timestamp() * 1000)
    if not EARLIEST_MS <= at <= LATEST_MS:
        return NO_TIME
    model, agent = _text(record.model), _text(record.agent)
    calls = [cast("dict[str, object]", one) for one in record.tool_calls if isinstance(one, dict)]
    request = Request(
        key=key_of(CLIENT, session, record.timestamp.astimezone(UTC).isoformat()),
        at=at,
        origin=Origin(CLIENT, project, session, agent, model),
        input=record.input_tokens,
        output=record.output_tokens,
        write_5m=record.cache_creation_tokens,
        read=record.cache_read_tokens,
        # Where the model is known, the cost is found from the tokens: the line has it with four decimals only.
        stated_cost=None if model else record.cost,
        tools={
            _key_of_tool(str(one["id"]), session): str(one["name"]) for one in calls if {"id", "name"} <= one.keys()
        },
    )
    return request if request.tokens else NO_TOKENS


def _text(value: str | UnsetType) -> str:
    return "" if isinstance(value, UnsetType) else value


def _key_of_tool(call: str, session: str) -> int:
    return key_of("tool", CLIENT, call, session)


def _session(transcript: Transcript, stated: str) -> str:
    return stated if stated in transcript.state.get(SESSIONS, ()) else ""


def _tool_key(transcript: Transcript, call: str, session: str) -> int:
    return _key_of_tool(call, session)


def _may_hold(path: Path, root: Path, one: "SessionUsage") -> bool:
    """By project and day. What was asked a moment before an answer may stand in the day before."""
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (one.first_at, one.last_at))
    in_time = (first - timedelta(days=1)).isoformat() <= path.stem <= (last + timedelta(days=1)).isoformat()
    return in_time and path.parent.name == project_hash(one.project)


def _roots(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """None of a client: where they lie is the server's affair."""
    return []


def _is_transcript(name: str) -> bool:
    return DAY_FILE.fullmatch(name) is not None


FORM = Form(CLIENT, _roots, _is_transcript, _read, _session, _tool_key, _may_hold)
