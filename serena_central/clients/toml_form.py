"""TOML, edited in place: an entry is a table of its own, put at the end of the file or where it stood.

The text is cut at the headers of tables; `tomllib` says which lines are headers.
"""

# Not tomlkit (0.15): it writes a document back as it was, but not one that it has changed. Replacing a table drops the
# comments between it and the next one, a new table ends its lines by "\n" in a file of "\r\n", a replaced inline table
# moves to the end, and of a table whose parts stand apart (`[a.x]`, `[z]`, `[a.y]`) nothing can be removed; each is a
# case of tests/unit/clients/test_toml_form.py. It would be this package's only dependency, and takes 150 ms to import.

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from typing import cast

from serena_central.clients.forms import Entry, Keys, Malformed, Value, found, members_of
from serena_central.clients.toml_inline import Pair, pairs_in, with_value, without_value

_HEADER = re.compile(
    r"""^[ \t]*\[{1,2}(?:[^\[\]"'#\r\n]|"(?:\\.|[^"\\\r\n])*"|'[^'\r\n]*')+\]{1,2}[ \t]*(?:\#[^\r\n]*)?\r?$""", re.M
)
"""Its keys may be in quotes, with any character inside."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class TomlForm:
    """TOML 1.0."""

    def read(self, text: str) -> dict[str, Value]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            said = str(error)
            place = _PLACE.search(said)
            line = int(place[1]) if place and place[1] else text.count("\n") + 1
            raise Malformed(line, _PLACE.sub("", said)) from error

    def put(self, text: str, keys: Keys, entry: Entry) -> str:
        self.read(text)
        for above, pair in _pairs(text, keys):
            rest = keys[len(above) :]
            inside = rest[len(pair.path) :]
            if (new := with_value(text, pair, inside, _path(inside), _value(dict(entry)))) is not None:
                return new
        text, entry = self._without_tables_inside(text, keys, entry)
        line_end = "\r\n" if "\r\n" in text else "\n"
        table = "\n".join([f"[{_path(keys)}]", *(f"{_key(key)} = {_value(value)}" for key, value in entry.items()), ""])
        own = next((span for path, *span in _tables(text) if path == keys), None)
        if own is None:
            gap = "\n" if not text or text.endswith("\n") else "\n\n"
            return text + ((gap if text.strip() else "") + table).replace("\n", line_end)
        start, end = own
        return text[:start] + table.replace("\n", line_end) + text[end:]

    def take(self, text: str, keys: Keys) -> str:
        self.read(text)
        while own := next((span for path, *span in _tables(text) if path[: len(keys)] == keys), None):
            before, after = text[: own[0]], text[own[1] :]
            if not before:
                after = after.lstrip("\r\n")
            elif before.endswith(("\n\n", "\r\n\r\n")) and not after.split("\n")[0].strip():
                before = before[: -2 if before.endswith("\r\n") else -1]  # one gap is left of two
            text = before + after
        for above, pair in _pairs(text, keys):
            rest = keys[len(above) :]
            if pair.path != rest:
                return without_value(text, pair, rest[len(pair.path) :])
            return text[: pair.key_start] + text[text.find("\n", pair.end) + 1 or len(text) :]
        return text

    def _without_tables_inside(self, text: str, keys: Keys, entry: Entry) -> tuple[str, Entry]:
        """Tables inside of the entry's stay as they are where they say the same, and go where they don't."""
        there = found(self.read(text), keys)
        tables = {
            path[len(keys)] for path, _, _ in _tables(text) if path[: len(keys)] == keys and len(path) > len(keys)
        }
        for key in tables:
            if entry.get(key) == there[key]:
                entry = {other: value for other, value in entry.items() if other != key}
            else:
                text = self.take(text, (*keys, key))
        return text, entry


def _pairs(text: str, keys: Keys) -> Iterator[tuple[Keys, Pair]]:
    """Keys on the way to `keys` whose values are inline tables, each after the path of the table that it is in."""
    tables = list(_tables(text))
    for above, start, end in [((), 0, tables[0][1] if tables else len(text)), *tables]:
        body = start if not above else text.find("\n", start, end) + 1 or end
        if above != keys[: len(above)] or len(above) >= len(keys):
            continue
        for pair in pairs_in(text, body, end, separator="\n"):
            if pair.path == keys[len(above) :][: len(pair.path)] and text[pair.start] == "{":
                yield above, pair


def _tables(text: str) -> Iterator[tuple[Keys, int, int]]:
    """The tables in order, each with its path and where it stands, its header included."""
    headers: list[int] = []
    for candidate in _HEADER.finditer(text):
        # What looks like a header may be in the middle of a string or a list, which has no end then.
        if _is_readable(text[headers[-1] if headers else 0 : candidate.start()]):
            headers.append(candidate.start())
    for start, end in pairwise([*headers, len(text)]):
        header = text[start : text.find("\n", start) + 1 or len(text)]
        yield _path_of(tomllib.loads(header)), start, _end_of_content(text, start, end)


def _end_of_content(text: str, start: int, end: int) -> int:
    """Comments and gaps after a table's last line may belong to what follows: they are no part of it."""
    lines = _LINE.findall(text, start, end)  # str.splitlines knows ends of lines that are characters in TOML
    while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
        end -= len(lines.pop())
    return end


def _is_readable(text: str) -> bool:
    """Whether this is TOML by itself."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _path_of(table: Value) -> Keys:
    keys: list[str] = []
    while table:
        if isinstance(table, list):  # `[[header]]`
            (table,) = cast("list[Value]", table)
            continue
        ((key, table),) = members_of(table).items()
        keys.append(key)
    return tuple(keys)


def _path(keys: Keys) -> str:
    return ".".join(_key(key) for key in keys)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    """JSON's way of writing a string is one of TOML's, but for one character and for halves of pairs."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Value) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in members_of(value).items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in cast('list[Value]', value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
