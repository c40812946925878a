"""Where keys and values stand in TOML: in a table's lines, and in inline tables, which hold others in braces.

The text must be TOML already: nothing is checked here.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from serena_central.clients.forms import Keys, members_of

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'"
    r"|\#[^\r\n]*|[ \t\r]+|[\[\]{},=\n]|[^\s\[\]{},=\#\"']+",
    re.S,
)


class Pair(NamedTuple):
    """A key and its value: `path` is what a dotted key says; the value stands at `start` to `end`."""

    path: Keys
    key_start: int
    start: int
    end: int


def pairs_in(text: str, start: int, end: int, *, separator: str) -> Iterator[Pair]:
    """What stands between two offsets, one after another: separated by line ends, or by commas in an inline table."""
    key_start = value_start = last_end = -1
    depth = 0
    for token in _TOKEN.finditer(text, start, end):
        found = token[0]
        if found == separator and depth == 0:
            if value_start >= 0:
                yield Pair(_path_of(text[key_start:value_start]), key_start, _content(text, value_start), last_end)
            key_start = value_start = -1
        elif found.isspace() or found.startswith("#"):
            continue
        elif value_start < 0 and found == "=":
            value_start = token.end()
        elif key_start < 0:
            key_start = token.start()
        if value_start >= 0:
            depth += (found in "[{") - (found in "]}")
        last_end = token.end()
    if value_start >= 0:
        yield Pair(_path_of(text[key_start:value_start]), key_start, _content(text, value_start), last_end)


def with_value(text: str, pair: Pair, keys: Keys, key: str, value: str) -> str | None:
    """The text with a value (both as TOML writes them) at `keys` inside of a pair's; None where it is no inline table.

    `key` is how the last of `keys` is written where there is none yet; it may be several, dotted.
    """
    if not keys:
        return text[: pair.start] + value + text[pair.end :]
    if text[pair.start] != "{":
        return None
    items = list(pairs_in(text, pair.start + 1, pair.end - 1, separator=","))
    for item in items:
        if item.path == keys[: len(item.path)]:
            return with_value(text, item, keys[len(item.path) :], key, value)
    at = items[-1].end if items else pair.start + 1
    rest = text[at:] if items else " " + text[at:].lstrip(" \t")
    return f"{text[:at]}{', ' if items else ' '}{key} = {value}{rest}"


def without_value(text: str, pair: Pair, keys: Keys) -> str:
    """The text without what stands at `keys` inside of a pair's value, and without the comma that is too much then."""
    if not keys or text[pair.start] != "{":
        return text
    items = list(pairs_in(text, pair.start + 1, pair.end - 1, separator=","))
    for place, item in enumerate(items):
        if item.path == keys:
            if place:
                return text[: items[place - 1].end] + text[item.end :]
            return text[: item.key_start] + text[items[1].key_start if len(items) > 1 else item.end :]
        if item.path == keys[: len(item.path)]:
            return without_value(text, item, keys[len(item.path) :])
    return text


def _content(text: str, at: int) -> int:
    while text[at] in " \t":
        at += 1
    return at


def _path_of(key: str) -> Keys:
    """Of a key with its equals sign."""
    found = tomllib.loads(f"{key} 0")
    path: list[str] = []
    while found:
        ((name, inner),) = found.items()
        path.append(name)
        found = members_of(inner)
    return tuple(path)
