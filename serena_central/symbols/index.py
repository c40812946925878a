"""SymbolIndex: what every indexed file of one root defines, and which files define a name.

Each file's symbols are kept encoded and compressed, as in the cache on disk: a tenth of the memory of objects, and a
restart takes them over without decoding any. A name leads to its files; the few that fit are decoded, and the newest
decoded ones kept. The index knows no server and no clock: `indexing/` fills it.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import NamedTuple, overload

import msgspec

from serena_central.core.decoding import msgpack_decoder
from serena_central.core.lru import Lru
from serena_central.core.pacing import paced
from serena_central.files.stamp import Stamp
from serena_central.symbols.name_table import NAMES_PER_TEXT, NameTable, NameText
from serena_central.symbols.namepath import Pattern, Reading
from serena_central.symbols.similar_names import NAMES_COMPARED
from serena_central.symbols.symbol import FileSymbols, Symbol, encoded, lookup_names
from serena_central.symbols.syntax.messages import Packed

DECODED_SYMBOLS = 30_000
"""Of files that stay decoded: what agents ask again and again; some 10 MB. Others take 0.1 ms each."""

FILES_KEPT = 500
"""Of one find whose files stay decoded: those of a larger one would push out all others, and each other."""

LEAST_HALF = 3
"""Letters; a shorter part is in too many names."""

FILES_LOOKED_AT = 1_000
"""Of those that define one name, to show some of them: 2 ms."""

FEW_FILES = 20
"""Are decoded sooner than those are looked up that define their containers."""

_decoder = msgpack_decoder(FileSymbols)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One indexed file. `indexed_at_ns` (Unix time) and `stamp` tell whether it may have changed unseen."""

    stamp: Stamp
    indexed_at_ns: int
    source: str
    """Language server, version and settings digest that said so."""
    compressed: bytes
    """What `encoded` made of the file's symbols."""
    cut: bool
    """Whether symbols of the file are left out: they are too many, or nested too deeply."""

    @property
    def blob(self) -> bytes:
        """A `FileSymbols` as msgpack: 8 µs, of which each file of the Linux kernel is 1.4 KB."""
        return zlib.decompress(self.compressed)


class _Named(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A `Symbol` up to its scope."""

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
    detail: msgspec.Raw
    scope: str


class _NamedSymbols(msgspec.Struct, frozen=True, gc=False):
    symbols: tuple[_Named, ...]


_name_decoder = msgpack_decoder(_NamedSymbols)


class _Kind(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The beginning of a `Symbol`, by another name."""

    name: msgspec.Raw
    kind: int


class _KindSymbols(msgspec.Struct, frozen=True, gc=False):
    symbols: tuple[_Kind, ...]


_kind_decoder = msgpack_decoder(_KindSymbols)


def names_in(entry: Entry) -> set[str]:
    """The names by which an entry is found (`lookup_names`), sooner than by decoding all of it."""
    return lookup_names(_name_decoder.decode(entry.blob).symbols)


def packed(names: Iterable[str]) -> bytes:
    """Names as the cache keeps them: between NULs, in UTF-8 (lone surrogates included)."""
    return "\0".join(names).encode("utf-8", "surrogatepass")


def unpacked(names: bytes) -> set[str]:
    return set(names.decode("utf-8", "surrogatepass").split("\0")) if names else set()


class Hit(NamedTuple):
    """A symbol of the index: its file (root-relative POSIX path), the file's symbols, and its place among them."""

    path: str
    file: FileSymbols
    place: int

    @property
    def symbol(self) -> Symbol:
        return self.file.symbols[self.place]

    @property
    def name_path(self) -> str:
        return self.file.name_path(self.place)


def lies_within(path: str, within: str | None) -> bool:
    """Whether a file is this one or lies in this folder; everything lies within None."""
    return within is None or path == within or path.startswith(within + "/")


_EMPTY = frozenset(msgspec.msgpack.encode(FileSymbols((), cut)) for cut in (False, True))

_EMPTY_BYTES = 40
"""Longer than any of these when it is compressed: what is longer still is not looked at."""


class IndexedFiles(Mapping[str, FileSymbols]):
    """The symbols of some files as they were at one moment, decoded when they are asked for: those of 50,000 files take
    half a gigabyte."""

    def __init__(self, index: "SymbolIndex", entries: Mapping[str, Entry]) -> None:
        self._index = index
        self._entries = entries

    def __getitem__(self, path: str) -> FileSymbols:
        return self._index.decoded(path, self._entries[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    async def counts(self, is_wanted: Callable[[int], bool]) -> dict[str, int]:
        """How many symbols of such kinds each file has that has some."""
        found: dict[str, int] = {}
        async for path, entry in paced(list(self._entries.items())):
            if number := sum(is_wanted(symbol.kind) for symbol in _kind_decoder.decode(entry.blob).symbols):
                found[path] = number
        return found

    async def filled(self) -> list[str]:
        """Files with symbols; decodes none."""
        return [
            path
            async for path, entry in paced(list(self._entries.items()))
            if len(entry.compressed) > _EMPTY_BYTES or entry.blob not in _EMPTY
        ]


def _is_in(names: Iterable[str], path: str) -> bool:
    """Whether the modules that a file's path names may have one of some names."""
    known = path.replace("-", "_")
    return any(name in known for name in names)


class Hits(Sequence[Hit]):
    """Symbols that fit, by path and place. Their files are decoded when one is taken out: those of all 57,000 symbols
    with `init` in their names would take 200 MB."""

    def __init__(self, index: "SymbolIndex") -> None:
        self._index = index
        self._entries: dict[str, Entry] = {}
        self._found: list[tuple[str, int, int]] = []
        """Path, place and kind."""

    def add(self, path: str, entry: Entry, place: int, kind: int) -> None:
        """Adds a symbol of an entry."""
        self._entries[path] = entry
        self._found.append((path, place, kind))

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        if isinstance(index, slice):
            return [self._hit(one) for one in self._found[index]]
        return self._hit(self._found[index])

    def __len__(self) -> int:
        return len(self._found)

    def _hit(self, found: tuple[str, int, int]) -> Hit:
        path, place, _ = found
        return Hit(path, self._index.decoded(path, self._entries[path]), place)

    @property
    def per_file(self) -> Counter[str]:
        """How many lie in which file."""
        return Counter(path for path, _, _ in self._found)

    @property
    def kinds(self) -> Counter[int]:
        """How many are of which kind."""
        return Counter(kind for _, _, kind in self._found)

    def of_kinds(self, is_wanted: Callable[[int], bool]) -> "Hits":
        """Those of some kinds."""
        wanted = {kind for kind in self.kinds if is_wanted(kind)}
        return self._those([found for found in self._found if found[2] in wanted])

    def in_files(self, is_wanted: Callable[[str], bool]) -> "Hits":
        """Those in some files."""
        wanted = {path for path in self._entries if is_wanted(path)}
        return self._those([found for found in self._found if found[0] in wanted])

    def _those(self, found: list[tuple[str, int, int]]) -> "Hits":
        hits = Hits(self._index)
        hits._entries, hits._found = self._entries, found
        return hits


class SymbolIndex:
    """In memory; belongs to the event loop's thread. All paths are root-relative POSIX paths."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._names = NameTable()
        self._name_text = NameText()
        self._unmapped: dict[str, bytes] = {}
        """Restored files whose names are not mapped yet → those names. They are searched as they are."""
        self._decoded: Lru[str, FileSymbols] = Lru(max_size=DECODED_SYMBOLS, size_of=lambda file: len(file.symbols) + 1)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def paths(self) -> Collection[str]:
        return self._entries.keys()

    def entry(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def put(self, path: str, file: FileSymbols, *, stamp: Stamp, indexed_at_ns: int, source: str) -> None:
        """Takes over what a server said about a file, in place of what was known."""
        self.drop(path)
        self._entries[path] = Entry(stamp, indexed_at_ns, source, encoded(file), file.cut)
        self._add_names(path, lookup_names(file.symbols))

    def put_packed(self, path: str, symbols: Packed, *, stamp: Stamp, indexed_at_ns: int, source: str) -> None:
        """As `put`, of symbols that are encoded already."""
        self.drop(path)
        self._entries[path] = Entry(stamp, indexed_at_ns, source, symbols.compressed, symbols.cut)
        self._add_names(path, set(symbols.names))

    def restore(self, path: str, entry: Entry, names: bytes) -> None:
        """Takes over an entry of the cache for a file that is not known; `names` are what `names_in` says, `packed`."""
        self._entries[path] = entry
        self._unmapped[path] = b"\0%b\0" % names

    def map_names(self, most: int) -> bool:
        """Lets the names of restored files lead to them, of up to `most` files; False when all do.

        Millions of names take a second or two, which the first answer after a restart doesn't wait for.
        """
        for _ in range(min(most, len(self._unmapped))):
            path, names = self._unmapped.popitem()
            self._add_names(path, unpacked(names[1:-1]))
        return bool(self._unmapped)

    def _add_names(self, path: str, names: set[str]) -> None:
        self._name_text.add(self._names.add(path, names))
        if len(self._name_text) > 2 * len(self._names) + NAMES_PER_TEXT:
            names = set(self.names())  # most of the text is gone
            self._name_text = NameText()
            self._name_text.add(names)

    def drop(self, path: str) -> None:
        """Forgets a file; nothing happens if it isn't known."""
        if path not in self._entries:
            return
        if self._unmapped.pop(path, None) is None:
            self._names.drop(path, names_in(self._entries[path]))
        del self._entries[path]
        self._decoded.discard(path)

    def clear(self) -> None:
        """Forgets all files."""
        for known in (self._entries, self._unmapped, self._decoded):
            known.clear()
        self._names, self._name_text = NameTable(), NameText()

    def file(self, path: str) -> FileSymbols:
        """The symbols of an indexed file.

        Raises:
            KeyError: for any other.
        """
        return self.decoded(path, self._entries[path])

    async def files(self, paths: Iterable[str]) -> IndexedFiles:
        """Those of the files that are indexed, each as it is at one moment; others have turns between."""
        entries = {path: entry async for path in paced(paths) if (entry := self._entries.get(path)) is not None}
        return IndexedFiles(self, entries)

    def decoded(self, path: str, entry: Entry, *, keep: bool = True) -> FileSymbols:
        """The symbols that a file has, or had in an entry of before."""
        if self._entries.get(path) is not entry:
            return _decoder.decode(entry.blob)
        known = self._decoded.get(path)
        if known is None:
            known = _decoder.decode(entry.blob)
            if keep:
                self._decoded[path] = known
        return known

    def is_cut(self, path: str) -> bool:
        """Whether symbols of an indexed file are left out: they are too many, or nested too deeply."""
        return self._entries[path].cut

    def of_text(self, path: str, stamp: Stamp | None) -> FileSymbols | None:
        """The symbols of a file, if they are known and belong to the text that has this stamp."""
        entry = self._entries.get(path)
        return self.file(path) if entry is not None and entry.stamp == stamp else None

    def find(self, pattern: Pattern, within: str | None = None) -> Hits:
        """Symbols that fit, by path and place. `within` is a file, or a folder's path; None means everywhere."""
        hits = Hits(self)
        for reading in pattern.readings:
            for _ in self._search(hits, reading, within):
                pass
            if hits:
                break
        return hits

    async def find_paced(self, pattern: Pattern, within: str | None = None) -> Hits:
        """As `find`, with turns for others. What changes meanwhile may be missing."""
        hits = Hits(self)
        for reading in pattern.readings:
            async for _ in paced(self._search(hits, reading, within)):
                pass
            if hits:
                break
        return hits

    def _search(self, hits: Hits, reading: Reading, within: str | None) -> Iterator[None]:
        """Adds what fits, in steps."""
        names, paths = reading.names, set[str]()
        if not reading.substring:
            for found in self._files_of(names, within):
                paths |= found
                yield
        elif within is not None and within in self._entries:
            names = {symbol.name for symbol in self.file(within).symbols if reading.last.name in symbol.name}
            paths = {within}
        else:
            names = set[str]()
            yield from self._add_with_part(names, paths, reading.last.name, "" if within is None else within + "/")
        yield from self._drop_without_containers(paths, reading, within)
        for path in sorted(paths):
            entry = self._entries.get(path)
            if entry is not None:
                file = self.decoded(path, entry, keep=len(paths) <= FILES_KEPT)
                for place, symbol in enumerate(file.symbols):
                    if symbol.name in names and reading.fits(file.path(place), path):
                        hits.add(path, entry, place, symbol.kind)
            yield

    def _add_with_part(self, names: set[str], paths: set[str], part: str, folder: str) -> Iterator[None]:
        """Adds the names that hold a part, and the files of a folder that define one, in steps."""
        needle = part.encode("utf-8", "surrogatepass")
        # These first: what is mapped meanwhile is found below.
        for path, held in list(self._unmapped.items()):
            if needle in held and path.startswith(folder):
                found = [name for name in unpacked(held[1:-1]) if part in name]
                names.update(found)
                if found:
                    paths.add(path)
            yield
        for name in self._name_text.containing(part):
            if name in self._names:
                names.add(name)
            yield
        for name in names:
            paths.update(path for path in self._names.files(name) if path.startswith(folder))
            yield

    def _drop_without_containers(self, paths: set[str], reading: Reading, within: str | None) -> Iterator[None]:
        """Takes files out of `paths` in which nothing can fit, in steps."""
        for containers in reading.held:
            if len(paths) <= FEW_FILES:
                return
            holding = set[str]()
            for found in self._files_of(containers, within):
                holding |= found
                yield
            if reading.written:
                holding.update(path for path in paths if _is_in(containers, path))
            paths &= holding

    def some(self, name: str, most: int, within: str | None, holding: str = "") -> list[Hit]:
        """Some symbols of exactly this name: first those `within` a file or folder, and in files that hold another name
        too. Decodes `most` files, however many have it."""
        holders = set(self._names.files(holding))
        paths = list(islice(self._names.files(name), FILES_LOOKED_AT))
        paths.sort(key=lambda path: (not lies_within(path, within), path not in holders, path))
        hits: list[Hit] = []
        for path in paths[:most]:
            file = self.file(path)
            hits += [Hit(path, file, place) for place, symbol in enumerate(file.symbols) if symbol.name == name]
        return hits

    def holding(self, name: str) -> set[str]:
        """Files that are found by a name; all that have a symbol of it are among them."""
        return set[str]().union(*self._files_of({name}, None))

    def names_like(self, name: str) -> Iterator[str]:
        """Names that may be spelt alike, some of which may be gone, some several times: those that hold one half of the
        name, of all there are, and then the first ones. May be read in a thread."""
        middle = len(name) // 2
        halves = [half for half in (name[:middle], name[middle:]) if len(half) >= LEAST_HALF]
        alike = (islice(self._name_text.containing(half), NAMES_COMPARED) for half in halves)
        return chain(*alike, islice(self._name_text, NAMES_COMPARED))

    def names(self) -> Iterator[str]:
        """Every name that some symbol has, as far as they are mapped; some perhaps several times."""
        return (name for name in self._name_text if name in self._names)

    def _files_of(self, names: Set[str], within: str | None) -> Iterator[Set[str]]:
        """Files that define one of some names, in steps."""
        if within is not None and within in self._entries:
            yield {within}
            return
        folder = "" if within is None else within + "/"
        needles = [b"\0%b\0" % name.encode("utf-8", "surrogatepass") for name in names if self._unmapped]
        # These first: what is mapped meanwhile is found below.
        for path, held in list(self._unmapped.items()):
            yield {path} if path.startswith(folder) and any(needle in held for needle in needles) else set()
        for name in names:
            yield {path for path in self._names.files(name) if path.startswith(folder)}
