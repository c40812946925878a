"""The interface of a configuration format: reads the text, sets or removes one entry, keeps the rest byte for byte.

A form knows nothing of clients or of what an entry means. It works on text without a byte order mark.
"""

from collections.abc import Mapping
from typing import Any, Protocol, cast

Value = Any
"""What JSON and TOML can say: strings, numbers, booleans, lists, and mappings by string. Null is JSON's alone."""

Entry = Mapping[str, Value]

Keys = tuple[str, ...]
"""The way to an entry, from the outermost key: `("mcpServers", "serena")`."""


class Malformed(Exception):
    """A text that can't be read. `line` is 1-based; the message is a clause without it."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


class Form(Protocol):
    """A format. All of it raises Malformed."""

    def read(self, text: str) -> dict[str, Value]:
        """All that the text says; an empty one says nothing."""
        ...

    def put(self, text: str, keys: Keys, entry: Entry) -> str:
        """The text with the entry, in place of one that stood there, in the layout of what is around it."""
        ...

    def take(self, text: str, keys: Keys) -> str:
        """The text without the entry; the same where there is none."""
        ...


def members_of(value: Value) -> dict[str, Value]:
    """The members of a mapping; none, where the value is something else."""
    return cast("dict[str, Value]", value) if isinstance(value, dict) else {}


def items_of(value: Value) -> list[Value]:
    """The items of a list; none, where the value is something else."""
    return cast("list[Value]", value) if isinstance(value, list) else []


def found(value: Value, keys: Keys) -> Value:
    """What stands at `keys`; None where nothing does."""
    for key in keys:
        value = members_of(value).get(key)
    return value


def with_entry(value: dict[str, Value], keys: Keys, entry: Entry | None) -> dict[str, Value]:
    """A copy in which `keys` lead to the entry, or to nothing."""
    key, *rest = keys
    copy = dict(value)
    if rest:
        copy[key] = with_entry(members_of(copy.get(key)), tuple(rest), entry)
    elif entry is None:
        copy.pop(key, None)
    else:
        copy[key] = dict(entry)
    return copy
