"""What an edit changed of declarations, which decides whether others may be broken: names that it removed, signatures
that it changed, and values that others hand over by position: parameters, and fields of what is built by listing them.
Told from the text, by brackets; and where in a text a name is followed by such values. Pure and cheap: only symbols
that reach into the changed stretch of a file are compared.

Also constants that get their values from their order: members of enums without a value, or with Python's `auto()`, and
Go's `iota`. What is inserted, moved or deleted before such a constant changes its value without any error.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from serena_central.core.text import Text
from serena_central.editing.plan import changed_span
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.signatures import TOKEN, reach, signature
from serena_central.symbols.symbol import CALLABLE, TYPES, VALUES, FileSymbols, Symbol

_HIDDEN = VALUES | {SymbolKind.FUNCTION, SymbolKind.CLASS}
"""What is local where it stands in a variable, which may hold a function; the others are members of an object."""


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

DECORATED = re.compile(r"^[^\S\n]*@[\w.]*(dataclass|attrs?|attributes|define|frozen|mutable|s)\b", re.MULTILINE)
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
    left_out = ("newline", "space", "comment")
    words = (match[0] for match in TOKEN.finditer(content) if match.lastgroup not in left_out)
    next(words, None)  # the name
    if _behind_generic(words) != "(":
        return
    item: list[str] = []
    depth = 0
    for word in words:
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


def _behind_generic(words: Iterator[str]) -> str | None:
    """The first word behind the parameters of types, of which there may be none."""
    depth = 0
    for word in words:
        if depth == 0 and word not in ("<", "["):
            return word
        depth += (word in _OPENING) - (word in _CLOSING)
    return None


def _without_default(item: Sequence[str]) -> str:
    return " ".join(item[: item.index("=")] if "=" in item else item)


_TOKEN = re.compile(
    r"""
    //[^\n]*+ | /\*.*?\*/ | ^[ \t]*\#(?!\[)[^\n]*+
    | (?P<word>[^\W\d]\w*+)
    | (?P<other>"(?:\\.|[^"\\\n])*+" | `[^`]*+` | '(?:\\.|[^'\\\n])*+' | \d[\w.]*+ | \n | \S)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_WITH_ENUMS = frozenset({"c", "cpp", "csharp", "cuda", "deno", "rust", "typescript"})
"""Languages in which members of an enum without a value are numbered."""

_PYTHON_TOKEN = re.compile(
    r"""
    [#][^\n]*+ | \\\n
    | (?P<string>\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | "(?:\\.|[^"\\\n])*+" | '(?:\\.|[^'\\\n])*+')
    | (?P<bracket>[][(){}]) | (?P<end>\n) | (?P<other>[^][(){}#"'\\\n]++|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_PYTHON_CLASS = re.compile(r"class\s+(\w+)\s*(?:\(([^()]*)\))?\s*:")
_PYTHON_MEMBER = re.compile(r"(?!_)(\w+)\s*(?::[^=]*)?=\s*(?!=)(.+)")
_AUTO = re.compile(r"\b(?:enum\s*\.\s*)?auto\s*\(")
_NUMBERING = re.compile(r"(?<!Str)(?:Enum|Flag)$")
"""What base classes of enums with numbers are called: `auto()` in a `StrEnum` is the member's name."""

_OWN_VALUES = "_generate_next_value_"
"""The function by which an enum gives `auto()` other values than numbers."""

_MARKS = {
    "go": re.compile(r"iota(?<!\wiota)(?!\w)"),
    "python": re.compile(r"auto(?<!\wauto)(?:[\s\\]|[#][^\n]*+)*+\("),
    **dict.fromkeys(_WITH_ENUMS, re.compile(r"enum(?<!\wenum)(?!\w)")),
}
"""Language → what stands in each of its texts that numbers constants. To look for it in 2,700 lines, beginning with a
literal, takes a twentieth of a millisecond; to split them into statements takes five."""

_KEYS = frozenset({"class", "struct"})
_BRACKETS, _END_BRACKETS = frozenset("([{"), frozenset(")]}")


class Counted(NamedTuple):
    """A value that is as far from a written one as its constant is from the one that has it. Of `iota` it is the
    expression, and how far the constant is from the beginning of its group."""

    base: str
    steps: int


def renumbered(language: str, old: str, new: str) -> list[str]:
    """Constants that have another value in the new text because others came, went or moved, in its order. A value that
    is written with a new name of something that was renamed in the text is the same."""
    if old == new or not may_count(language, old):
        return []
    before = counted(language, old)
    found = {name: value for name, value in counted(language, new).items() if before.get(name, value) != value}
    if any(before[name].steps == value.steps for name, value in found.items()):
        words = [Counter(match["word"] for match in _TOKEN.finditer(text) if match["word"]) for text in (old, new)]
        return [name for name, value in found.items() if not _is_same(before[name], value, *words)]
    return list(found)


def _is_same(was: Counted, now: Counted, before: Counter[str], after: Counter[str]) -> bool:
    """Whether two values differ by new names alone: words that all stand where others have gone."""
    old, new = _WORD.findall(was.base), _WORD.findall(now.base)
    if was.steps != now.steps or _WORD.sub("", was.base) != _WORD.sub("", now.base) or len(old) != len(new):
        return False
    renamed = {pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]}
    return all(before[its] == after[their] > 0 == before[their] == after[its] for its, their in renamed)


_WORD = re.compile(r"\w+")


def counted(language: str, text: str) -> dict[str, Counted]:
    """Constant → value, of those that are numbered by their order; a member by `Enum.member`. Without those that have
    one name in two places."""
    if not may_count(language, text):
        return {}
    found: dict[str, Counted] = {}
    twice: set[str] = set()
    for name, value in _numbered(language, text):
        if name in found:
            twice.add(name)
        found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def may_count(language: str, text: str) -> bool:
    """Whether a text can have constants that are numbered by their order; looks for a word only."""
    mark = _MARKS.get(language)
    return mark is not None and mark.search(text) is not None


def _numbered(language: str, text: str) -> Iterator[tuple[str, Counted]]:
    if language == "python":
        return _of_auto(text)
    words = [match["word"] or match["other"] for match in _TOKEN.finditer(text) if match.lastgroup]
    return _of_iota(words) if language == "go" else _of_enums(words)


def _of_enums(words: Sequence[str]) -> Iterator[tuple[str, Counted]]:
    words = [word for word in words if word != "\n"]
    at = 0
    while (at := _index(words, {"enum"}, at)) < len(words):
        opening = _index(words, frozenset("{;()="), at)
        head = [one for one in words[at + 1 : opening] if one not in _KEYS]
        at = opening + 1
        if words[opening : opening + 1] != ["{"]:
            continue
        items, at = _items(words, opening, frozenset(","))
        members = [_without_attributes(one) for one in items]
        if any(len(one) > 1 and one[1] != "=" for one in members):
            continue  # variants with data are no numbers
        yield from _members(f"{head[0]}." if head and head[0][0].isidentifier() else "", members)


def _index(words: Sequence[str], wanted: Collection[str], start: int) -> int:
    """Where the next of some words stands; the number of words if none does."""
    return next((at for at in range(start, len(words)) if words[at] in wanted), len(words))


def _members(prefix: str, members: Sequence[Sequence[str]]) -> Iterator[tuple[str, Counted]]:
    value = Counted("", 0)
    for member in members:
        if not member:
            continue
        if len(member) > 1:
            value = Counted(" ".join(member[2:]), 1)
        else:
            yield prefix + member[0], value
            value = value._replace(steps=value.steps + 1)


def _without_attributes(member: Sequence[str]) -> list[str]:
    """A member without `#[…]` and `[[…]]` around its name."""
    kept: list[str] = []
    depth = 0
    for word in member:
        depth += (word == "[") - (word == "]")
        if not depth and word not in ("]", "#"):
            kept.append(word)
    return kept


def _of_iota(words: Sequence[str]) -> Iterator[tuple[str, Counted]]:
    at = 0
    while (at := _index(words, {"const"}, at) + 1) < len(words):
        if words[at] != "(":
            continue
        lines, at = _items(words, at, frozenset("\n;"))
        written: list[str] = []
        for steps, line in enumerate(filter(None, lines)):
            equals = _index(line, {"="}, 0)
            if equals < len(line):
                written = [" ".join(one) for one in _split(line[equals + 1 :])]
            for place, names in enumerate(_split(line[:equals])):
                expression = written[place] if place < len(written) else ""
                if names and names[0] != "_" and "iota" in expression.split():
                    yield names[0], Counted(expression, steps)


def _items(words: Sequence[str], opening: int, separators: frozenset[str]) -> tuple[list[list[str]], int]:
    """What stands between the bracket at a place and the one that closes it, in pieces; and where that one stands."""
    depth = 0
    items: list[list[str]] = [[]]
    for at in range(opening + 1, len(words)):
        word = words[at]
        depth += (word in _BRACKETS) - (word in _END_BRACKETS)
        if depth < 0:
            return items, at
        if depth == 0 and word in separators:
            items.append([])
        elif word != "\n":
            items[-1].append(word)
    return items, len(words)


def _split(words: Sequence[str]) -> list[list[str]]:
    """Pieces between commas outside of brackets."""
    return _items(["(", *words], 0, frozenset(","))[0]


def _of_auto(text: str) -> Iterator[tuple[str, Counted]]:
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in _statements(text) if line.strip()]
    numbering: dict[str, bool] = {}
    for at, (indent, line) in enumerate(lines):
        head = _PYTHON_CLASS.match(line)
        if head is None:
            continue
        end = next((end for end in range(at + 1, len(lines)) if lines[end][0] <= indent), len(lines))
        body = lines[at + 1 : end]
        bases = [base.strip().rpartition(".")[2] for base in (head[2] or "").split(",")]
        numbers = any(numbering.get(base, _NUMBERING.search(base) is not None) for base in bases)
        numbering[head[1]] = numbers and not any(_OWN_VALUES in line for _, line in body)
        if numbering[head[1]]:
            yield from _members(f"{head[1]}.", [_member(line) for inner, line in body if inner == body[0][0]])


def _member(line: str) -> list[str]:
    """The name of a member, and its value unless it is `auto()`; nothing if a statement is none."""
    match = _PYTHON_MEMBER.fullmatch(line)
    if match is None:
        return []
    return [match[1]] if _AUTO.search(match[2]) else [match[1], "=", match[2]]


def _statements(text: str) -> Iterator[str]:
    """The lines of Python, joined where a bracket or a string goes on; without comments, strings as the text that they
    are written as."""
    parts: list[str] = []
    depth = 0
    for match in _PYTHON_TOKEN.finditer(text):
        if match["bracket"]:
            depth += 1 if match["bracket"] in _BRACKETS else -1
        if match["end"] and depth <= 0:
            yield "".join(parts)
            parts, depth = [], 0
        elif match["string"]:
            parts.append(repr(match["string"]))  # in one line, and no keyword
        elif not match["end"]:
            parts.append(match["bracket"] or match["other"] or "")
    yield "".join(parts)


class Redeclared(msgspec.Struct, frozen=True):
    """Names of one file's symbols. `gone`: a symbol of this name is not there any more; `changed`: it is, and has
    another signature; `moved`: what code hands it by position may mean something else now, for each whether it is a
    type."""

    gone: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    moved: frozenset[tuple[str, bool]] = frozenset()


def redeclared(old: Text, before: FileSymbols, new: Text, after: FileSymbols) -> Redeclared:
    """What an edit of a file's text did to what it declares."""
    start, old_end, new_end = changed_span(old.content, new.content)
    was, now = _touched(old, before, start, old_end), _touched(new, after, start, new_end)
    gone: set[str] = set()
    changed: set[str] = set()
    moved: set[tuple[str, bool]] = set()
    # What one text has in the stretch, the other may have just beside it: a decorator that came or went, for example.
    for path in {**was, **now}:
        old_place = was[path] if path in was else before.place_of(path)
        new_place = now[path] if path in now else after.place_of(path)
        if new_place is None:
            gone.add(path)
        elif old_place is not None:
            if signature(old, before, old_place) != signature(new, after, new_place):
                changed.add(path)
            if is_moved(values(old, before, old_place), values(new, after, new_place)):
                name = called_as(after, new_place)
                moved.add((name, name != _name(path) or after.symbols[new_place].kind in TYPES))
    return Redeclared(frozenset(map(_name, gone)), frozenset(map(_name, changed)), frozenset(moved))


def _touched(text: Text, file: FileSymbols, start: int, end: int) -> dict[str, int]:
    """Name path → place, of symbols that others may refer to and that begin or stand where a stretch of a text
    is."""
    places = file.meeting(text.position(start), reach(text, text.position(end)))
    return {file.name_path(place): place for place in places if not _is_local(file, place)}


def all_gone(before: FileSymbols) -> Redeclared:
    """Of a file that was deleted."""
    names = {symbol.name for place, symbol in enumerate(before.symbols) if not _is_local(before, place)}
    return Redeclared(frozenset(names))


def _is_local(file: FileSymbols, place: int) -> bool:
    own, container = file.symbols[place].kind, file.symbols[place].container
    while container >= 0:
        kind = file.symbols[container].kind
        if kind in CALLABLE or (kind in VALUES and own in _HIDDEN):
            return True
        container = file.symbols[container].container
    return False


def _name(name_path: str) -> str:
    return name_path.rpartition("/")[2].partition("[")[0]
