"""Symbols of one file as the index and its cache keep them: column by column, and compressed.

A find shows a symbol or two of each of its files: here no others are made, and a name is looked for in one text.
Columns compress better than rows.
"""

import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Literal, TypeVar, cast, overload

import lz4.block
import msgspec

from serena_central.core.decoding import msgpack_decoder
from serena_central.symbols.symbol import FileSymbols, Symbol

_TYPES: tuple[Literal["b", "h", "i", "q"], ...] = ("b", "h", "i", "q")
"""Of a column's numbers (`array`): the shortest that holds them."""

_NO_OVERLOAD = -1

_MADE_ALONE = 10
"""Of so many symbols of a file one may be made by itself: that takes ten times as long as one among all."""

_CHECKSUM_BYTES = 4
"""At the end of what is kept: a block of LZ4 has none, and what a damaged one is unpacked to looks like symbols."""

_FIELDS = len(Symbol.__struct_fields__)

T = TypeVar("T")


class _Columns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of `Symbol`. A column has a value for each symbol, or a single one that all share."""

    size: int
    names: str
    """Each behind a border, a character that no name has; one more ends the last."""
    numbers: tuple[bytes, ...]
    """Kinds, containers, overloads, six columns of positions, and `flat`: each column behind the number of its type."""
    details: tuple[str, ...]
    scopes: tuple[str, ...]
    cut: bool


_compress = cast("Callable[[bytes], bytes]", lz4.block.compress)  # pyright: ignore[reportUnknownMemberType]
_decompress = cast("Callable[[bytes], bytes]", lz4.block.decompress)  # pyright: ignore[reportUnknownMemberType]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(_Columns)


class SymbolColumns(Sequence[Symbol]):
    """The symbols of a file. One is made when it is asked for, and all when many are. Safe in several threads."""

    __slots__ = ("_all", "_border", "_columns", "_made", "_names", "_size")

    def __init__(self, columns: _Columns) -> None:
        self._columns = columns
        self._border = columns.names[0]
        self._size = columns.size
        self._names: list[str] | None = None
        self._made: dict[int, Symbol] = {}
        self._all: tuple[Symbol, ...] | None = None

    def named(self, names: Iterable[str]) -> list[int]:
        """Places of the symbols that have one of these names."""
        text, border = self._columns.names, self._border
        places: list[int] = []
        for name in names:
            wanted = f"{border}{name}{border}"
            place = before = 0
            at = -1 if border in name else text.find(wanted)
            while at >= 0:
                place += text.count(border, before, at)
                places.append(place)
                before, at = at, text.find(wanted, at + 1)
        places.sort()
        return places

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
            self._names = self._columns.names.split(self._border)[1:-1]
        return self._names

    @property
    def kinds(self) -> Sequence[int]:
        """By place."""
        return self._spread(_read(self._columns.numbers[0]))

    @property
    def scopes(self) -> set[str]:
        """Those that symbols have."""
        return set(self._columns.scopes)

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
        if len(self._made) * _MADE_ALONE > self._size:
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
            self.names[place],
            kind,
            container,
            None if number == _NO_OVERLOAD else number,
            line,
            column,
            end_line,
            end_column,
            name_line,
            name_column,
            _at(self._columns.details, place),
            _at(self._columns.scopes, place),
            bool(flat),
        )

    def _each(self) -> tuple[Symbol, ...]:
        if self._all is None:
            kinds, containers, overloads, *positions, flats = [
                self._spread(_read(column)) for column in self._columns.numbers
            ]
            own = [None if overload == _NO_OVERLOAD else overload for overload in overloads]
            texts = self._spread(self._columns.details), self._spread(self._columns.scopes)
            self._all = tuple(map(Symbol, self.names, kinds, containers, own, *positions, *texts, map(bool, flats)))
            self._made.clear()
        return self._all

    def _spread(self, column: Sequence[T]) -> Sequence[T]:
        return column if len(column) == self._size else [column[0]] * self._size


class ColumnedFile(FileSymbols, frozen=True, gc=False):
    """A file's symbols as the index has them."""

    symbols: SymbolColumns

    @property
    def names(self) -> Sequence[str]:
        return self.symbols.names

    @property
    def scopes(self) -> set[str]:
        return self.symbols.scopes


def compressed(file: FileSymbols) -> bytes:
    """A file's symbols as the index and its cache keep them.

    Raises:
        ValueError: for a number of more than 64 bits, a lone surrogate, or names that hold every character there is.
    """
    rows = zip(*map(msgspec.structs.astuple, file.symbols), strict=True) if file.symbols else repeat((), _FIELDS)
    names, kinds, containers, overloads, *positions, details, scopes, flats = rows
    own = tuple(_NO_OVERLOAD if overload is None else overload for overload in overloads)
    border = _border("".join(names))
    columns = _Columns(
        size=len(names),
        names="".join([border + name for name in names]) + border,
        numbers=tuple(map(_written, (kinds, containers, own, *positions, flats))),
        details=_shared(details),
        scopes=_shared(scopes),
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


def _border(names: str) -> str:
    """A character that no name holds: nearly always NUL."""
    held = set(names) if "\0" in names else ()
    for char in map(chr, chain(range(0xD800), range(0xE000, 0x110000))):
        if char not in held:
            return char
    raise ValueError("names that hold every character")


def _shared(column: tuple[T, ...]) -> tuple[T, ...]:
    return column[:1] if column and column.count(column[0]) == len(column) else column


def _written(column: tuple[int, ...]) -> bytes:
    column = _shared(column)
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


def _at(column: Sequence[T], place: int) -> T:
    return column[place] if len(column) > 1 else column[0]
