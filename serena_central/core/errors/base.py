"""The root of the error tree, and the bounds of a message."""

from collections.abc import Iterable
from typing import ClassVar

from serena_central.core.quoting import escaped, escaped_lines, quoted

CANDIDATES_LISTED = 40
"""Lines of one message: more say no more than their number."""

MESSAGE_CHARS = 8_000
"""Of one message: callers' own words come back in it, and those may be megabytes."""


class SerenaCentralError(Exception):
    """The root of the tree. `str(error)` is one or two sentences for the person or model who called.

    A message is one line, whatever names and paths it repeats, but for classes with `several_lines`: these escape or
    frame each part of theirs that comes from a repository.
    """

    several_lines: ClassVar[bool] = False

    def __str__(self) -> str:
        text = super().__str__()
        text = escaped_lines(text) if self.several_lines else escaped(text)
        if len(text) <= MESSAGE_CHARS:
            return text
        half = MESSAGE_CHARS // 2  # what is wrong stands in front, what to do next at the end
        return f"{text[:half]} … {len(text) - MESSAGE_CHARS} characters omitted … {text[-half:]}"


def listed(names: Iterable[str], none: str = "none") -> str:
    """Names in running text: quoted, the first of them."""
    every = list(names)
    shown = ", ".join(map(quoted, every[:CANDIDATES_LISTED]))
    more = len(every) - CANDIDATES_LISTED
    return f"{shown} and {more} more" if more > 0 else shown or none
