"""Counts records of kinds that nothing here reads: bookkeeping, and what a client's later version may have added."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.core.decoding import JsonDecoder, json_decoder
from serena_central.transcripts.lines import LONGEST, Lines
from serena_central.transcripts.requests import Dropped

READ: dict[str, frozenset[str]] = {
    "claude-code": frozenset(("user", "assistant", "summary")),
    "codex": frozenset(("session_meta", "turn_context", "response_item", "compacted", "event_msg/token_count")),
    "gemini": frozenset(("user", "gemini", "header", "$set")),
    "messages": frozenset(("user", "assistant", "tool_call", "tool_result")),
}
"""By client: kinds of records that usage or conversations are read from."""

MOST_KIND_CHARS = 60

NO_KIND = "without a kind"


class _Record(msgspec.Struct):
    type: Any = None
    payload: Any = None
    role: Any = None
    session_id: Any = msgspec.field(default=None, name="sessionId")
    changed: Any = msgspec.field(default=None, name="$set")


class _Document(msgspec.Struct):
    messages: list[_Record] = []


_RECORD = json_decoder(_Record)
_DOCUMENT = json_decoder(_Document)


def other_kinds(client: str, path: Path) -> Counter[str]:
    """Kind → how many records of it a transcript holds, of kinds that are not in `READ`. Lines that can't be read have
    no kind: they are dropped rows.

    Raises:
        OSError
    """
    known = READ[client]
    found: Counter[str] = Counter()
    with path.open("rb", buffering=0) as file:
        if path.suffix == ".json":
            for record in _decoded(_DOCUMENT, file.read(LONGEST), _Document()).messages:
                found[_kind(client, record)] += 1
        else:
            for _, line in Lines(file, 0, _ignore).all():
                if (record := _decoded(_RECORD, line, None)) is not None:
                    found[_kind(client, record)] += 1
    return Counter({kind: count for kind, count in found.items() if kind not in known})


def _kind(client: str, record: _Record) -> str:
    kind = record.role if client == "messages" else record.type
    if client == "gemini" and kind is None:
        kind = "$set" if record.changed is not None else "header" if record.session_id is not None else None
    if client == "codex" and kind == "event_msg" and isinstance(record.payload, dict):
        kind = f"event_msg/{cast('dict[str, Any]', record.payload).get('type')}"
    return kind[:MOST_KIND_CHARS] if isinstance(kind, str) and kind else NO_KIND


def _decoded(decoder: "JsonDecoder[Any]", content: bytes, otherwise: Any) -> Any:
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return otherwise


def _ignore(_: Dropped) -> None:
    pass
