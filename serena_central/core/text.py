"""Text positions in every notation used here, and the one place that converts between them.

| notation | line | column | who speaks it |
|---|---|---|---|
| Position | 0-based | 0-based, in code points (what `str` counts) | everything above `lsp`, and the tools' answers |
| LSP position | 0-based | 0-based, in UTF-8 bytes, UTF-16 units or code points, as negotiated | `lsp` alone |
| offset | – | 0-based code points from the start of the text | slicing |

Lines end at `\\n`, `\\r\\n` or `\\r` (LSP 3.17, "Text Documents"); other Unicode line breaks are ordinary characters.
Columns past a line's end mean its end, lines past the text's end mean the text's end, as LSP demands.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import Literal, NamedTuple

import msgspec

Encoding = Literal["utf-8", "utf-16", "utf-32"]

TEXTS_KEPT = 16
"""Texts whose lines are remembered: an edit's is met four times, and the next edit begins with it."""

LONGEST_KEPT = 500_000
"""Characters of the longest that is remembered: some 25 MB for all, if each were as long."""

SOON_READ = 100_000
"""Characters of a text whose lines are looked for when somebody asks for them, in the event loop's thread, too: 0.2 ms.
Those of a longer one are found where it is read."""

_LINE_END = re.compile(r"\r\n|\n|\r")

_WIDE = {"utf-8": re.compile(r"[^\x00-\x7f]"), "utf-16": re.compile("[\U00010000-\U0010ffff]")}
"""Characters of more than one unit."""


class Position(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A place between two characters: 0-based line, 0-based column in code points.

    No tuple: there are ten thousands, each of which would take four times as long to make, and be looked at whenever
    garbage is collected.
    """

    line0: int
    column: int


class Range(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A stretch of text, `end` exclusive."""

    start: Position
    end: Position

    def contains(self, position: Position) -> bool:
        return self.start <= position <= self.end

    def encloses(self, other: "Range") -> bool:
        return self.start <= other.start and other.end <= self.end


class _Wide(NamedTuple):
    """The characters of a line that have more than one unit: their columns, and how many units end with each."""

    columns: "array[int]"
    ends: "array[int]"

    def extra_before(self, index: int) -> int:
        """How many units more than characters those before the `index`th have."""
        return self.ends[index - 1] - self.columns[index - 1] - 1 if index else 0


_NONE_WIDE = _Wide(array("I"), array("I"))


class Text:
    """One text and its lines. Immutable; conversions cost O(log lines) plus the length of one line."""

    __slots__ = ("_ends", "_measured", "_starts", "content", "is_ascii")

    _starts: "array[int]"
    _ends: "array[int]"

    def __init__(self, content: str) -> None:
        self.content = content
        self.is_ascii = content.isascii()
        # The line that was converted last: a minified file is one line, with thousands of positions in it.
        self._measured: tuple[int, Encoding, _Wide] | None = None
        if len(content) > SOON_READ:
            self._find_lines()

    def __getattr__(self, name: str) -> "array[int]":
        """Finds the lines the first time that they are asked for: many a text is only searched for a word."""
        if name not in ("_starts", "_ends"):
            raise AttributeError(name)
        self._find_lines()
        return self._starts if name == "_starts" else self._ends

    def _find_lines(self) -> None:
        content = self.content
        self._starts, self._ends = (_lines_kept if len(content) <= LONGEST_KEPT else _lines)(content)

    @property
    def line_count(self) -> int:
        """Number of lines; a text that ends in a line break has an empty last one."""
        return len(self._starts)

    def line(self, line0: int) -> str:
        """One line without its line break; empty past the end."""
        if not 0 <= line0 < len(self._starts):
            return ""
        return self.content[self._starts[line0] : self._ends[line0]]

    def lines(self, first: int, last: int) -> str:
        """Lines `first` to `last` inclusive, with the line breaks between them."""
        first = max(first, 0)
        last = min(last, len(self._starts) - 1)
        if first > last:
            return ""
        return self.content[self._starts[first] : self._ends[last]]

    def offset(self, position: Position) -> int:
        return self.offset_at(position.line0, position.column)

    def offset_at(self, line0: int, column: int) -> int:
        if line0 >= len(self._starts):
            return len(self.content)
        if line0 < 0:
            return 0
        offset, end = self._starts[line0] + max(column, 0), self._ends[line0]
        return offset if offset < end else end

    def position(self, offset: int) -> Position:
        starts = self._starts
        line0 = max(bisect_right(starts, offset) - 1, 0)
        end = self._ends[line0]
        return Position(line0, max(offset if offset <= end else end, 0) - starts[line0])

    def slice(self, span: Range) -> str:
        return self.content[self.offset(span.start) : self.offset(span.end)]

    def from_lsp(self, line0: int, character: int, encoding: Encoding) -> Position:
        """Converts an LSP position; `character` counts in units of `encoding`. Inside a character means its start."""
        if line0 >= len(self._starts):
            return self.position(len(self.content))
        if self.is_ascii or encoding == "utf-32":
            return Position(line0, min(character, self._ends[line0] - self._starts[line0]))
        wide = self._wide_in(line0, encoding)
        before = bisect_right(wide.ends, character)
        end = wide.columns[before] if before < len(wide.ends) else self._ends[line0] - self._starts[line0]
        return Position(line0, max(0, min(character - wide.extra_before(before), end)))

    def to_lsp(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """Converts to (line, character), `character` in units of `encoding`."""
        real = self.position(self.offset(position))
        line0, column = real.line0, real.column
        if self.is_ascii or encoding == "utf-32":
            return line0, column
        wide = self._wide_in(line0, encoding)
        return line0, column + wide.extra_before(bisect_left(wide.columns, column))

    def _wide_in(self, line0: int, encoding: Encoding) -> _Wide:
        measured = self._measured
        if measured is None or measured[:2] != (line0, encoding):
            measured = self._measured = line0, encoding, _wide(self.line(line0), encoding)
        return measured[2]


def _wide(line: str, encoding: Encoding) -> _Wide:
    if line.isascii():
        return _NONE_WIDE
    # Arrays, for a text keeps them: of a minified file in another script they would be 10 MB as lists.
    columns, ends = array("I"), array("I")
    extra = 0
    for match in _WIDE[encoding].finditer(line):
        column = match.start()
        extra += _units(match[0], encoding) - 1
        columns.append(column)
        ends.append(column + 1 + extra)
    return _Wide(columns, ends)


def _lines(content: str) -> "tuple[array[int], array[int]]":
    """Where the lines of a text start and end; not to be changed. 8 bytes a line: lists would take 80."""
    return _lines_of_any(content) if "\r" in content else _lines_of_unix(content)


_lines_kept = lru_cache(maxsize=TEXTS_KEPT)(_lines)


def _lines_of_unix(content: str) -> "tuple[array[int], array[int]]":
    """Where the lines of a text without `\\r` start and end: in a quarter of the time that a search takes."""
    lengths = list(map(len, content.split("\n")))
    starts = array("I", map(add, accumulate(lengths, initial=0), range(len(lengths))))
    return starts, array("I", map(add, starts, lengths))


def _lines_of_any(content: str) -> "tuple[array[int], array[int]]":
    starts = array("I", [0])
    ends = array("I")
    for match in _LINE_END.finditer(content):
        ends.append(match.start())
        starts.append(match.end())
    ends.append(len(content))
    return starts, ends


def _units(char: str, encoding: Encoding) -> int:
    """Width of one character. Lone surrogates count as what their code point would take, and are never rejected."""
    code = ord(char)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code <= 0xFFFF else 4


def whole_word(*names: str, ignore_case: bool = False) -> re.Pattern[str]:
    """Matches one of some names that no letter, digit, `_` or `$` continues on either side.

    What stands before it is looked at behind the match: an expression that begins with a literal is thirty times as
    quick as one that looks behind at every character.
    """
    literals = map(re.escape, names)
    words = "|".join(rf"{literal}(?<![\w$]{literal})(?![\w$])" for literal in literals)
    return re.compile(words, re.IGNORECASE if ignore_case else 0)
