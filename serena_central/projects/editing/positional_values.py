"""What others hand values to by position: parameters, and fields of what is built by listing them. Told from the text,
by brackets; and where in a text a name is followed by such values."""

import re
from collections.abc import Iterator, Sequence

from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.signatures import TOKEN
from serena_central.symbols.kinds import CALLABLE, TYPES
from serena_central.symbols.symbol import FileSymbols, Symbol

MOST = 4_000
"""Maximum of characters of a declaration's head that are read."""

_FIELDS = frozenset({SymbolKind.FIELD, SymbolKind.PROPERTY, SymbolKind.VARIABLE, SymbolKind.CONSTANT})
_CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor"})

_OPENING, _CLOSING = "([{<", ")]}>"

_BY_POSITION = re.compile(
    r"\s*(?:::)?(?:<[^<>(){}]*+>|\[[^][\n]*+\])?\s*"
    r"(?:\((?!\s*\))|\{[\s{&]*+(?!\}|\.|[^\W\d]\w*+\s*[:,}=]|$)\S)"
)
"""Behind a name: a list of values in parentheses, or one in braces that does not name its fields."""
_LISTED_IN_BRACES = re.compile(r"\s*(?:\((?!\s*\))|\)?[^;(){}]*\{\s*[^.}\s])")
"""In C, with a variable's name between."""
_IMPORT = re.compile(r"\s*(?:(?:from|import|using|(?:pub(?:\([^)]*\))?\s+)?use)\b|export\s*(?:type\s*)?[{*])")

DECORATED = re.compile(r"^\s*@[\w.]*(dataclass|attrs?|attributes|define|frozen|mutable|s)\b", re.MULTILINE)
"""What makes fields of a Python class parameters of its constructor."""
WITH_BASE = re.compile(r"class\s+\w+[^(:]*\(\s*[^)\s]")
_AGGREGATE = re.compile(r"\b(?:struct|union)\b")
_MATCH_ARGS = "__match_args__"
_MATCH_ARGS_VALUE = re.compile(r"[^=\n]*=\s*[(\[][^)\]]*+")
_QUOTED = re.compile(r"""["'](\w+)["']""")
_ABOVE = 12
"""Lines above a class in which its decorators stand."""

_LOOKED_AT = 300
"""Characters behind a name in which its values begin."""


def values(text: Text, file: FileSymbols, place: int) -> list[str]:
    """What a symbol is handed by position, in order, without default values."""
    symbol = file.symbols[place]
    if symbol.kind not in CALLABLE | TYPES:
        return []
    fields: list[str] = []
    if symbol.kind in TYPES and _lists_fields(text, file, place):
        fields = [file.symbols[one].name for one in file.children(place) if file.symbols[one].kind in _FIELDS]
    fields += match_args(text, file, place)
    start = text.offset(symbol.name_position)
    return [*_head(text.content[start : min(start + MOST, text.offset(symbol.range.end))]), *fields]


def match_args(text: Text, file: FileSymbols, place: int) -> list[str]:
    """The attributes that positional patterns of a Python class mean, in order, where the class lists them itself."""
    for child in file.children(place):
        symbol = file.symbols[child]
        if symbol.name == _MATCH_ARGS:
            start = text.offset(symbol.name_position) + len(_MATCH_ARGS)
            listed = _MATCH_ARGS_VALUE.match(text.content, start, start + MOST)
            return _QUOTED.findall(listed[0]) if listed else []
    return []


def _lists_fields(text: Text, file: FileSymbols, place: int) -> bool:
    """Whether the fields of a type are in the order in which it is handed their values."""
    symbol = file.symbols[place]
    if symbol.kind == SymbolKind.STRUCT:
        return True
    head = text.line(symbol.name_line)
    return bool(_AGGREGATE.search(head[: symbol.name_column]) or WITH_BASE.search(head)) or is_decorated(text, symbol)


def is_decorated(text: Text, symbol: Symbol) -> bool:
    """Whether a decorator makes the fields of a Python class parameters of its constructor."""
    first = max(min(symbol.start_line, symbol.name_line) - _ABOVE, 0)
    above = re.split(r"\n\s*\n", text.lines(first, symbol.name_line))[-1]
    return DECORATED.search(above) is not None


def is_moved(before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether values that were handed by position may mean something else now: more than one was changed in its place,
    or something came or went before the end."""
    if list(now[: len(before)]) == list(before):
        return False
    return len(before) != len(now) or sum(one != other for one, other in zip(before, now, strict=True)) > 1


def called_as(file: FileSymbols, place: int) -> str:
    """The name by which code hands values to a symbol: of a constructor, that of its type."""
    symbol = file.symbols[place]
    is_constructor = symbol.kind == SymbolKind.CONSTRUCTOR or symbol.name in _CONSTRUCTORS
    return file.symbols[symbol.container].name if is_constructor and symbol.container >= 0 else symbol.name


def is_import(line: str) -> bool:
    """Whether a line names things for later use in the file, and uses none."""
    return _IMPORT.match(line) is not None


def is_by_position(text: Text, end: int, language: str, *, is_type: bool) -> bool:
    """Whether the name that ends at an offset is handed values by position there, or is handed on itself."""
    if is_import(text.line(text.position(end).line0)):
        return False
    pattern = _LISTED_IN_BRACES if language in ("c", "cpp") and is_type else _BY_POSITION
    return not is_type or pattern.match(text.content[end : end + _LOOKED_AT]) is not None


def _head(content: str) -> Iterator[str]:
    """What stands in the first parentheses behind a name, separated by commas."""
    words = [match[0] for match in TOKEN.finditer(content) if match.lastgroup not in ("newline", "space", "comment")]
    words = words[1 + _generic(words[1:]) :]
    item: list[str] = []
    depth = 0
    for word in words[1:] if words[:1] == ["("] else ():
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth < 0:
            break
        if depth == 0 and word == ",":
            yield _without_default(item)
            item = []
        else:
            item.append(word)
    if item:
        yield _without_default(item)


def _generic(words: Sequence[str]) -> int:
    """How many words at the beginning are parameters of types."""
    depth = 0
    for count, word in enumerate(words):
        if depth == 0 and word not in ("<", "["):
            return count
        depth += (word in _OPENING) - (word in _CLOSING)
    return 0


def _without_default(item: Sequence[str]) -> str:
    return " ".join(item[: item.index("=")] if "=" in item else item)
