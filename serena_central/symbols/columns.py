"""Symbols of one file as the index and its cache keep them: column by column, and compressed.

A find shows a symbol or two of each of its files: here no others are made, and a name is looked for in one text.
Columns compress better than rows.
"""

import sys
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from itertools import chain, repeat
from typing import Literal, cast, overload

import lz4.block
import msgspec

from serena_central.core.decoding import msgpack_decoder
from serena_central.core.text import Position, Range
from serena_central.symbols.namepath import in_path, is_odd
from serena_central.symbols.symbol import Brief, FileSymbols, Symbol, own_path

_TYPES: tuple[Literal["b", "h", "i", "q"], ...] = ("b", "h", "i", "q")
"""Of a column's numbers (`array`): the shortest that holds them."""

_NO_OVERLOAD = -1

_MADE_ALONE = 10
"""Of so many symbols of a file one may be made by itself: that takes ten times as long as one among all."""

_FEW = 3
"""So many are made by themselves however few a file has."""

_CHECKSUM_BYTES = 4
"""At the end of what is kept: a block of LZ4 has none, and what a damaged one is unpacked to looks like symbols."""

_FIELDS = len(Symbol.__struct_fields__)


class _Columns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of `Symbol`. A column of numbers has one for each symbol, or a single one that all share. One of texts
    is a single text: to make a hundred of it takes ten times as long as to unpack it."""

    size: int
    names: str
    """Each behind a border, a character that no text of the file has; one more ends the last."""
    numbers: tuple[bytes, ...]
    """Kinds, containers, overloads, six columns of positions, and `flat`: each column behind the number of its type."""
    details: str
    """As names, or the one that all share."""
    scopes: str
    """As details."""
    cut: bool


_compress = cast("Callable[[bytes], bytes]", lz4.block.compress)  # pyright: ignore[reportUnknownMemberType]
_decompress = cast("Callable[[bytes], bytes]", lz4.block.decompress)  # pyright: ignore[reportUnknownMemberType]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(_Columns)


class SymbolColumns(Sequence[Symbol]):
    """The symbols of a file. One is made when it is asked for, and all when many are. Safe in several threads."""

    __slots__ = (
        "_all", "_border", "_briefs", "_columns", "_details", "_known", "_made", "_name_paths", "_names", "_odd",
        "_scopes", "_size",
    )  # fmt: skip

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns
        self._border = columns.names[0]
        self._size = columns.size
        self._names: list[str] | None = None
        self._scopes: list[str] | None = None
        self._details: list[str] | None = None
        self._known: dict[int, str] = {}
        """Place → name, of those that were looked for."""
        self._name_paths: dict[int, str] = {}
        """Of those that were asked for, and of their containers, which others have, too."""
        self._made: dict[int, Symbol] = {}
        self._briefs: dict[int, Brief] = {}
        self._all: tuple[Symbol, ...] | None = None
        self._odd: dict[str, list[int]] | None = None

    def named(self, names: Collection[str]) -> list[int]:
        """Places of the symbols that have one of these names, or whose name paths do."""
        text, border, known = self._columns.names, self._border, self._known
        places: list[int] = []
        for name in names:
            wanted = f"{border}{name}{border}"
            place = before = 0
            at = -1 if border in name else text.find(wanted)
            while at >= 0:
                place += text.count(border, before, at)
                places.append(place)
                known[place] = name
                before, at = at, text.find(wanted, at + 1)
        if odd := self._odd_places():
            places = list({*places, *chain.from_iterable(odd.get(name, ()) for name in names)})
        places.sort()
        return places

    def _odd_places(self) -> dict[str, list[int]]:
        """Name as name paths have it → places of the symbols whose names have more slashes."""
        odd = self._odd
        if odd is None:
            odd, text, border = dict[str, list[int]](), self._columns.names, self._border
            if "/" in text and ("//" in text or f"{border}/" in text or f"/{border}" in text):
                for place, name in enumerate(self.names):
                    if is_odd(name):
                        odd.setdefault(in_path(name), []).append(place)
            self._odd = odd  # once it is whole: other threads take it as it is
        return odd

    def with_part(self, part: str) -> list[int]:
        """Places of the symbols whose names hold a part, which is not empty."""
        text, border = self._columns.names, self._border
        places: list[int] = []
        place, before = -1, 0
        at = -1 if border in part else text.find(part)
        while at >= 0:
            place += text.count(border, before, at)
            places.append(place)
            before = text.find(border, at)
            at = text.find(part, before)
        return places

    @property
    def names(self) -> list[str]:
        """By place."""
        if self._names is None:
            self._names = self._texts(self._columns.names)
            self._known.clear()
        return self._names

    def name(self, place: int) -> str:
        """That of the symbol at `place`."""
        name = self._known.get(place)
        return self.names[place] if name is None else name

    def name_path(self, place: int) -> str:
        """As `FileSymbols.name_path`, from the columns that it takes."""
        known = self._name_paths
        if place not in known:
            _, containers, overloads, *_ = self._columns.numbers
            unknown, container = [place], _number_at(containers, place)
            while container >= 0 and container not in known:
                unknown.append(container)
                container = _number_at(containers, container)
            path = f"{known[container]}/" if container >= 0 else ""
            for one in reversed(unknown):
                number = _number_at(overloads, one)
                path += own_path(self.name(one), None if number == _NO_OVERLOAD else number, self._scope(one))
                known[one] = path
                path += "/"
        return known[place]

    def brief(self, place: int) -> Symbol | Brief:
        """The symbol at `place` without what few ask for, or as a whole if it has been made."""
        if self._all is not None:
            return self._all[place]
        brief = self._briefs.get(place)
        if brief is None:
            if self._are_many(self._briefs):
                return self._each()[place]
            kind, container, number, line, column, end_line, end_column = [
                _number_at(column, place) for column in self._columns.numbers[:7]
            ]
            brief = self._briefs[place] = Brief(
                self.name(place),
                kind,
                container,
                None if number == _NO_OVERLOAD else number,
                Range(Position(line, column), Position(end_line, end_column)),
                self._scope(place),
            )
        return brief

    @property
    def kinds(self) -> Sequence[int]:
        """By place."""
        return self._spread(_read(self._columns.numbers[0]))

    @property
    def scopes(self) -> list[str]:
        """By place."""
        if self._scopes is None:
            self._scopes = self._texts(self._columns.scopes)
        return self._scopes

    @overload
    def __getitem__(self, index: int) -> Symbol: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Symbol, ...]: ...
    def __getitem__(self, index: int | slice) -> Symbol | tuple[Symbol, ...]:
        if self._all is not None or isinstance(index, slice):
            return self._each()[index]
        made = self._made.get(index)
        if made is not None:
            return made
        place = range(self._size)[index]
        if self._are_many(self._made):
            return self._each()[place]
        made = self._made[index] = self._make(place)
        return made

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._each())

    def __len__(self) -> int:
        return self._size

    def _make(self, place: int) -> Symbol:
        kind, container, number, line, column, end_line, end_column, name_line, name_column, flat = [
            _number_at(column, place) for column in self._columns.numbers
        ]
        return Symbol(
            self.name(place),
            kind,
            container,
            None if number == _NO_OVERLOAD else number,
            line,
            column,
            end_line,
            end_column,
            name_line,
            name_column,
            self._detail(place),
            self._scope(place),
            bool(flat),
        )

    def _each(self) -> tuple[Symbol, ...]:
        if self._all is None:
            kinds, containers, overloads, *positions, flats = [
                self._spread(_read(column)) for column in self._columns.numbers
            ]
            own = [None if overload == _NO_OVERLOAD else overload for overload in overloads]
            texts = self._split_details(), self.scopes
            self._all = tuple(map(Symbol, self.names, kinds, containers, own, *positions, *texts, map(bool, flats)))
            self._made.clear()
            self._briefs.clear()
        return self._all

    def _are_many(self, known: Sized) -> bool:
        return len(known) >= _FEW and len(known) * _MADE_ALONE > self._size

    def _spread(self, column: Sequence[int]) -> Sequence[int]:
        return column if len(column) == self._size else [column[0]] * self._size

    def _scope(self, place: int) -> str:
        column = self._columns.scopes
        return self.scopes[place] if column[:1] == self._border else column

    def _detail(self, place: int) -> str:
        column = self._columns.details
        return self._split_details()[place] if column[:1] == self._border else column

    def _split_details(self) -> list[str]:
        if self._details is None:
            self._details = self._texts(self._columns.details)
        return self._details

    def _texts(self, column: str) -> list[str]:
        return column.split(self._border)[1:-1] if column[:1] == self._border else [column] * self._size


class ColumnedFile(FileSymbols, frozen=True, gc=False):
    """A file's symbols as the index has them."""

    symbols: SymbolColumns

    @property
    def names(self) -> Sequence[str]:
        return self.symbols.names

    @property
    def scopes(self) -> set[str]:
        return set(self.symbols.scopes)

    def brief(self, place: int) -> Symbol | Brief:
        return self.symbols.brief(place)

    def name_path(self, place: int) -> str:
        return self.symbols.name_path(place)


def compressed(file: FileSymbols) -> bytes:
    """A file's symbols as the index and its cache keep them.

    Raises:
        ValueError: for a number of more than 64 bits, a lone surrogate, or texts that hold every character there is.
    """
    rows = zip(*map(msgspec.structs.astuple, file.symbols), strict=True) if file.symbols else repeat((), _FIELDS)
    names, kinds, containers, overloads, *positions, details, scopes, flats = rows
    own = tuple(_NO_OVERLOAD if overload is None else overload for overload in overloads)
    border = _border("".join([*names, *details, *scopes]))
    columns = _Columns(
        size=len(names),
        names=_joined(names, border),
        numbers=tuple(map(_written, (kinds, containers, own, *positions, flats))),
        details=_shared_or_joined(details, border),
        scopes=_shared_or_joined(scopes, border),
        cut=file.cut,
    )
    block = _compress(_encoder.encode(columns))
    return block + _checksum(block)


def decompressed(blob: bytes) -> ColumnedFile:
    """What `compressed` was made of."""
    columns = _decoder.decode(_decompress(blob[:-_CHECKSUM_BYTES]))
    return ColumnedFile(SymbolColumns(columns), columns.cut)


def is_whole(blob: bytes) -> bool:
    """Whether these are the very bytes that `compressed` made: 1 µs. Nothing else may be decompressed."""
    return blob[-_CHECKSUM_BYTES:] == _checksum(blob[:-_CHECKSUM_BYTES])


def _checksum(block: bytes) -> bytes:
    return zlib.crc32(block).to_bytes(_CHECKSUM_BYTES)


def _border(texts: str) -> str:
    """A character that no text holds: nearly always NUL."""
    held = set(texts) if "\0" in texts else ()
    for char in map(chr, chain(range(0xD800), range(0xE000, 0x110000))):
        if char not in held:
            return char
    raise ValueError("texts that hold every character")


def _joined(texts: Iterable[str], border: str) -> str:
    return "".join([border + text for text in texts]) + border


def _shared_or_joined(texts: tuple[str, ...], border: str) -> str:
    return texts[0] if _is_shared(texts) else _joined(texts, border)


def _is_shared(column: Sequence[object]) -> bool:
    return len(column) > 0 and column.count(column[0]) == len(column)


def _written(column: tuple[int, ...]) -> bytes:
    column = column[:1] if _is_shared(column) else column
    for number, kind in enumerate(_TYPES):
        with suppress(OverflowError):
            return bytes([number]) + array(kind, column).tobytes()
    raise ValueError("a number of more than 64 bits")


def _read(column: bytes) -> Sequence[int]:
    return memoryview(column)[1:].cast(_TYPES[column[0]])


def _number_at(column: bytes, place: int) -> int:
    """As `_read` would say, in half the time."""
    size = 1 << column[0]
    at = 1 + place * size if len(column) > 1 + size else 1
    if size > 1:
        return int.from_bytes(column[at : at + size], sys.byteorder, signed=True)
    number = column[at]
    return number - 256 if number > 127 else number
