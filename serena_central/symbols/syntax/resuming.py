"""Trees of a text in which a parser has lost its way: where something can't be parsed, each statement that begins at
the margin is parsed by itself.

One construct that a grammar does not know costs all that follows it otherwise: of 227 definitions in a file of 11,000
lines, which had a generic call signature behind a generic type, 135 were not found. Runs in the worker's process, like
`outline`; offsets stay.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tree_sitter import Node, Parser, Point, Range

from serena_central.symbols.syntax.statements import Span
from serena_central.symbols.syntax.trees import tools

LANGUAGES = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})

_STARTS = re.compile(
    rb"(?m)^(?:@|(?:abstract|async|class|const|declare|enum|export|function|import|interface|let|module|namespace|type"
    rb"|var)\b)"
)
"""Where statements begin, or decorators of the next one."""

_TOKENS = re.compile(
    rb"""//[^\n]*+ | /\*.*?\*/ | '(?:\\.|[^'\\\n])*+' | "(?:\\.|[^"\\\n])*+" | `(?:\\.|\$\{[^{}]*+\}|[^`\\])*+`
    | (?P<open> /\* | ` | ["'](?:\\.|[^"'\\\n])*+\Z)""",
    re.DOTALL | re.VERBOSE,
)
"""Comments and strings; the group is one that has no end."""

_TRIED = 2
"""What looks like the beginning of a statement may stand in a comment or a template, which ends some further on: more
and more are parsed together, but all in all no more than so many times the text."""

_MOST_PARTS = 50_000
"""Nobody has written a text with more."""


class _Part(NamedTuple):
    """A stretch of a text: one statement if it `is_lost`, else perhaps many."""

    span: Span
    is_lost: bool


def roots_of(identifier: str, source: bytes, root: Node) -> Sequence[Node]:
    """The roots of trees that together hold the text, in order; `root` alone, its own tree's, unless several tell of
    more statements."""
    if identifier not in LANGUAGES or not root.has_error:
        return [root]
    starts = sorted({0, *_starts(source), len(source)})
    parts = list(_parts(root, starts))
    if not any(part.is_lost for part in parts) or len(parts) > _MOST_PARTS:
        return [root]
    roots, begun = list(_parsed(_PartParser(identifier, source), source, parts)), set(starts)
    return roots if _told(roots, begun) > _told([root], begun) else [root]


def _told(roots: Sequence[Node], starts: Collection[int]) -> int:
    """How many nodes begin where statements do."""
    nodes = (child for root in roots for child in root.children)
    return sum(child.start_byte in starts and child.is_named and not child.is_error for child in nodes)


def _parts(root: Node, starts: Sequence[int]) -> Iterator[_Part]:
    """What makes up the text between the starts of statements, in order; what is not lost lies together."""
    sound = _sound(root, starts)
    begin = 0
    for start, end in pairwise(starts):
        if start in sound:
            continue
        if begin < start:
            yield _Part(Span(begin, start), is_lost=False)
        yield _Part(Span(start, end), is_lost=True)
        begin = end
    if begin < starts[-1]:
        yield _Part(Span(begin, starts[-1]), is_lost=False)


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


class _PartParser:
    """Parses stretches of one text, each as if nothing stood around it; offsets are those of the text."""

    def __init__(self, identifier: str, source: bytes) -> None:
        parser, _ = tools(identifier)
        self._parser = Parser(parser.language)
        self._source = source
        self._lines = [0, *(found.end() for found in re.finditer(b"\n", source))]

    def parsed(self, start: int, end: int) -> Node:
        """The root of a stretch's tree."""
        self._parser.included_ranges = [Range(self._point(start), self._point(end), start, end)]
        return self._parser.parse(self._source).root_node

    def _point(self, offset: int) -> Point:
        row = bisect_right(self._lines, offset) - 1
        return Point(row, offset - self._lines[row])


def _parsed(parser: _PartParser, source: bytes, parts: Sequence[_Part]) -> Iterator[Node]:
    at, left = 0, _TRIED * len(source)
    while at < len(parts):
        (start, end), is_lost = parts[at]
        root, joined = parser.parsed(start, end), 1
        if is_lost and root.has_error and _goes_on(source[start:end]):
            count = 2
            while at + count <= len(parts) and (size := parts[at + count - 1].span.end - start) <= left:
                left -= size
                together = parser.parsed(start, start + size)
                if not together.has_error:
                    root, joined = together, count
                    break
                count *= 2
        yield root
        at += joined


def _goes_on(text: bytes) -> bool:
    """Whether a comment or a template has no end in a text."""
    return any(found["open"] for found in _TOKENS.finditer(text))
