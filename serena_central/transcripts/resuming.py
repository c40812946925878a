"""A session of our own transcripts as the conversation that Anthropic's messages API takes.

The API wants turns that alternate, begin with the user's, and answer each call of a tool in the very next turn. What a
crash has left open is closed here, and counted: a call without a result gets one that says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

import msgspec

from serena_central.core.words import counted
from serena_central.transcripts.own_files import root_of
from serena_central.transcripts.reader import Skipped, Warn, folder_of, records
from serena_central.transcripts.records import (
    CONTINUES,
    SUMMARY,
    AnyRecord,
    AssistantMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from serena_central.transcripts.session_ids import IDLE

Block = dict[str, Any]

BEGINNING = "(The beginning of this conversation is missing: its records were deleted.)"

INTERRUPTED = "The call was interrupted: it is not known what it did."


class Conversation(msgspec.Struct, kw_only=True):
    """`messages` are as the API takes them: turns of user and assistant. `model` is that of the last prompt.

    Token counts and `cost` (dollars) are those of all answers. `interrupted` names calls that got no result, `orphaned`
    results whose calls are missing and which are left out; `skipped` are lines that could not be read, and a session
    that is continued here and has no records any more."""

    session: str
    project: str
    model: str | None = None
    messages: list[Block] = []
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    cost: float = 0.0
    last_at: datetime | None = None
    interrupted: list[str] = []
    orphaned: list[str] = []
    skipped: list[str] = []


def resume(transcripts: Path, session: UUID | str) -> Conversation | None:
    """The conversation of a session in the folder of our transcripts, None where there is no such session.

    Raises:
        InvalidTranscript: a line of the session lacks a required field.
        OSError
    """
    folder = folder_of(transcripts, str(session))
    if folder is None:
        return None
    skipped: list[Skipped] = []
    line = chain(folder, str(session))
    found = conversation(_said(folder, line, skipped.append))
    found.session, found.project = str(session), root_of(folder) or ""
    found.skipped = [str(one) for one in skipped]
    if skipped and found.messages:
        lines = counted(len(skipped), "line")
        found.messages[0]["content"][:0] = _text(f"({lines} of the record of this conversation could not be read.)")
    if len(line) > 1 and line[0].first is None:
        found.skipped.append(
            f"Session {line[1].session} continues session {line[0].session}, of which there are no records."
        )
    return found


class Link(NamedTuple):
    """A session as far as another one continues it: its records up to a time, `first` of them; None where there are
    none."""

    session: str
    until: datetime | None = None
    first: AnyRecord | None = None


def chain(folder: Path, session: str) -> list[Link]:
    """A session of a project's folder, after all that it continues, the oldest first. Only the oldest can be without
    records.

    Raises:
        InvalidTranscript: a line of one of them lacks a required field, so that it is not known what it continues.
        OSError
    """
    found = [_link(folder, session)]
    known = {session}
    while (before := _continues(found[-1].first)) is not None and before.session not in known:
        known.add(before.session)
        found.append(_link(folder, before.session, before.until))
    return found[::-1]


def _link(folder: Path, session: str, until: datetime | None = None) -> Link:
    return Link(session, until, next(_until(folder, session, until, _nobody), None))


def _continues(first: AnyRecord | None) -> Link | None:
    """What the session of this first record goes on from."""
    if not isinstance(first, UserMessage):
        return None
    before = next((one for one in _of_type(first.attachments, CONTINUES)), None)
    return None if before is None else Link(str(before.get("sessionId")), first.timestamp)


def _until(folder: Path, session: str, until: datetime | None, warn: Warn) -> Iterator[AnyRecord]:
    return (one for one in records(folder, session, warn) if until is None or one.timestamp <= until)


def _said(folder: Path, line: Sequence[Link], warn: Warn) -> Iterator[AnyRecord]:
    """The records of sessions that continue each other, with a prompt that says so where the first of them are gone."""
    for link in line:
        if link.first is None and link.until is not None:
            yield UserMessage(session_id=UUID(int=0, version=4), timestamp=link.until, content=BEGINNING)
        yield from _until(folder, link.session, link.until, warn)


def _nobody(_: Skipped) -> None:
    pass


class Continued(msgspec.Struct, frozen=True):
    """How a conversation goes on: the id of its session, and what the next prompt has attached."""

    session: str
    attachments: list[Block] = []


def continued(found: Conversation, *, new: bool, now: datetime | None = None) -> Continued:
    """The session of what is said next in a conversation: the same, or another one that refers to it: where a `new` one
    is wanted, or this one was idle for a day."""
    idle = found.last_at is None or (now or datetime.now(UTC)) - found.last_at > IDLE
    if not (new or idle):
        return Continued(found.session)
    return Continued(str(uuid4()), [{"type": CONTINUES, "sessionId": found.session}])


def conversation(read: Iterable[AnyRecord]) -> Conversation:
    """The conversation that records make, in their order."""
    found = Conversation(session="", project="")
    turns = _Turns(found)
    for record in read:
        found.last_at = record.timestamp
        match record:
            case UserMessage():
                found.model = record.model or found.model
                if any(_of_type(record.attachments, SUMMARY)):
                    turns.restart()
                turns.prompt(record)
            case AssistantMessage():
                found.input_tokens += record.input_tokens
                found.output_tokens += record.output_tokens
                found.cache_creation_tokens += record.cache_creation_tokens
                found.cache_read_tokens += record.cache_read_tokens
                found.cost += record.cost
                turns.answer(record)
            case ToolCall():
                turns.call(record)
            case ToolResult():
                turns.result(record)
    turns.close()
    return found


class _Turns:
    """Builds the messages. `_calls` are those of the last assistant's turn that wait for results, `_results` those that
    came, in the order of their calls when the turn is closed."""

    def __init__(self, goal: Conversation) -> None:
        self._goal = goal
        self._calls: list[str] = []
        self._results: dict[str, Block] = {}

    def restart(self) -> None:
        """What was said before is replaced by a summary."""
        self.close()
        self._goal.messages.clear()

    def prompt(self, record: UserMessage) -> None:
        self.close()
        own = {id(one) for kind in (CONTINUES, SUMMARY) for one in _of_type(record.attachments, kind)}
        self._add("user", [*_text(record.content), *(one for one in _blocks(record.attachments) if id(one) not in own)])

    def answer(self, record: AssistantMessage) -> None:
        self.close()
        calls: list[Block] = [
            {"type": "tool_use", "id": one["id"], "name": str(one.get("name") or ""), "input": one.get("input") or {}}
            for one in _blocks(record.tool_calls)
            if isinstance(one.get("id"), str)
        ]
        self._calls = [one["id"] for one in calls]
        self._add("assistant", [*_text(record.content), *calls])

    def call(self, record: ToolCall) -> None:
        """A call that its answer lists adds nothing; sessions of clients, of which we see the calls alone, have no
        answers."""
        if record.tool_call_id in self._calls:
            return
        if self._results:
            self.close()
        given = record.tool_input
        block: Block = {"type": "tool_use", "id": record.tool_call_id, "name": record.tool_name, "input": given}
        if not isinstance(given, dict):
            block["input"] = {"input": given}
        self._add("assistant", [block])
        self._calls.append(record.tool_call_id)

    def result(self, record: ToolResult) -> None:
        if record.tool_call_id not in self._calls:
            self._goal.orphaned.append(record.tool_call_id)
            return
        output = record.output
        if not (isinstance(output, str) or _is_content(output)):
            output = msgspec.json.encode(output).decode()
        block = {"type": "tool_result", "tool_use_id": record.tool_call_id, "content": output}
        self._results[record.tool_call_id] = block | ({} if record.status == "ok" else {"is_error": True})

    def close(self) -> None:
        """Ends a turn of the assistant: its calls get their results."""
        blocks: list[Block] = []
        for call in self._calls:
            found = self._results.get(call)
            if found is None:
                self._goal.interrupted.append(call)
                found = {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}
            blocks.append(found)
        self._calls, self._results = [], {}
        self._add("user", blocks)

    def _add(self, role: str, blocks: list[Block]) -> None:
        if not blocks:
            return
        messages = self._goal.messages
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
            return
        if not messages and role == "assistant":
            messages.append(
                {"role": "user", "content": _text("(The beginning of this conversation was not recorded.)")}
            )
        messages.append({"role": role, "content": blocks})


def _text(content: str) -> list[Block]:
    # The API refuses empty texts.
    return [{"type": "text", "text": content}] if content.strip() else []


def _blocks(values: list[Any]) -> list[Block]:
    return [cast(Block, one) for one in values if isinstance(one, dict)]


def _of_type(values: list[Any], kind: str) -> list[Block]:
    return [one for one in _blocks(values) if one.get("type") == kind]


def _is_content(value: Any) -> bool:
    """Whether it is a list of blocks, not other data."""
    if not isinstance(value, list):
        return False
    blocks = _blocks(cast("list[Any]", value))
    kinds = {one.get("type") for one in blocks}
    return len(blocks) == len(cast("list[Any]", value)) and kinds <= {"text", "image", "document"}
