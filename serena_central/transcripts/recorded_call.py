"""A finished tool call as it is handed to transcripts: plain data, imported by all who hand one over."""

from collections.abc import Mapping
from typing import Any

import msgspec


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """`session` names the conversation, `root` the project's absolute path; `outcome` is `ok`, `error`, `cancelled` or
    `deadline`, and `output` the answer's text or the error's. `ended_at` is Unix time in seconds."""

    id: str
    session: str
    root: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: str
    output: str
    ended_at: float
    duration_ms: float
