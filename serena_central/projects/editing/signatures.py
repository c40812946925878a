"""Computes the signature of a declaration from its text alone, by brackets and the words around them.

All of a declaration up to its body, decorators included. What is a shape (an interface, a structure, an alias) counts
as a whole; so does the value of what has no type written, without the bodies of functions in it. Languages have much in
common there; where they differ, a signature holds rather too much than too little.
"""

import re
from collections.abc import Iterator

from serena_central.core.text import Position, Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.symbol import CALLABLE, FileSymbols, Symbol

MOST = 2_000
"""Maximum of characters of a declaration that are read."""

MOST_VALUE = 200
"""Tokens of one that has a value and no type: what is further down in a table changes its type as seldom."""

_SHAPES = frozenset({SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.ENUM})

TOKEN = re.compile(
    r"""
    (?P<newline>\n) | (?P<space>[^\S\n]+)
    | (?P<comment>//[^\n]*+|/\*.*?\*/|[#][ ][^\n]*+)
    | (?P<string>"(?:\\.|[^"\\\n])*+"|`[^`]*+`|'\w++(?!')|'(?:\\.|[^'\\\n])*+')
    | (?P<number>\b\d[\w.]*+)
    | \w+ | => | -> | [=!<>]= | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""`'a` is a lifetime in Rust."""

_WITH_HEADER = CALLABLE | _SHAPES | {SymbolKind.CLASS}
"""What may have a comma outside of brackets."""

_ENDING = frozenset({";", ")", "]", "}"})

_LEADING = re.compile(r"\s*(?:@|#!?\[)")
"""How a line of decorators or attributes begins."""

_ALIAS = re.compile(r"\b(?:type|using|typealias)\b")

_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}

_BEFORE_TYPE = frozenset({":", "=", "|", "&", "?", "=>", "extends", "is", "keyof", "struct", "interface", "union"})
"""What a brace follows that opens a type or a value rather than a body."""

_CONTINUING = re.compile(r"\s*(?:[{|&=?:,<.]|->|(?:where|throws|extends|implements|with|requires)\b)")
"""Beginnings of lines that continue the declaration before them."""

_UNFINISHED = frozenset({",", "|", "&", "=", "=>", "->", "<", "+", "?", "where"})
"""Endings of lines that the next line continues."""


def signature(text: Text, file: FileSymbols, place: int) -> str:
    """The signature of the symbol at a place of a file, without blanks and comments that do not matter."""
    symbol = file.symbols[place]
    start = _start(text, file, place)
    name = text.offset(symbol.name_position)
    lead = text.content[start:name][-MOST:]
    scan = _Scan(text.content, name, symbol, is_alias=bool(_ALIAS.search(lead)))
    members = _members(text, file, place) if symbol.kind in _SHAPES else ()
    return " ".join([*_plain(lead), *scan.tokens(), *members])


def reach(text: Text, position: Position) -> Position:
    """How far a change at a position reaches: to the end of its line, or of the line that is decorated there."""
    line0 = position.line0
    while line0 + 1 < text.line_count and _LEADING.match(text.line(line0)):
        line0 += 1
    return Position(line0, len(text.line(line0)))


def _start(text: Text, file: FileSymbols, place: int) -> int:
    """Of the line in which the declaration begins, with the decorators above it; behind a function in that line."""
    symbol = file.symbols[place]
    line0 = min(symbol.start_line, symbol.name_line)
    while line0 > 0 and _LEADING.match(text.line(line0 - 1)):
        line0 -= 1
    before = file.symbols[place - 1] if place else symbol
    behind = before.range.end
    if before.kind in CALLABLE and line0 <= behind.line0 and behind <= symbol.name_position:
        return text.offset(behind)
    return text.offset(Position(line0, 0))


def _members(text: Text, file: FileSymbols, place: int) -> Iterator[str]:
    """What is in a shape, but for the bodies of functions; of a large one the names of its members alone."""
    shape = file.symbols[place]
    at, end = text.offset(shape.name_position), text.offset(shape.range.end)
    if end - at > MOST:
        yield from (file.symbols[inner].name for inner in file.children(place))
        return
    for inner in range(place + 1, len(file.symbols)):
        symbol = file.symbols[inner]
        if symbol.container < place:
            break
        if symbol.kind in CALLABLE and shape.range.encloses(symbol.range):
            first, last = text.offset(symbol.name_position), text.offset(symbol.range.end)
            if at <= first < last:
                yield from _plain(text.content[at:first])
                yield from _Scan(text.content, first, symbol).tokens()
                at = last
    yield from _plain(text.content[at:end])


def _plain(content: str) -> Iterator[str]:
    return (match[0] for match in TOKEN.finditer(content) if match.lastgroup not in ("space", "newline", "comment"))


class _Scan:
    """Reads one declaration from its name on, up to its body."""

    def __init__(self, content: str, name: int, symbol: Symbol, *, is_alias: bool = False) -> None:
        skipped = len(symbol.name) if content.startswith(symbol.name, name) else 0
        self._content = content
        self._from = name + skipped
        self._is_alias = is_alias
        self._ending = _ENDING if symbol.kind in _WITH_HEADER else _ENDING | {","}
        self._open: list[str] = []
        self._kept = [symbol.name]
        self._is_typed = False
        self._is_value = False
        """What follows is no type: `=` stood before it."""

    def tokens(self) -> list[str]:
        for match in TOKEN.finditer(self._content, self._from, min(self._from + MOST, len(self._content))):
            word, kind = match[0], match.lastgroup
            if kind == "newline" and self._ends_line(match.end()):
                break
            if kind in ("newline", "space", "comment"):
                continue
            if (not self._open and self._ends(word)) or (self._is_value and len(self._kept) > MOST_VALUE):
                break
            if self._track(word, match.start()):
                self._kept.append(self._compared(word, kind))
        return self._kept

    def _ends_line(self, at: int) -> bool:
        if self._open or self._kept[-1] in _UNFINISHED:
            return False
        return self._kept[-1] == ":" or not _CONTINUING.match(self._content, at)

    def _ends(self, word: str) -> bool:
        """Whether the signature ends before a word that stands in no brackets. Notes what is behind it."""
        if word == ":":
            self._is_typed = True
        elif word == "=" and not self._is_alias:
            if self._is_typed:
                return True
            self._is_value = True
        elif word == "=>":
            return self._is_value
        return word in self._ending or (word == "{" and self._is_body())

    def _is_body(self) -> bool:
        """Whether a brace that opens here is that of a function or a class."""
        before = self._kept[-1]
        return before not in _BEFORE_TYPE or (before == "=>" and self._is_value)

    def _track(self, word: str, at: int) -> bool:
        """Keeps count of the brackets. False for what stands in a function's body, inside of a value."""
        if word in "([":
            self._open.append(word)
        elif word == "{":
            hidden = self._is_value and (self._kept[-1] in (")", "=>") or self._open[-1:] == ["body"])
            self._open.append("body" if hidden else word)
        elif word == "<" and not self._is_value and self._content[at - 1 : at].strip():
            self._open.append(word)
        elif word in _PAIRS:
            self._close(word)
        return "body" not in self._open

    def _close(self, word: str) -> None:
        wanted = ("{", "body") if word == "}" else (_PAIRS[word],)
        if word == ">" and self._open[-1:] != ["<"]:
            return
        if any(one in wanted for one in self._open):
            while self._open.pop() not in wanted:
                pass

    def _compared(self, word: str, kind: str | None) -> str:
        """A literal of a value by its type alone."""
        if self._is_value and kind == "number":
            return "0.0" if "." in word else "0"
        return '""' if self._is_value and kind == "string" else word
