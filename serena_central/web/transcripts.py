"""Transcripts and usage as /api and the dashboard show them.

Everything is read in worker threads, and what is imported for it is imported then: a server that nobody asks about
transcripts pays nothing. What looks like a secret is masked.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec
from starlette.requests import Request

from serena_central.core.masking import masked
from serena_central.web.edit_usage import edits_used
from serena_central.web.query import limit_in, seconds_in
from serena_central.web.responses import NotFound
from serena_central.web.usage_reading import read_usage
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.transcripts.messages import Message
    from serena_central.transcripts.reports import SessionUsage
    from serena_central.transcripts.roots import FoundFile

EDIT_GROUPS = ("edit", "symbol")
GROUPS = (
    *("day", "week", "month", "model", "project", "session", "agent", "client", "tool", "upstream", "block"),
    *EDIT_GROUPS,
)

MOST_ENTRIES = 500
"""Of a transcript, in one answer."""

MOST_EDITS = 1000
"""With their cost, in one answer: the newest. The total is of all."""

MOST_CHARS = 20_000
"""Of one text of a transcript."""

PROMPT_CHARS = 200

MOST_DAYS = 2
"""Files that a session's first prompt is looked for in: its own or that of its first day, and the one before."""

SEARCH_S = 5.0


class TranscriptLine(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a client. `match` is the text around the first match of a search, `prompt` the first line of what
    was asked first; `unpriced` requests are not in `cost` (dollars). Times are Unix seconds."""

    client: str
    session: str
    project: str
    first_at: float
    last_at: float
    requests: int
    tokens: int
    cost: float
    unpriced: int
    prompt: str = ""
    match: str = ""


class TranscriptList(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, the latest first; `total` match. `not_searched` transcripts were not looked through for the text;
    `not_read` names files and folders that cannot be read, each with the reason."""

    sessions: list[TranscriptLine]
    total: int
    not_searched: int = 0
    not_read: list[str] = []


class TranscriptEntry(msgspec.Struct, kw_only=True):
    """What was said, or a call of a tool with its result. `kind` is user, assistant, summary, tool or result; `at` is
    ISO 8601; `given` are a call's arguments as text."""

    kind: str
    at: str
    text: str = ""
    agent: str = ""
    tool: str = ""
    call: str = ""
    given: str = ""
    result: str = ""
    failed: bool = False


class TranscriptPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries from number `start` on; `more` says that there are further ones."""

    client: str
    session: str
    project: str
    start: int
    entries: list[TranscriptEntry]
    more: bool


def list_transcripts(
    parts: WebServices,
    *,
    client: str = "",
    project: str = "",
    text: str = "",
    start: int = 0,
    limit: int = 100,
    arranged: "Callable[[list[SessionUsage]], list[SessionUsage]]" = list,
) -> TranscriptList:
    """Sessions of a client and a project (root, or its folder's name) that hold a text, in the order that `arranged`
    gives them. Blocks."""
    from serena_central.transcripts.reports import is_of, session_usage
    from serena_central.transcripts.roots import all_roots
    from serena_central.transcripts.search import search

    with read_usage(parts) as (store, done):
        found, known = session_usage(store), store.files()
    matches: dict[tuple[str, str], str] = {}
    left = 0
    if text:
        hits = search(all_roots(parts.places.transcripts), known, text, seconds=SEARCH_S)
        left = hits.left
        for hit in hits.hits:
            matches.setdefault((hit.client, hit.session), hit.text)
    chosen = arranged(
        [
            one
            for one in found
            if client in ("", one.client)
            and (not project or is_of(one.project, project))
            and (not text or (one.client, one.session) in matches)
        ]
    )
    shown = [
        transcript_line(parts, one, matches.get((one.client, one.session), "")) for one in chosen[start : start + limit]
    ]
    return TranscriptList(sessions=shown, total=len(chosen), not_searched=left, not_read=done.unreadable)


def show_transcript(parts: WebServices, client: str, session: str, *, start: int, limit: int) -> TranscriptPage:
    """A part of one session. Blocks.

    Raises:
        NotFound
    """
    from serena_central.transcripts.messages import messages_of
    from serena_central.transcripts.reports import session_usage

    with read_usage(parts) as (store, _):
        one = next((one for one in session_usage(store) if (one.client, one.session) == (client, session)), None)
    files = _files(parts, one) if one is not None else []
    if one is None or not files:
        raise NotFound(f"No transcript of {client} session {session} is on this machine.")
    try:
        entries, more = entries_of(messages_of(files, session), start, limit)
    except OSError as error:
        raise NotFound(f"The transcript of {client} session {session} cannot be read: {error}") from error
    return TranscriptPage(client=client, session=session, project=one.project, start=start, entries=entries, more=more)


def _files(parts: WebServices, one: "SessionUsage") -> "list[FoundFile]":
    from serena_central.transcripts.messages import files_of
    from serena_central.transcripts.roots import all_roots

    return files_of(all_roots(parts.places.transcripts), one)


def transcript_line(parts: WebServices, one: "SessionUsage", match: str = "") -> TranscriptLine:
    """Blocks: its first prompt is read."""
    return TranscriptLine(
        client=one.client,
        session=one.session,
        project=one.project,
        first_at=one.first_at,
        last_at=one.last_at,
        requests=one.requests,
        tokens=one.tokens,
        cost=one.cost,
        unpriced=one.unpriced,
        prompt=_first_prompt(parts, one),
        match=masked(match),
    )


def _first_prompt(parts: WebServices, one: "SessionUsage") -> str:
    from serena_central.transcripts.messages import messages_of

    try:
        for message in messages_of(_files(parts, one)[:MOST_DAYS], one.session):
            if message.role == "user" and message.text.strip():
                return masked(message.text.strip().splitlines()[0][:PROMPT_CHARS])
    except OSError:
        pass
    return ""


def entries_of(said: "Iterable[Message]", start: int, limit: int) -> tuple[list[TranscriptEntry], bool]:
    """Those from number `start` on, and whether there are more. A result belongs to its call, wherever that stands:
    past the last entry only results of its calls are looked for."""
    shown: list[TranscriptEntry] = []
    calls: dict[str, TranscriptEntry | None] = {}
    without_result: set[str] = set()
    number, more = 0, False
    for one in said:
        if one.role == "tool_result" and one.call in calls:
            call = calls[one.call]
            if call is not None:
                call.result, call.failed = _cut(one.text), one.failed
                without_result.discard(one.call)
        elif not more and (entry := _entry(one)) is not None:
            more = len(shown) == limit
            if one.role == "tool_call" and not more:
                calls[one.call] = entry if number >= start else None
            if number >= start and not more:
                shown.append(entry)
                if one.role == "tool_call":
                    without_result.add(one.call)
            number += 1
        if more and not without_result:
            break
    return shown, more


def _entry(one: "Message") -> TranscriptEntry | None:
    match one.role:
        case "tool_call":
            given = one.given if isinstance(one.given, str) else json.dumps(one.given, ensure_ascii=False, indent=1)
            return TranscriptEntry(
                kind="tool", at=one.at, agent=one.agent, tool=one.tool, call=one.call, given=_cut(given)
            )
        case "tool_result":
            return TranscriptEntry(
                kind="result", at=one.at, agent=one.agent, call=one.call, result=_cut(one.text), failed=one.failed
            )
        case _:
            if not one.text.strip():
                return None
            return TranscriptEntry(kind=one.role, at=one.at, agent=one.agent, text=_cut(one.text))


def _cut(text: str) -> str:
    text = masked(text)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}… ({len(text) - MOST_CHARS:,} more characters)"


@dataclass(frozen=True)
class Transcripts:
    """The handlers."""

    parts: WebServices

    async def list_transcripts(self, request: Request) -> Any:
        asked = request.query_params

        def read() -> TranscriptList:
            return list_transcripts(
                self.parts,
                client=asked.get("client", ""),
                project=asked.get("project", ""),
                text=asked.get("text", ""),
                start=int(asked.get("start", 0)),
                limit=limit_in(request),
            )

        return await anyio.to_thread.run_sync(read)

    async def show_transcript(self, request: Request) -> Any:
        named, start = request.path_params, int(request.query_params.get("start", 0))

        def read() -> TranscriptPage:
            return show_transcript(self.parts, named["client"], named["session"], start=start, limit=limit_in(request))

        return await anyio.to_thread.run_sync(read)

    async def show_usage(self, request: Request) -> Any:
        by: Any = request.query_params.get("by", "day")
        seconds = seconds_in(request, "since")
        since = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
        if by in EDIT_GROUPS:
            return await self._show_edits(by, since)

        def read() -> dict[str, Any]:
            from serena_central.transcripts.reports import report

            with read_usage(self.parts) as (store, done):
                found = report(store, by, since=since, zone=UTC, now=datetime.now(UTC))
                found.lines_not_read, found.not_read = store.dropped(), done.unreadable
                return {**msgspec.to_builtins(found), "more": False}

        return await anyio.to_thread.run_sync(read)

    async def _show_edits(self, by: str, since: datetime | None) -> Any:
        # Late: they join this module's readings with edits.
        from serena_central.transcripts.edit_usage import by_symbol, total_of, unknown_models

        edits, lines_not_read, not_read = await edits_used(self.parts, since)
        answer: dict[str, Any] = {
            "by": by,
            "rows": edits[:MOST_EDITS] if by == "edit" else by_symbol(edits),
            "more": by == "edit" and len(edits) > MOST_EDITS,
            "total": total_of(edits),
            "unknown_models": unknown_models(edits),
            "lines_not_read": lines_not_read,
            "not_read": not_read,
        }
        return msgspec.to_builtins(answer)
