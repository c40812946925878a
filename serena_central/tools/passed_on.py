"""Answers of upstreams: passed on as they are, or, where they are too long, a page of their text; the rest is kept for
the session and read by `read_result`.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.core.lru import Lru
from serena_central.tools.answer import MAX_CHARS, MOST_BYTES, Answer, PassedOn, cut_to, size_of

KEPT_CHARS = 70_000_000
"""Of all sessions together: more than the longest message of an upstream has (`MAX_MESSAGE_BYTES`)."""

MOST_KEPT = 500
"""Answers."""

NOTE_CHARS = 200
"""Left for the sentence that says how to go on."""

_KEPT_OF_CUT = ("isError", "resultType")
"""What else stays of a result that is too long."""


class _Kept(NamedTuple):
    session: str
    text: str


class KeptResults:
    """Long answers of upstreams, the newest. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._kept: Lru[str, _Kept] = Lru(MOST_KEPT, max_size=KEPT_CHARS, size_of=lambda one: len(one.text))

    def keep(self, session: str, text: str) -> str:
        """Returns the id by which this session, and no other, can read it."""
        result_id = f"r-{secrets.token_hex(6)}"
        self._kept[result_id] = _Kept(session, text)
        return result_id

    def read(self, session: str, result_id: str) -> str:
        """Raises: InvalidArguments where the session has no such result."""
        found = self._kept.get(result_id)
        if found is None or found.session != session:
            raise InvalidArguments(
                f"There is no kept result {result_id[:40]!r} in this session. Call the tool again, and ask for less."
            )
        return found.text


def passed_answer(passed: PassedOn, kept: KeptResults, session: str, limit: int) -> Answer:
    """The answer to a call of an upstream's tool, of `limit` bytes of text at most, as our own. Images and audio may
    have MAX_CHARS beside it. What is left out stands in the text, which `read_result` continues."""
    limit = min(limit, MAX_CHARS)
    result = passed.result
    content: list[Mapping[str, Any]] = list(result.get("content") or ())
    structured = result.get("structuredContent")
    encoded = msgspec.json.encode(structured).decode() if structured is not None else ""
    blocks = [passed.masked(block_text(one)) for one in content]
    if encoded and not blocks:
        blocks = [passed.masked(encoded)]
    length = sum(map(size_of, blocks)) + (size_of(encoded) if content else 0)
    failed = result.get("isError") is True
    if length <= limit and len(msgspec.json.encode(result)) <= limit + MAX_CHARS:
        return Answer(blocks, passed=dict(result), failed=failed)
    others, lines, left = _parted(content, limit // 2)
    text = "\n".join(lines)
    if encoded and size_of(text) <= limit:
        text = encoded
    text = passed.masked(text)
    room = limit - left
    shown, note = (text, "") if size_of(text) <= room else page_of(text, kept.keep(session, text), 0, room)
    cut: dict[str, Any] = {key: value for key, value in result.items() if key in _KEPT_OF_CUT}
    cut["content"] = [{"type": "text", "text": shown}, *others]
    rest = [passed.masked(block_text(one)) for one in others]
    return Answer([shown, *rest, *([note] if note else [])], shortened=True, passed=cut, failed=failed)


def _parted(content: Sequence[Mapping[str, Any]], room: int) -> tuple[list[dict[str, Any]], list[str], int]:
    """The parts that go on as they are, as far as there is room; the text of all others; and how many bytes of `room`
    are taken. Images and audio have a room of their own: no model pays for their bytes."""
    rooms = {True: MAX_CHARS, False: room}
    others: list[dict[str, Any]] = []
    lines: list[str] = []
    for one in content:
        size, is_data = len(msgspec.json.encode(one)), one.get("type") in ("image", "audio")
        if _text_of(one) is None and size <= rooms[is_data]:
            rooms[is_data] -= size
            others.append(dict(one))
        else:
            lines.append(block_text(one))
    return others, lines, room - rooms[False]


def page_of(text: str, result_id: str, offset: int, limit: int) -> tuple[str, str]:
    """As much of a kept text as fits into `limit` bytes, and the sentence that says how to go on; empty at its end."""
    room = max(limit - NOTE_CHARS, MOST_BYTES)
    shown = cut_to(text[offset : offset + room], room)
    end = offset + len(shown)
    cut = shown.rfind("\n") + 1
    if end < len(text) and cut > len(shown) // 2:
        shown, end = shown[:cut], offset + cut
    if end >= len(text):
        return shown, ""
    return shown, (
        f'Characters {offset} to {end} of {len(text)}. read_result(result_id="{result_id}", offset={end}) continues.'
    )


def block_text(block: Mapping[str, Any]) -> str:
    """One part of an answer for those that show text alone."""
    text = _text_of(block)
    if text is not None:
        return text
    kind = str(block.get("type"))
    if kind in ("image", "audio"):
        size = len(str(block.get("data", ""))) * 3 // 4
        return f"[{kind} {block.get('mimeType', '')}, {size} bytes]"
    resource = block.get("resource")
    uri = cast("Mapping[str, Any]", resource).get("uri") if isinstance(resource, Mapping) else block.get("uri")
    return f"[{kind.replace('_', ' ')} {uri}]"


def _text_of(block: Mapping[str, Any]) -> str | None:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    resource = block.get("resource")
    if isinstance(resource, Mapping) and "text" in resource:
        return str(cast("Mapping[str, Any]", resource)["text"])
    return None
