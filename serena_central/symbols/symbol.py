"""Symbols of one file, as the index keeps them: a flat list in document order, each with its container; their
kinds, and hashes of their bodies, which distinguish a change of one symbol from changes elsewhere in its file.

Flat and compact because an index holds hundreds of thousands of them, and because msgspec then reads a cached file in
microseconds. Positions are code points (core/text.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text
from serena_central.core.words import whole_number
from serena_central.lsp.answers import MOST_SYMBOLS, DocumentSymbol, SymbolKind
from serena_central.symbols.namepath import PathPart, bare, in_path, is_odd, split_name

_NAMES = {kind.value: kind.name.title().replace("_", "") for kind in SymbolKind}
_NUMBERS = {name.casefold(): number for number, name in _NAMES.items()}

TYPES = frozenset({SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.ENUM, SymbolKind.OBJECT})
"""What members and bases have."""

GROUPS = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.PACKAGE})
"""What only groups names: what is in it may be used by its own."""

VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT})

CALLABLE = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})


class Brief(msgspec.Struct, frozen=True, gc=False):
    """What most ask of a symbol; as in `Symbol`."""

    name: str
    kind: int
    container: int
    overload: int | None
    range: Range
    scope: str

    @property
    def parts(self) -> list[PathPart]:
        """As `Symbol.parts`."""
        return _parts(self.name, self.overload, self.scope)


class Symbol(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One symbol. `container` is the place of its container in the file's list, -1 at the top level.

    `scope` are the containers between that one and the symbol which are not in this file, joined by `/`. `flat`: its
    range need not be the whole definition (DocumentSymbol.flat).
    """

    name: str
    kind: int
    container: int
    overload: int | None
    start_line: int
    start_column: int
    end_line: int
    end_column: int
    name_line: int
    name_column: int
    detail: str = ""
    scope: str = ""
    flat: bool = False

    @property
    def range(self) -> Range:
        """The whole definition, as the language server draws it."""
        return Range(Position(self.start_line, self.start_column), Position(self.end_line, self.end_column))

    @property
    def name_position(self) -> Position:
        """Where the name stands: the place to ask a language server about."""
        return Position(self.name_line, self.name_column)

    @property
    def parts(self) -> list[PathPart]:
        """Its own part of the name path: several where its name or its scope hold a `/`."""
        return _parts(self.name, self.overload, self.scope)


def _parts(name: str, overload: int | None, scope: str) -> list[PathPart]:
    if not scope and "/" not in name:
        return [PathPart(name, overload)]
    *containers, own = split_name(f"{scope}/{name}")
    return [*map(PathPart, containers), PathPart(own, overload)]


class FileSymbols(msgspec.Struct, frozen=True, gc=False):
    """All symbols of one file, in document order of their tree (a container before what it holds). `cut`: but for those
    that are nested too deeply, or are too many."""

    symbols: Sequence[Symbol]
    cut: bool = False

    @property
    def names(self) -> Sequence[str]:
        """Those of all symbols, by their places."""
        return [symbol.name for symbol in self.symbols]

    @property
    def scopes(self) -> set[str]:
        """Those that symbols have."""
        return {symbol.scope for symbol in self.symbols}

    @property
    def lookup_names(self) -> dict[str, int]:
        """The names by which the file is found, and how many of its symbols have each: their own, and of what may be a
        container of one also its parts and the type that it implements or is an instance of."""
        names = Counter(self.names)
        for name, count in [(name, names[name]) for name in names if is_odd(name)]:
            names[in_path(name)] += count
        for scope in self.scopes:
            if scope:
                names.setdefault(scope, 0)
        for name in [name for name in names if not name.isidentifier()]:
            for part in split_name(name):
                names.setdefault(part, 0)
                names.setdefault(bare(part), 0)
        return dict(names)

    def brief(self, place: int) -> Symbol | Brief:
        """The symbol at `place`, perhaps without what few ask for."""
        return self.symbols[place]

    def path(self, place: int) -> list[PathPart]:
        """The name path of the symbol at `place`, from the file's top."""
        parts: list[PathPart] = []
        while place >= 0:
            symbol = self.brief(place)
            parts.extend(reversed(symbol.parts))
            place = symbol.container
        parts.reverse()
        return parts

    def name_path(self, place: int) -> str:
        """As `path`, as answers show it."""
        parts: list[str] = []
        while place >= 0:
            symbol = self.brief(place)
            parts.append(own_path(symbol.name, symbol.overload, symbol.scope))
            place = symbol.container
        parts.reverse()
        return "/".join(parts)

    @property
    def name_paths(self) -> list[str]:
        """Those of all symbols, by their places."""
        paths: list[str] = []
        for symbol in self.symbols:
            own = own_path(symbol.name, symbol.overload, symbol.scope)
            # A container stands before what it holds.
            paths.append(own if symbol.container < 0 else f"{paths[symbol.container]}/{own}")
        return paths

    def place_of(self, name_path: str) -> int | None:
        """The place of the symbol with exactly this name path."""
        last = name_path.rpartition("/")[2]
        for place, symbol in enumerate(self.symbols):
            name = symbol.name
            if "/" in name:
                name = name.rpartition("/")[2]
            if last.startswith(name) and self.name_path(place) == name_path:
                return place
        return None

    def children(self, place: int) -> Iterator[int]:
        """Places of the direct children; -1 asks for the top level."""
        return (index for index, symbol in enumerate(self.symbols) if symbol.container == place)

    def others(self, place: int) -> list[int]:
        """Places of the other definitions of a name in its container: overloads, accessors of a property."""
        own = self.symbols[place]
        if own.overload is None:
            return []
        same = own.name, own.container, own.scope
        return [
            other
            for other, symbol in enumerate(self.symbols)
            if other != place and (symbol.name, symbol.container, symbol.scope) == same
        ]

    def meeting(self, first: Position, last: Position) -> Iterator[int]:
        """Places of the symbols whose definitions reach into the stretch from `first` to `last`, both included."""
        for place, symbol in enumerate(self.symbols):
            # Lines first: nearly all symbols of a file are elsewhere, and more takes long to compare.
            if (
                symbol.start_line <= last.line0
                and first.line0 <= symbol.end_line
                and (symbol.start_line, symbol.start_column) <= (last.line0, last.column)
                and (first.line0, first.column) <= (symbol.end_line, symbol.end_column)
            ):
                yield place

    def enclosing(self, position: Position) -> int | None:
        """Place of the innermost symbol whose definition holds `position`."""
        best: int | None = None
        reached = (-1, 0)
        for place in self.meeting(position, position):
            # Document order: a later match lies inside an earlier one, or starts where it ended.
            start = self.symbols[place].start_line, self.symbols[place].start_column
            if start >= reached:
                best, reached = place, start
        return best

    def enclosing_each(self, positions: Sequence[Position]) -> Iterator[int | None]:
        """As `enclosing` says of each of many positions, which are in ascending order: one way through the file for all
        of them."""
        if not positions:
            return
        symbols, met = self.symbols, self.meeting(positions[0], positions[-1])
        coming = [(symbols[place].start_line, symbols[place].start_column, place) for place in met]
        coming.sort(reverse=True)
        open_ones: list[tuple[int, int, int]] = []  # in ascending order: the innermost is the last
        for position in positions:
            here = position.line0, position.column
            while coming and coming[-1][:2] <= here:
                open_ones.append(coming.pop())
            open_ones = [one for one in open_ones if (symbols[one[2]].end_line, symbols[one[2]].end_column) >= here]
            yield open_ones[-1][2] if open_ones else None


def own_path(name: str, overload: int | None, scope: str) -> str:
    """A symbol's own part of its name path, as answers show it."""
    # Answers name thousands.
    if scope or "/" in name:
        name = in_path(f"{scope}/{name}")
    return name if overload is None else f"{name}[{overload}]"


def flatten(tree: Sequence[DocumentSymbol], *, cut: bool = False) -> FileSymbols:
    """Builds the flat list from a language server's tree."""
    symbols: list[Symbol] = []
    _flatten(tree, -1, symbols)
    return FileSymbols(tuple(symbols), cut or len(symbols) >= MOST_SYMBOLS)


def _flatten(siblings: Sequence[DocumentSymbol], container: int, symbols: list[Symbol]) -> None:
    siblings = _brought_home(siblings)
    count = Counter((sibling.scope, sibling.name) for sibling in siblings)
    seen: dict[tuple[tuple[str, ...], str], int] = {}
    for sibling in siblings:
        if len(symbols) >= MOST_SYMBOLS:
            return
        key = sibling.scope, sibling.name
        overload = None
        if count[key] > 1:
            overload = seen.get(key, 0)
            seen[key] = overload + 1
        place = len(symbols)
        start, end, name = sibling.range.start, sibling.range.end, sibling.selection.start
        symbols.append(
            Symbol(
                sibling.name,
                sibling.kind,
                container,
                overload,
                start.line0,
                start.column,
                end.line0,
                end.column,
                name.line0,
                name.column,
                sibling.detail,
                "/".join(sibling.scope),
                sibling.flat,
            )
        )
        if sibling.children:
            _flatten(sibling.children, place, symbols)


def _brought_home(siblings: Sequence[DocumentSymbol]) -> Sequence[DocumentSymbol]:
    """Symbols that stand outside of their container are put into it, where it is in the same file."""
    if not any(sibling.scope for sibling in siblings):
        return siblings
    containers = _Containers(siblings)
    kept: list[DocumentSymbol] = []
    for sibling in siblings:
        home = containers.find(sibling) if sibling.scope else None
        if home is None:
            kept.append(sibling)
        else:
            containers.put(home, msgspec.structs.replace(sibling, scope=()))
    return kept


_ByName = dict[str, list[DocumentSymbol]]


class _Containers:
    """Symbols by name, level by level: in generated code thousands of methods look for theirs."""

    def __init__(self, siblings: Sequence[DocumentSymbol]) -> None:
        self._top = _by_name(siblings)
        self._below: dict[int, _ByName] = {}
        """id of a symbol, which its file's tree keeps alive → its children."""

    def find(self, symbol: DocumentSymbol) -> DocumentSymbol | None:
        """The container of a symbol that stands outside of it."""
        return self._find(symbol, self._top, symbol.scope)

    def put(self, home: DocumentSymbol, symbol: DocumentSymbol) -> None:
        """Into its container, where others may look for theirs."""
        home.children.append(symbol)
        if id(home) in self._below:
            self._below[id(home)].setdefault(symbol.name, []).append(symbol)

    def _find(self, symbol: DocumentSymbol, level: _ByName, scope: Sequence[str]) -> DocumentSymbol | None:
        """The last one so named before the symbol, as in TOML's arrays of tables; else the first one."""
        named = level.get(scope[0], [])
        before = [one for one in named if one.range.start < symbol.range.start]
        for one in (*reversed(before), *named):
            found = self._find(symbol, self._children(one), scope[1:]) if len(scope) > 1 else one
            if found is not None:
                return found
        return None

    def _children(self, symbol: DocumentSymbol) -> _ByName:
        if id(symbol) not in self._below:
            self._below[id(symbol)] = _by_name(symbol.children)
        return self._below[id(symbol)]


def _by_name(siblings: Sequence[DocumentSymbol]) -> _ByName:
    """Those that stand in their container themselves."""
    named: _ByName = {}
    for sibling in siblings:
        if not sibling.scope:
            named.setdefault(sibling.name, []).append(sibling)
    return named


def kind_name(kind: int) -> str:
    """`Class` for 5; a number that LSP doesn't know is shown as such."""
    return _NAMES.get(kind, f"Kind{kind}")


def kind_numbers(kinds: Iterable[int | str]) -> frozenset[int]:
    """Numbers for what a caller wrote as numbers or names.

    Raises:
        InvalidArguments: a kind that LSP doesn't know.
    """
    return frozenset(_number(kind) for kind in kinds)


def _number(kind: int | str) -> int:
    number = _NUMBERS.get(kind.casefold()) if isinstance(kind, str) else kind
    if number is None and isinstance(kind, str):
        number = whole_number(kind)
    if number not in _NAMES:
        known = ", ".join(f"{value} {name}" for value, name in _NAMES.items())
        raise InvalidArguments(f"{str(kind)[:40]!r} is not a symbol kind. Kinds: {known}.")
    return number


def body_hash(text: Text, symbol: Symbol) -> str:
    """The hash of a symbol's body, 16 hexadecimal digits. Line ends don't count."""
    start = text.offset_at(symbol.start_line, symbol.start_column)
    return hash_of(text.content[start : text.offset_at(symbol.end_line, symbol.end_column)])


def hash_of(body: str) -> str:
    """The hash of a body that was cut out already."""
    if "\r" in body:  # ten times as quick as looking for both
        body = body.replace("\r\n", "\n")
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def body_hashes(text: Text, file: FileSymbols, places: Iterable[int] | None = None) -> dict[str, str]:
    """Name path → hash, of all symbols of a file or of those at `places`."""
    chosen = range(len(file.symbols)) if places is None else places
    return {file.name_path(place): body_hash(text, file.symbols[place]) for place in chosen}


def below(file: FileSymbols, place: int) -> list[int]:
    """A symbol and all that it contains."""
    inside = {place}
    for number, symbol in enumerate(file.symbols):  # a container stands before what it holds
        if symbol.container in inside:
            inside.add(number)
    return sorted(inside)
