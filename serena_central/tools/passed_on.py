"""Answers of upstreams: passed on as they are, or, where they are too long, a page of their text; the rest is kept for
the session and read by `read_result`.
"""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.core.lru import Lru
from serena_central.tools.answer import MAX_CHARS, Answer, PassedOn

KEPT_CHARS = 50_000_000
"""Of all sessions together."""

MOST_KEPT = 500
"""Answers."""

NOTE_CHARS = 200
"""Left for the sentence that says how to go on."""


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
    """The answer to a call of an upstream's tool, of `limit` characters of text at most."""
    result = passed.result
    content = [cast("Mapping[str, Any]", one) for one in result.get("content") or () if isinstance(one, Mapping)]
    blocks = [passed.masked(block_text(one)) for one in content]
    structured = result.get("structuredContent")
    if structured is not None and not blocks:
        blocks = [passed.masked(msgspec.json.encode(structured).decode())]
    length = sum(map(len, blocks)) + (len(msgspec.json.encode(structured)) if structured is not None and content else 0)
    failed = result.get("isError") is True
    if length <= min(limit, MAX_CHARS):
        return Answer(blocks, passed=dict(result), failed=failed)
    text = "\n".join(block_text(one) for one in content if _text_of(one) is not None)
    if structured is not None and len(text) <= limit:
        text = msgspec.json.encode(structured).decode()
    text = passed.masked(text)
    shown, note = page_of(text, kept.keep(session, text), 0, limit)
    others = [dict(one) for one in content if _text_of(one) is None]
    cut = {key: value for key, value in result.items() if key != "structuredContent"}
    cut["content"] = [{"type": "text", "text": shown}, *others]
    rest = [passed.masked(block_text(one)) for one in others]
    return Answer([shown, *rest, note], shortened=True, passed=cut, failed=failed)


def page_of(text: str, result_id: str, offset: int, limit: int) -> tuple[str, str]:
    """As much of a kept text as fits, and the sentence that says how to go on; empty at its end."""
    room = max(limit - NOTE_CHARS, 1)
    shown = text[offset : offset + room]
    end = offset + len(shown)
    cut = shown.rfind("\n") + 1
    if end < len(text) and cut > room // 2:
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
