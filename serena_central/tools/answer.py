"""Answers: what a tool function returns, and how it is made to fit.

A tool returns a string, anything that is JSON, or `Shaped`: the same answer in progressively shorter forms. The first
form that fits the limit is sent; a shorter one comes behind a sentence that says so and how to narrow the question.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.quoting import visible_json

MAX_CHARS = 5_000_000
"""No answer is longer, whatever a caller asks for: clients hold it in memory several times over."""

CHARACTERS_PER_TOKEN = 4

_SURROGATES = re.compile("[\ud800-\udfff]")


class Answer(msgspec.Struct, frozen=True):
    """What a call gives: the answer proper, then, where something qualifies it, one block with a line per remark."""

    blocks: list[str]
    shortened: bool = False

    @property
    def token_estimate(self) -> int:
        return sum(map(len, self.blocks)) // CHARACTERS_PER_TOKEN


class Form(NamedTuple):
    """One form of an answer. `says` names what it leaves out, for the sentence before it."""

    says: str
    build: Callable[[], Any]


class Shaped(NamedTuple):
    """An answer in forms, the full one first. `narrow` tells how to ask for less."""

    forms: Sequence[Form]
    narrow: str


def shaped(full: Callable[[], Any], *shorter: Form, narrow: str) -> Shaped:
    return Shaped((Form("", full), *shorter), narrow)


def fit(results: Mapping[str, Any], limit: int, *, grouped: bool) -> tuple[str, bool]:
    """Text of an answer of `limit` characters at most, and whether it had to be shortened.

    `results` maps project name → what the tool returned there; without `grouped` it has one entry, which stands bare.
    Only the sentence that says what was left out may pass a limit that is shorter than itself.
    """
    limit = min(limit, MAX_CHARS)
    levels = max((len(result.forms) for result in results.values() if isinstance(result, Shaped)), default=1)
    text = shown = ""
    for level in range(levels):
        text = _render(results, level, grouped=grouped)
        shown = f"{_excuse(results, level, limit)}\n{text}" if level else text
        if len(shown) <= limit:
            return shown, level > 0
    return (shown if len(text) <= limit else _cut(results, text, limit)), True


def _render(results: Mapping[str, Any], level: int, *, grouped: bool) -> str:
    built = {name: _build(result, level) for name, result in results.items()}
    if grouped:
        return _encode(built)
    (only,) = built.values()
    return _sendable(only) if isinstance(only, str) else _encode(only)


def _build(result: Any, level: int) -> Any:
    return result.forms[min(level, len(result.forms) - 1)].build() if isinstance(result, Shaped) else result


def _encode(value: Any) -> str:
    try:
        return visible_json(msgspec.json.encode(value).decode())
    except UnicodeEncodeError:
        return visible_json(json.dumps(_sendable(value), ensure_ascii=False, separators=(",", ":")))


def _sendable(value: Any) -> Any:
    """The same with U+FFFD for lone surrogates: they stand for bytes that are no text, which no answer can carry."""
    match value:
        case str():
            return value if value.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
        case dict():
            return {_sendable(key): _sendable(part) for key, part in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [_sendable(part) for part in cast("Sequence[Any]", value)]
        case _:
            return value


def _excuse(results: Mapping[str, Any], level: int, limit: int) -> str:
    first = next(result for result in results.values() if isinstance(result, Shaped))
    says = first.forms[min(level, len(first.forms) - 1)].says
    return f"The full answer is longer than {limit} characters; this is it {says}. {first.narrow}"


def _cut(results: Mapping[str, Any], text: str, limit: int) -> str:
    narrow = next((result.narrow for result in results.values() if isinstance(result, Shaped)), "Ask for less.")
    note = f"Even the shortest form of the answer has {len(text)} characters and is cut to fit {limit}. {narrow}\n"
    return note + text[: max(limit - len(note), 0)]
