"""What is handed to transcripts: finished tool calls, and what was said in a client or a task. Plain data, imported by
all that hand it over."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """`session` is ours, `conversation` the client's own id of what goes on in it, "" where it is not known; `root` is
    the project's absolute path; `outcome` is `ok`, `error`, `cancelled` or `deadline`, and `output` the answer's text
    or the error's. `ended_at` is Unix time in seconds. `transcript` is the session's id in the transcript where that is
    settled already."""

    id: str
    session: str
    conversation: str = ""
    root: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: str
    output: str
    ended_at: float
    duration_ms: float
    transcript: str = ""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one answer, and dollars."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    cost: float = 0.0


class RecordedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, or an answer: of a client the end of one, as its hook reports it, of a task each. `at` is Unix time in
    seconds, `transcript` as in `RecordedCall`, `calls` blocks of Anthropic's API; `attachments` see `records`. `model`
    is the one that was asked, or has answered; `agent` the task's, of an answer."""

    session: str
    conversation: str = ""
    root: str
    role: Literal["user", "assistant"]
    text: str
    at: float
    transcript: str = ""
    model: str | None = None
    agent: str | None = None
    attachments: Sequence[Mapping[str, Any]] = ()
    calls: Sequence[Mapping[str, Any]] = ()
    stop_reason: str = "end_turn"
    spent: Spent = Spent()


Recorded = RecordedCall | RecordedMessage
