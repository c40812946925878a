"""Constants that get their values from their order: members of enums without a value, or with Python's `auto()`, and
Go's `iota`.

Pure, and told from the text alone: what is inserted, moved or deleted before such a constant changes its value without
any error.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

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

_MARKS = {"go": "iota", "python": "auto"}
"""Languages in which a word tells that constants are numbered."""

_KEYS = frozenset({"class", "struct"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class Counted(NamedTuple):
    """A value that is as far from a written one as its constant is from the one that has it. Of `iota` it is the
    expression, and how far the constant is from the beginning of its group."""

    base: str
    steps: int


def renumbered(language: str, old: str, new: str) -> list[str]:
    """Constants that have another value in the new text because others came, went or moved, in its order."""
    if old == new or not _may_count(language, old):
        return []
    before = counted(language, old)
    return [name for name, value in counted(language, new).items() if before.get(name, value) != value]


def counted(language: str, text: str) -> dict[str, Counted]:
    """Constant → value, of those that are numbered by their order; a member by `Enum.member`. Without those that have
    one name in two places."""
    if not _may_count(language, text):
        return {}
    found: dict[str, Counted] = {}
    twice: set[str] = set()
    for name, value in _numbered(language, text):
        if name in found:
            twice.add(name)
        found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def _may_count(language: str, text: str) -> bool:
    if language in _MARKS:
        return _MARKS[language] in text
    return language in _WITH_ENUMS and "enum" in text


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
        depth += (word in _OPENING) - (word in _CLOSING)
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
            depth += 1 if match["bracket"] in _OPENING else -1
        if match["end"] and depth <= 0:
            yield "".join(parts)
            parts, depth = [], 0
        elif match["string"]:
            parts.append(repr(match["string"]))  # in one line, and no keyword
        elif not match["end"]:
            parts.append(match["bracket"] or match["other"] or "")
    yield "".join(parts)
