"""Trees of a text in which a parser has lost its way: where something can't be parsed, each statement that begins at
the margin is parsed by itself.

One construct that a grammar does not know costs all that follows it otherwise: of 227 definitions in a file of 11,000
lines, which had a generic call signature behind a generic type, 135 were not found. Runs in the worker's process, like
`outline`; offsets stay.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tree_sitter import Node

from serena_central.symbols.syntax.statements import Span
from serena_central.symbols.syntax.trees import errors_in, part_parsed

LANGUAGES = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})

_STARTS = re.compile(
    rb"(?m)^(?:@|(?:abstract|async|class|const|declare|enum|export|function|import|interface|let|module|namespace|type"
    rb"|var)\b)"
)
"""Where statements begin, or decorators of the next one."""

_MOST_JOINED = 8
"""What looks like the beginning of a statement may stand in a comment or in a template, which ends so many further on,
or fewer …"""

_JOINED_BYTES = 50_000
"""… and has no more bytes: each try parses all of it."""


class _Part(NamedTuple):
    """A stretch of a text: one statement if it `is_lost`, else perhaps many."""

    span: Span
    is_lost: bool


def roots_of(identifier: str, source: bytes, root: Node) -> Sequence[Node]:
    """The roots of trees that together hold the text, in order; `root` alone, its own tree's, unless several have fewer
    errors."""
    if identifier not in LANGUAGES or not root.has_error:
        return [root]
    parts = list(_parts(source, root))
    if not any(part.is_lost for part in parts):
        return [root]
    roots = list(_parsed(identifier, source, parts))
    return roots if sum(len(errors_in(one)) for one in roots) < len(errors_in(root)) else [root]


def _parts(source: bytes, root: Node) -> Iterator[_Part]:
    """What makes up the text, in order; what is not lost lies together."""
    starts = sorted({0, *_starts(source), len(source)})
    sound = _sound(root, starts)
    begin = 0
    for start, end in pairwise(starts):
        if start in sound:
            continue
        if begin < start:
            yield _Part(Span(begin, start), is_lost=False)
        yield _Part(Span(start, end), is_lost=True)
        begin = end
    if begin < len(source):
        yield _Part(Span(begin, len(source)), is_lost=False)


def _starts(source: bytes) -> Iterator[int]:
    """Where statements begin, with their decorators."""
    is_decorated = False
    for found in _STARTS.finditer(source):
        if not is_decorated:
            yield found.start()
        is_decorated = found[0] == b"@"


def _sound(root: Node, starts: Sequence[int]) -> set[int]:
    """Those of the starts, of which the last is the end, from which on a tree has whole nodes up to the next one. There
    may be errors in these, but they cost nothing that stands at the margin."""
    sound = set(starts[:-1])
    for child in root.children:
        first = bisect_right(starts, child.start_byte) - 1
        last = bisect_left(starts, child.end_byte) - 1
        if child.is_error or not child.is_named or (last > first and child.has_error):
            sound.difference_update(starts[first : last + 1])
    return sound


def _parsed(identifier: str, source: bytes, parts: Sequence[_Part]) -> Iterator[Node]:
    at = 0
    while at < len(parts):
        (start, end), is_lost = parts[at]
        root, joined = part_parsed(identifier, source, start, end), 1
        if is_lost and root.has_error and _may_go_on(source[start:end]):
            for number in range(at + 1, min(at + _MOST_JOINED, len(parts))):
                end = parts[number].span.end
                if end - start > _JOINED_BYTES:
                    break
                together = part_parsed(identifier, source, start, end)
                if not together.has_error:
                    root, joined = together, number + 1 - at
                    break
        yield root
        at += joined


def _may_go_on(text: bytes) -> bool:
    """Whether a comment or a template may have no end in a text."""
    return text.count(b"`") % 2 == 1 or text.rfind(b"/*") > text.rfind(b"*/")
