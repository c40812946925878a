"""Reads the symbols of a source text by syntax alone, nested and with ranges like a language server's.

Runs in the worker's process, for C code that hostile text can hold up or break. Knows no files and no index.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import itemgetter
from typing import NamedTuple

from tree_sitter import Node, QueryCursor

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.lsp.symbol_filter import ANONYMOUS, CODE, named
from serena_central.symbols.indexing.incompleteness import DEEPEST
from serena_central.symbols.syntax import unparsed_variables
from serena_central.symbols.syntax.attributes import without_attributes
from serena_central.symbols.syntax.jsdoc import declared_types
from serena_central.symbols.syntax.macros import without_macros
from serena_central.symbols.syntax.messages import PARSED_BYTES
from serena_central.symbols.syntax.names import Name, name_of
from serena_central.symbols.syntax.resuming import roots_of
from serena_central.symbols.syntax.skimming import Skim, is_too_long, skimmed
from serena_central.symbols.syntax.trees import parsed, settings_of, tools, tree_of

KINDS: Mapping[str, SymbolKind] = {
    "array": SymbolKind.ARRAY,
    "boolean": SymbolKind.BOOLEAN,
    "class": SymbolKind.CLASS,
    "constant": SymbolKind.CONSTANT,
    "constructor": SymbolKind.CONSTRUCTOR,
    "enum": SymbolKind.ENUM,
    "enum_member": SymbolKind.ENUM_MEMBER,
    "event": SymbolKind.EVENT,
    "field": SymbolKind.FIELD,
    "function": SymbolKind.FUNCTION,
    "interface": SymbolKind.INTERFACE,
    "method": SymbolKind.METHOD,
    "module": SymbolKind.MODULE,
    "namespace": SymbolKind.NAMESPACE,
    "number": SymbolKind.NUMBER,
    "object": SymbolKind.OBJECT,
    "property": SymbolKind.PROPERTY,
    "string": SymbolKind.STRING,
    "struct": SymbolKind.STRUCT,
    "type": SymbolKind.CLASS,
    "type_parameter": SymbolKind.TYPE_PARAMETER,
    "variable": SymbolKind.VARIABLE,
}

_TYPES = {SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.ENUM, SymbolKind.OBJECT}
_FUNCTION, _NAMESPACE = SymbolKind.FUNCTION, SymbolKind.NAMESPACE
"""Asked for by the ten thousand: to look up a member of an enumeration takes longer than to compare it."""

_MEMBERS = {SymbolKind.FUNCTION: SymbolKind.METHOD, SymbolKind.VARIABLE: SymbolKind.FIELD}
"""What is called otherwise right inside a type."""

_VALUES = {SymbolKind.VARIABLE, SymbolKind.CONSTANT, SymbolKind.FIELD}

DEEPEST_HEADING = 6

OF_SECTIONS = frozenset({"markdown"})
"""Languages whose symbols reach to where others begin."""

OF_CLASSES = frozenset({"cpp", "cuda-cpp"})
"""Languages whose methods may be defined outside of their class, and whose constructors have its name."""


class _Pattern(NamedTuple):
    """What a pattern of a query sets for the definitions that it meets."""

    name: str | None = None
    """In place of one in the text."""
    level: int = 0
    """Of a heading: its section reaches to the next one of this level or above."""
    is_outside: bool = False
    """It belongs to what holds the function in which it stands."""
    is_once: bool = False
    """Only its first definition in a container counts."""
    is_static: bool = False
    """It stays a function in a type, too."""


_NOTHING_SET = _Pattern()


class _Mark(NamedTuple):
    """A definition, or a scope (`kind` None). In bytes; ordered as in the document, containers first."""

    start: int
    inverse_end: int
    name_start: int
    name: str
    kind: SymbolKind | None
    scope: tuple[str, ...] = ()
    """Containers that are written before the name, outermost first."""
    pattern: _Pattern = _NOTHING_SET

    @property
    def end(self) -> int:
        return -self.inverse_end


_in_document = itemgetter(0, 1, 2)
"""A mark's place in the order of the document."""


@cache
def _patterns(identifier: str) -> Sequence[_Pattern]:
    """By their numbers in the query for a language's definitions."""
    return [
        _Pattern(one.get("name"), int(one.get("level") or 0), "outside" in one, "once" in one, "static" in one)
        for one in settings_of(identifier)
    ]


def outline(identifier: str, source: bytes, *, is_asked_again: bool = True) -> tuple[list[DocumentSymbol], bool]:
    """The symbols of a text (valid UTF-8) in the language of an LSP identifier that `GRAMMARS` holds; and whether there
    is more in it than is looked at, because it nests too deeply. `is_asked_again`: its tree is worth keeping."""
    skim = skimmed(identifier, source)
    plain = without_attributes(identifier, skim.text)
    if is_too_long(plain):
        raise ValueError(f"it has more than {PARSED_BYTES / 1e6:g} MB even without macros and bodies of functions")
    root = (tree_of if is_asked_again and plain is source else parsed)(identifier, plain).root_node
    root = without_macros(identifier, plain, root)
    roots = roots_of(identifier, plain, root)
    return _symbols(identifier, roots, source, skim), any(_is_deeper(one, DEEPEST) for one in roots)


def outline_around(identifier: str, source: bytes, start: int, end: int) -> list[DocumentSymbol]:
    """Those symbols of a text that lie in a stretch of its bytes or reach into it, each as `outline` tells it; what
    leads a symbol counts to it only as far as that lies in the stretch."""
    plain = without_attributes(identifier, source)
    root = without_macros(identifier, plain, tree_of(identifier, plain).root_node)
    return _symbols(identifier, roots_of(identifier, plain, root), source, Skim(source), within=(start, end))


def _symbols(
    identifier: str, roots: Sequence[Node], source: bytes, skim: Skim, *, within: tuple[int, int] | None = None
) -> list[DocumentSymbol]:
    """`roots` are those of the trees of what is left of `source`."""
    _, query = tools(identifier)
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(DEEPEST)
    if within is not None and identifier not in OF_SECTIONS:
        cursor.set_byte_range(*within)
    may_be_lost = identifier in unparsed_variables.LANGUAGES and any(root.has_error for root in roots)
    matches = chain.from_iterable(map(cursor.matches, roots))
    marks = _marks(matches, _patterns(identifier), skim.text, may_be_lost=may_be_lost)
    positions = _positions(source, skim, marks)
    return named(_nested(marks, positions, _namespaces(marks) if identifier in OF_CLASSES else None))


def _is_deeper(root: Node, levels: int) -> bool:
    """Whether a tree has more levels below its root than so many. Looks only into nodes that hold enough for that."""
    waiting = [(root, 0)]
    while waiting:
        node, level = waiting.pop()
        if level > levels:
            return True
        if node.descendant_count > levels - level:
            waiting += [(child, level + 1) for child in node.children]
    return False


def _marks(
    matches: Iterable[tuple[int, dict[str, list[Node]]]],
    patterns: Sequence[_Pattern],
    source: bytes,
    *,
    may_be_lost: bool,
) -> list[_Mark]:
    """In document order; of two patterns that met one name, the mark of the first. `may_be_lost`: functions may be, so
    that their variables seem to be the file's."""
    best: dict[int, tuple[int, _Mark]] = {}
    scopes: list[_Mark] = []
    hidden: list[Node] = []
    leading: dict[int, int] = {}
    for pattern, captures in matches:
        if "name" not in captures:
            if "hidden" in captures:
                hidden += captures["hidden"]
            elif "documented" in captures:
                best.update((mark.name_start, (pattern, mark)) for mark in _documented(captures["documented"][0]))
            elif "scope" in captures:
                (node,) = captures["scope"]
                scopes.append(_Mark(node.start_byte, -node.end_byte, node.start_byte, ANONYMOUS, None))
            else:
                (node,) = captures["leading"]
                leading[_blank_before(source, node.end_byte)] = node.start_byte
            continue
        name = captures["name"][0]
        name_start = name.start_byte
        known = best.get(name_start)
        if known is None or pattern < known[0]:
            kind_name = _kind_named(captures)
            kind, node = KINDS[kind_name], captures[kind_name][0]
            if may_be_lost and kind in _VALUES:
                if unparsed_variables.is_of_lost_body(node, source) or unparsed_variables.is_invented(node):
                    continue
                captures = {**captures, "name": [unparsed_variables.variable_name(node, name, source)]}  # noqa: PLW2901 - the same match
            sets = patterns[pattern]
            text, at, scope = Name(sets.name, name_start) if sets.name else name_of(captures, source)
            end = _blank_before(source, node.end_byte)
            best[name_start] = pattern, _Mark(node.start_byte, -end, at, text, kind, scope, sets)
    marks = [mark for _, mark in best.values()]
    if leading:
        marks = [mark._replace(start=_led(mark.start, leading, source)) for mark in marks]
    return _as_sections(sorted(_shown([*scopes, *marks], hidden), key=_in_document), source)


def _kind_named(captures: Mapping[str, object]) -> str:
    for name in captures:  # `next` takes twice as long
        if name in KINDS:
            return name
    raise ValueError(f"none of {', '.join(captures)} is a kind of symbols")


def _documented(comment: Node) -> Iterator[_Mark]:
    for start, end, name_start, name in declared_types(comment):
        yield _Mark(start, -end, name_start, name, SymbolKind.CLASS)


def _as_sections(marks: list[_Mark], source: bytes) -> list[_Mark]:
    """Headings become sections. `marks` are in document order, and stay so."""
    ends: dict[int, int] = {}
    """Level → where the nearest section of it, or of one above, begins."""
    for place in range(len(marks) - 1, -1, -1):
        mark = marks[place]
        if mark.pattern.level:
            end = ends.get(mark.pattern.level, len(source))
            marks[place] = mark._replace(inverse_end=-_blank_before(source, end))
            ends.update(dict.fromkeys(range(mark.pattern.level, DEEPEST_HEADING + 1), mark.start))
    return marks


def _shown(marks: Sequence[_Mark], hidden: Iterable[Node]) -> Iterator[_Mark]:
    """The marks that do not lie in what is hidden."""
    nodes = sorted(hidden, key=lambda node: node.start_byte)
    ends = list(accumulate((node.end_byte for node in nodes), max))
    starts = [node.start_byte for node in nodes]
    for mark in marks:
        before = bisect_right(starts, mark.start)
        if not before or ends[before - 1] <= mark.start:
            yield mark


def _led(start: int, leading: Mapping[int, int], source: bytes) -> int:
    """Where a definition starts with all that leads it. `leading`: where such a part ends → where it starts."""
    while leading and (before := leading.get(_blank_before(source, start))) is not None:
        start = before
    return start


def _blank_before(source: bytes, offset: int) -> int:
    """Where the blanks before an offset begin."""
    while offset and source[offset - 1] in b" \t\r\n":
        offset -= 1
    return offset


def _positions(source: bytes, skim: Skim, marks: Iterable[_Mark]) -> dict[int, Position]:
    """The byte offsets that marks name in what is left of a text → their positions, in code points of the text."""
    if b"\r" in source:
        source = source.replace(b"\r\n", b" \n").replace(b"\r", b"\n")  # other line ends at the same offsets
    positions: dict[int, Position] = {}
    places = {place for mark in marks for place in (mark.start, -mark.inverse_end, mark.name_start)}
    is_ascii = source.isascii()
    line0 = column = before = 0
    for place, byte in skim.traced(sorted(places)):
        if lines := source.count(b"\n", before, byte):
            line0, column = line0 + lines, 0
            before = source.rfind(b"\n", before, byte) + 1
        column += byte - before if is_ascii else len(source[before:byte].decode())
        positions[place] = Position(line0, column)
        before = byte
    return positions


def _namespaces(marks: Iterable[_Mark]) -> frozenset[str]:
    return frozenset(mark.name for mark in marks if mark.kind is SymbolKind.NAMESPACE)


def _nested(
    marks: Sequence[_Mark], positions: Mapping[int, Position], namespaces: frozenset[str] | None
) -> list[DocumentSymbol]:
    """`namespaces`: of the text, where a function's name may have a class before it."""
    roots: list[DocumentSymbol] = []
    some_once = any(mark.pattern.is_once for mark in marks)
    known: set[tuple[str, SymbolKind | None, int]] = set()
    """Name, kind and beginning of the code that holds it."""
    around: list[tuple[_Mark, DocumentSymbol | None]] = []
    for mark in marks:
        while around and not _holds(around[-1][0], mark):
            around.pop()
        if some_once:
            code = next((outer.start for outer, _ in reversed(around) if outer.kind is None or outer.kind in CODE), -1)
            if mark.pattern.is_once and (mark.name, mark.kind, code) in known:
                continue
            known.add((mark.name, mark.kind, code))
        kind = _kind(mark, around[-1][0] if around else None, namespaces)
        name = positions[mark.name_start]
        selection = Range(name, Position(name.line0, name.column + len(mark.name)))
        whole = Range(positions[mark.start], positions[-mark.inverse_end])
        symbol = DocumentSymbol(mark.name, kind, whole, selection, "", [], mark.scope)
        _put(symbol, mark, around, roots)
        around.append((mark if mark.kind is None or mark.kind is kind else mark._replace(kind=kind), symbol))
    return roots


def _kind(mark: _Mark, holder: _Mark | None, namespaces: frozenset[str] | None) -> SymbolKind:
    """What a definition is called where it stands."""
    kind = _FUNCTION if mark.kind is None else mark.kind
    type_name = holder.name if holder is not None and holder.kind in _TYPES and not mark.pattern.is_static else None
    if namespaces is not None:
        if mark.scope and mark.scope[-1] not in namespaces:
            type_name = mark.scope[-1]
            if kind is SymbolKind.VARIABLE:
                return SymbolKind.PROPERTY
        if kind is _FUNCTION and type_name and mark.name.removeprefix("~") == type_name.partition("<")[0]:
            return SymbolKind.CONSTRUCTOR
    return kind if type_name is None else _MEMBERS.get(kind, kind)


def _holds(outer: _Mark, inner: _Mark) -> bool:
    """Whether a mark lies in one that begins no later. Equal ranges are siblings (`a, b = 1, 2` defines two), but for
    namespaces (`namespace a::b`); and so are variables that end together (`a = b = 1`)."""
    if outer.inverse_end != inner.inverse_end:
        return outer.inverse_end < inner.inverse_end
    if outer.start == inner.start:
        return outer.kind is inner.kind is _NAMESPACE
    return outer.kind not in _VALUES or inner.kind not in _VALUES


def _put(
    symbol: DocumentSymbol,
    mark: _Mark,
    around: Sequence[tuple[_Mark, DocumentSymbol | None]],
    roots: list[DocumentSymbol],
) -> None:
    """Puts a symbol into the innermost one around it. What ends before a name is no part of what is named, and stands
    before it: `struct Point { int x; } origin`."""
    passed: DocumentSymbol | None = None
    for outer, holder in reversed(around):
        if holder is None:
            continue
        siblings = holder.children
        if mark.pattern.is_outside and outer.kind in CODE:
            continue
        if mark.end > outer.name_start:
            break
        passed = holder
    else:
        siblings = roots
    if passed is None:
        siblings.append(symbol)
    else:
        siblings.insert(next(at for at, sibling in enumerate(siblings) if sibling is passed), symbol)
