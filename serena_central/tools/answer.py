"""Answers: what a tool function returns.

A tool returns a string, anything that is JSON, a `Listing` (tools/listing.py), `Shaped`: the same answer in
progressively shorter forms, of which the first that fits is sent (tools/answer_limits.py), or `Content`: blocks of
other kinds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

MAX_CHARS = 5_000_000
"""Maximum length of an answer, whatever a caller asks for: clients hold it in memory several times."""

CHARACTERS_PER_TOKEN = 4


class PassedOn(NamedTuple):
    """The result of an upstream's tool, as it came on the wire (MCP's CallToolResult)."""

    result: Mapping[str, Any]
    masked: Callable[[str], str] = str
    """Leaves the upstream's secrets out of what is kept of the answer."""


class Answer(msgspec.Struct, frozen=True):
    """The result of a call: the answer, then, if there are notes, one block with a line per note."""

    blocks: list[str]
    shortened: bool = False
    data: str | None = None
    """The JSON at the end of the first block, behind the sentences that say what it leaves out; None for a text."""
    content: "Content | None" = None
    """What is sent in place of the first block, which describes it."""
    passed: dict[str, Any] | None = None
    """An upstream's result, to be sent as it is; `blocks` are its text, for those who show no other content."""
    failed: bool = False
    """The upstream's tool says that it failed."""

    @property
    def notes(self) -> list[str]:
        """Everything that qualifies the answer, a sentence or two each."""
        first = [] if self.data is None else self.blocks[0][: -len(self.data)].splitlines()
        return [*first, *(note for block in self.blocks[1:] for note in block.splitlines())]

    @property
    def token_estimate(self) -> int:
        return sum(map(len, self.blocks)) // CHARACTERS_PER_TOKEN


def recalled(blocks: list[str]) -> Answer:
    """An answer whose blocks the store has kept. Edits answer with an object, or with a sentence."""
    is_object = bool(blocks) and blocks[0].startswith("{")
    return Answer(blocks, data=blocks[0] if is_object else None)


class Content(NamedTuple):
    """An answer in MCP's own blocks (text, images, audio, embedded resources, links), in wire form. It is sent as it
    is: whoever makes it bounds it."""

    blocks: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all blocks, with other kinds named, for callers that show nothing else."""
        return "\n".join(map(_text, self.blocks))


def _text(block: Mapping[str, Any]) -> str:
    resource: Mapping[str, Any] = block.get("resource") or {}
    text = block.get("text", resource.get("text"))
    if text is not None:
        return str(text)
    name = block.get("uri") or resource.get("uri") or block.get("mimeType") or ""
    return f"[{block.get('type')} {name}]"


class Form(NamedTuple):
    """One form of an answer. `says` names what it leaves out, for the sentence before it."""

    says: str
    build: Callable[[], Any]


class Shaped(NamedTuple):
    """An answer in forms, the full one first. `narrow` is a sentence on how to ask for less."""

    forms: Sequence[Form]
    narrow: str


def shaped(full: Callable[[], Any], *shorter: Form, narrow: str) -> Shaped:
    return Shaped((Form("", full), *shorter), narrow)


def holds_nothing(value: Any) -> bool:
    """Whether all lists and objects in an answer's data are empty; counts and names beside them do not matter."""
    if isinstance(value, list):
        return not value
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    inner: list[Any] = [part for part in members.values() if isinstance(part, list | dict)]
    return all(map(holds_nothing, inner)) if inner else not members
