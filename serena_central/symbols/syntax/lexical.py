"""What places of a text stand in (code, a string, a comment), told by one expression instead of a parser, for languages
that can be taken apart that way: fifteen times as quick, and without the worker.

It is silent where it can't be sure: near strings that may hold code, and about texts that it can't take apart. The
grammar decides there (`occurrences`); about all else both agree.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from serena_central.symbols.syntax.messages import Kind

_EXPRESSIONS: Mapping[str, re.Pattern[str]] = {
    "python": re.compile(
        r"""
        [#][^\r\n]*+
        | "{3}[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"{3}
        | '{3}[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'{3}
        | "(?!")[^"\\\r\n]*+(?:\\(?:\r\n|.)[^"\\\r\n]*+)*+"
        | '(?!')[^'\\\r\n]*+(?:\\(?:\r\n|.)[^'\\\r\n]*+)*+'
        | ""(?!") | ''(?!')
        | (["'].*+)
        """,
        re.VERBOSE | re.DOTALL,
    )
}
"""LSP language identifier → comments and strings; the group is one that has no end, and the rest of the text."""

_LIVE_PREFIXES = frozenset("fFtT")
"""Letters before a quote that make it a string with code in it."""


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """Where the comments and strings of a text start and end, in its order: eight bytes for each. The garbage collector
    has enough to do with thousands of arrays."""

    starts: "array[int]"
    ends: "array[int]"


def tokens(identifier: str, content: str) -> Tokens | None:
    """The comments and strings of a text; None if it, or its language, can't be taken apart."""
    expression = _EXPRESSIONS.get(identifier)
    if expression is None:
        return None
    found = list(expression.finditer(content))
    if found and found[-1].lastindex:
        return None
    return Tokens(array("I", [token.start() for token in found]), array("I", [token.end() for token in found]))


def kinds(content: str, told: Tokens | None, offsets: Sequence[int]) -> list[Kind | None]:
    """What stands at each of the offsets of a text, of which `told` are the tokens; None where only the grammar can
    tell."""
    if told is None:
        return [None] * len(offsets)
    live: dict[int, bool] = {}
    return [_kind_at(content, told, bisect_right(told.starts, offset) - 1, offset, live) for offset in offsets]


def _kind_at(content: str, told: Tokens, before: int, offset: int, live: dict[int, bool]) -> Kind | None:
    """`before` is the number of the last token that starts at or before the offset, -1 if none does."""
    if _may_be_inside_live(content, told, before, offset, live):
        return None
    if before < 0 or told.ends[before] <= offset:
        return "code"
    return "comment" if content[told.starts[before]] == "#" else "string"


def _may_be_inside_live(content: str, told: Tokens, last: int, offset: int, live: dict[int, bool]) -> bool:
    """Whether a string with code in it ends on the line, or holds the place: code in it may hold the same quotes, and
    what follows on the line would be taken for the wrong thing. So would what ends on that line in turn. `live` is what
    is known of tokens so far: a line may hold all tokens of a text."""
    line = content.rfind("\n", 0, offset) + 1
    passed, found = list[int](), False
    for number in range(last, -1, -1):
        start, end = told.starts[number], told.ends[number]
        if end <= line:
            break
        if (known := live.get(number)) is not None:
            found = known
            break
        passed.append(number)
        if not _LIVE_PREFIXES.isdisjoint(content[max(start - 2, 0) : start]):
            found = True
            break
        if start < line:
            line = content.rfind("\n", 0, start) + 1
    live.update(dict.fromkeys(passed, found))
    return found
