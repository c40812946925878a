"""Finds a needle in a text and computes the replacement. Pure: text in, replacements out.

A needle is written with `\\n`, whatever line ends the file has: the search runs on a text with plain line ends, and its
results are translated back, so that nothing but the matches changes.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from serena_central.core.errors import InvalidArguments, NothingMatched
from serena_central.files.pattern import Pattern

if TYPE_CHECKING:
    import regex

Mode = Literal["literal", "regex"]

SECONDS = 5.0
"""How long one needle may be searched for in one text."""

_REFERENCE = re.compile(r"\$!(\d+)")


class Replacement(NamedTuple):
    """`new` stands instead of the characters from `start` to `end` (offsets into the original text)."""

    start: int
    end: int
    new: str


def replacements(content: str, needle: str, repl: str, mode: Mode, *, several: bool) -> list[Replacement]:
    """What replacing `needle` by `repl` changes. A regex is DOTALL and MULTILINE; `$!1` in `repl` is its first group.

    Raises:
        InvalidArguments: the needle is no pattern, matches nothing, more than once without `several`, nothing at all
            (an empty match), or over several lines where a shorter match lies inside.
    """
    if not needle:
        raise InvalidArguments("The needle is empty. Pass the text or pattern to replace.")
    plain, back = _with_plain_ends(content)
    found = list(_literal(plain, needle, repl) if mode == "literal" else _matches(plain, needle, repl))
    if not found:
        raise NothingMatched(
            "The needle does not match. Compare it with the current text, including white space; "
            "regular expressions require mode='regex'."
        )
    if len(found) > 1 and not several:
        lines = ", ".join(str(plain.count("\n", 0, one.start)) for one in found[:10])
        raise InvalidArguments(
            f"The needle matches {len(found)} times (lines {lines}). Include more context to make it unique, "
            "or pass allow_multiple_occurrences=true to replace all."
        )
    ends = "\r\n" if content.count("\r\n") * 2 > content.count("\n") else "\n"
    return [
        Replacement(back.offset(one.start), back.offset(one.end), _plain_ends(one.new).replace("\n", ends))
        for one in found
    ]


def replaced(content: str, changes: list[Replacement]) -> str:
    """The text with the replacements made; they are in order and don't overlap."""
    parts: list[str] = []
    at = 0
    for change in changes:
        parts += content[at : change.start], change.new
        at = change.end
    return "".join([*parts, content[at:]])


def _literal(text: str, needle: str, repl: str) -> Iterator[Replacement]:
    needle = _plain_ends(needle)
    at = text.find(needle)
    while at >= 0:
        yield Replacement(at, at + len(needle), repl)
        at = text.find(needle, at + len(needle))


def _matches(text: str, needle: str, repl: str) -> Iterator[Replacement]:
    pattern = Pattern(needle, dot_matches_newline=True, deadline=time.monotonic() + SECONDS)
    try:
        for match in pattern.matches(text):
            start, end = match.span()
            if start == end:
                raise InvalidArguments(f"The pattern matches the empty text in line {text.count(chr(10), 0, start)}.")
            if "\n" in match[0] and pattern.search(text, start + 1, end):
                first, last = text.count("\n", 0, start), text.count("\n", 0, end)
                raise InvalidArguments(
                    f"The match over lines {first} to {last} is ambiguous: it contains a shorter one. "
                    "Make the pattern's start stricter."
                )
            yield Replacement(start, end, _REFERENCE.sub(lambda found, match=match: _group(match, found), repl))
    except TimeoutError as error:
        raise InvalidArguments(
            f"The search did not finish within {SECONDS:g} s. Simplify the pattern; nested repetitions are slow."
        ) from error


def _group(match: "regex.Match[str]", found: re.Match[str]) -> str:
    try:
        return match[int(found[1])] or ""
    except IndexError as error:
        raise InvalidArguments(f"repl refers to group {found[1]}, but the pattern has no such group.") from error


class _Back(NamedTuple):
    """The way back from a text with plain line ends. `ends`: where those were `\\r\\n`, by offset in the plain text."""

    ends: list[int]

    def offset(self, plain: int) -> int:
        return plain + bisect_left(self.ends, plain)


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def _with_plain_ends(content: str) -> tuple[str, _Back]:
    if "\r\n" not in content:
        return content, _Back([])
    ends: list[int] = []
    at = content.find("\r\n")
    while at >= 0:
        ends.append(at - len(ends))
        at = content.find("\r\n", at + 2)
    return _plain_ends(content), _Back(ends)
