"""The transcripts that this server writes: one JSON object a line, of four kinds that `role` tells apart.

A line without a required field, or with a value of another type, is none of them. Keys that a later version may add are
ignored.
"""

import base64
import hashlib
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from serena_central.core.decoding import json_decoder

At = Annotated[datetime, msgspec.Meta(tz=True)]


class Record(msgspec.Struct, kw_only=True, rename="camel", tag_field="role"):
    """What each line has. `session_id` is a UUID of version 4.

    Raises: ValueError for another one; msgspec reports it as ValidationError where it decodes."""

    session_id: UUID
    timestamp: At

    def __post_init__(self) -> None:
        if self.session_id.version != 4:
            raise ValueError("sessionId is not a UUID of version 4")


SUMMARY = "summary"
"""The type of an attachment: the message stands for all that was said before it."""

CONTINUES = "continues"
"""The type of an attachment: the session goes on from where the one in `sessionId` was at that time."""


class UserMessage(Record, kw_only=True, rename="camel", tag="user"):
    content: str
    model: str | None = None
    attachments: list[Any] = []


class AssistantMessage(Record, kw_only=True, rename="camel", tag="assistant"):
    """`cost` is in dollars, with four decimals. `model` and `agent` (of a task) are those that spent the tokens."""

    content: str
    tool_calls: list[Any] = []
    stop_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    cost: float = 0.0
    model: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET


class ToolCall(Record, kw_only=True, rename="camel", tag="tool_call"):
    tool_call_id: str
    tool_name: str
    tool_input: Any = None
    status: str = "started"


class ToolResult(Record, kw_only=True, rename="camel", tag="tool_result"):
    """`status` is `ok`, `error`, `cancelled` or `deadline`; `exit_code` is that of a command."""

    tool_call_id: str
    tool_name: str
    status: str
    output: Any = None
    exit_code: int | None = None
    execution_time_ms: float | None = None


AnyRecord = UserMessage | AssistantMessage | ToolCall | ToolResult

DECODER = json_decoder(AnyRecord)


def project_hash(root: str) -> str:
    """The name of a project's folder of transcripts: 120 bits of the digest of its absolute path, in base64url."""
    digest = hashlib.sha256(root.encode("utf-8", "surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest)[:20].decode()
