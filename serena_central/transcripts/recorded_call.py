"""What is handed to transcripts: finished tool calls, and what was said in a client. Plain data, imported by all that
hand it over."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """`session` is ours, `conversation` the client's own id of what goes on in it, "" where it is not known; `root` is
    the project's absolute path; `outcome` is `ok`, `error`, `cancelled` or `deadline`, and `output` the answer's text
    or the error's. `ended_at` is Unix time in seconds."""

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


class RecordedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, or the end of the answer to one, as a client's hook reports it. `at` is Unix time in seconds."""

    session: str
    conversation: str
    root: str
    role: Literal["user", "assistant"]
    text: str
    at: float


Recorded = RecordedCall | RecordedMessage
