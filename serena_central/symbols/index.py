"""SymbolIndex: what every indexed file of one root defines, and which files define a name.

Each file's symbols are kept encoded and compressed, as in the cache on disk: a tenth of the memory of objects, and a
restart takes them over without decoding any. A name leads to its files; the few that fit are decoded, and the newest
decoded ones kept. The index knows no server and no clock: `indexing/` fills it.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import accumulate, chain, islice
from typing import NamedTuple, overload

import msgspec

from serena_central.core.lru import Lru
from serena_central.core.pacing import paced
from serena_central.files.stamp import Stamp
from serena_central.symbols.columns import ColumnedFile, compressed, decompressed
from serena_central.symbols.name_table import MANY, NAMES_PER_TEXT, NameTable, NameText
from serena_central.symbols.namepath import Pattern, Reading
from serena_central.symbols.similar_names import NAMES_COMPARED
from serena_central.symbols.symbol import FileSymbols, Symbol
from serena_central.symbols.syntax.messages import Packed

DECODED_SYMBOLS = 30_000
"""Of files that stay decoded: what agents ask again and again; some 10 MB. Others take 15 µs each."""

COLUMNS_TAKE = 4
"""As much memory as so many symbols, of each file."""

FILES_KEPT = 100
"""Of one find whose files stay decoded: those of a larger one would push out all others, and each other."""

LEAST_HALF = 3
"""Letters; a shorter part is in too many names."""

FILES_LOOKED_AT = 1_000
"""Of those that define one name, to show some of them: 2 ms."""

ADDED_AT_ONCE = 500
"""Files whose symbols are counted already: 0.1 ms."""

UNMAPPED_AT_ONCE = 100
"""Files whose names are looked through as they are: 0.1 ms."""

FEW_FILES = 20
"""Are decoded sooner than those are looked up that define their containers."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One indexed file. `indexed_at_ns` (Unix time) and `stamp` tell whether it may have changed unseen."""

    stamp: Stamp
    indexed_at_ns: int
    source: str
    """Language server, version and settings digest that said so."""
    compressed: bytes
    """What `columns.compressed` made of the file's symbols: of each file of the Linux kernel 1.1 KB."""
    cut: bool
    """Whether symbols of the file are left out: they are too many, or nested too deeply."""


def names_in(entry: Entry) -> dict[str, int]:
    """The names by which an entry is found (`FileSymbols.lookup_names`)."""
    return decompressed(entry.compressed).lookup_names


def packed(names: Mapping[str, int]) -> bytes:
    """Names as the cache keeps them: between NULs, in UTF-8 (lone surrogates included), those of one count behind it,
    in groups between two of them. But for names that are empty or hold a NUL, which no pattern asks for."""
    groups: dict[int, list[str]] = {}
    for name, count in names.items():
        if name and "\0" not in name:
            groups.setdefault(min(count, MANY), []).append(name)
    joined = "\0\0".join(["\0".join([str(count), *some]) for count, some in groups.items()])
    return f"\0{joined}\0".encode("utf-8", "surrogatepass")


def unpacked(names: bytes) -> dict[str, int]:
    """What `packed` was made of."""
    found: dict[str, int] = {}
    for group in names[1:-1].decode("utf-8", "surrogatepass").split("\0\0") if len(names) > 2 else ():
        count, *some = group.split("\0")
        found.update(dict.fromkeys(some, int(count)))
    return found


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


_EMPTY = frozenset(compressed(FileSymbols((), cut)) for cut in (False, True))


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
            if number := sum(map(is_wanted, decompressed(entry.compressed).symbols.kinds)):
                found[path] = number
        return found

    async def filled(self) -> list[str]:
        """Files with symbols; decodes none."""
        return [path async for path, entry in paced(list(self._entries.items())) if entry.compressed not in _EMPTY]


def _is_in(names: Iterable[str], path: str) -> bool:
    """Whether the modules that a file's path names may have one of some names."""
    known = path.replace("-", "_")
    return any(name in known for name in names)


def _size(file: ColumnedFile) -> int:
    return len(file.symbols) + COLUMNS_TAKE


Places = Callable[[str, ColumnedFile], list[int]]


class Hits(Sequence[Hit]):
    """Symbols that fit, by path and place. Where their number is known their files are decoded when one is taken out:
    those of all 57,000 symbols with `init` in their names would take 200 MB, and of the thousands that are called alike
    an answer shows some."""

    def __init__(
        self, index: "SymbolIndex", places: Places = lambda _path, _file: [], *, shortest_name: int = 1
    ) -> None:
        """`places` tells of a path and its symbols where those stand that fit."""
        self.shortest_name = shortest_name
        """No name is shorter: characters."""
        self._index = index
        self._fitting = places
        # By file, in the order of their paths.
        self._paths: list[str] = []
        self._entries: list[Entry] = []
        self._counts: list[int] = []
        self._size = 0
        self._ends: list[int] = []
        """How many there are up to the end of each file, once one is asked for by its number."""
        self._places: dict[str, list[int]] = {}
        """Of the files that were looked into."""
        self._last: tuple[str, ColumnedFile | None] = "", None
        """The file that was looked into last: symbols are mostly asked for in their order …"""
        self._files: Lru[str, ColumnedFile] = Lru(max_size=DECODED_SYMBOLS, size_of=_size)
        """… and some several times: what is shown in full may be too long, and is shown by names then. If
        they are few, the index itself keeps them."""

    def add(self, path: str, entry: Entry, count: int) -> None:
        """Adds so many symbols of an entry; paths come in their order."""
        self._paths.append(path)
        self._entries.append(entry)
        self._counts.append(count)
        self._size += count

    def add_all(self, paths: Sequence[str], entries: Mapping[str, Entry], counts: Sequence[int]) -> None:
        """As `add`, of many."""
        self._paths += paths
        self._entries += map(entries.__getitem__, paths)
        self._counts += counts
        self._size += sum(counts)

    def look_into(self, path: str, entry: Entry, *, keep: bool = True) -> None:
        """Adds the symbols of an entry that fit."""
        if places := self._fitting(path, self._index.decoded(path, entry, keep=keep)):
            self._places[path] = places
            self.add(path, entry, len(places))

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index if index >= 0 else index + self._size
        if not 0 <= number < self._size:
            raise IndexError(index)
        if len(self._ends) < len(self._counts):
            self._ends = list(accumulate(self._counts))
        at = bisect_right(self._ends, number)
        path, file, places = self._look_up(at)
        return Hit(path, file, places[number - self._ends[at] + self._counts[at]])

    def __iter__(self) -> Iterator[Hit]:
        return self.since(0)

    def since(self, first: int) -> Iterator[Hit]:
        """Those from this number on, each file decoded when it is reached."""
        skipped = first
        for at, count in enumerate(self._counts):
            if skipped >= count:
                skipped -= count
                continue
            path, file, places = self._look_up(at)
            for place in places[skipped:count]:
                yield Hit(path, file, place)
            skipped = 0

    def __len__(self) -> int:
        return self._size

    def _look_up(self, at: int) -> tuple[str, ColumnedFile, list[int]]:
        """The file of this number, its symbols, and the places of those that fit."""
        path, (before, file) = self._paths[at], self._last
        if file is None or path != before:
            file = self._file(path, at)
            self._last = path, file
        places = self._places.get(path)
        if places is None:
            places = self._places[path] = self._fitting(path, file)
        return path, file, places

    def _file(self, path: str, at: int) -> ColumnedFile:
        if len(self._entries) <= FILES_KEPT:
            return self._index.decoded(path, self._entries[at])
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self._index.decoded(path, self._entries[at], keep=False)
        return file

    @property
    def files(self) -> int:
        """How many they lie in."""
        return len(self._paths)

    @property
    def per_file(self) -> Counter[str]:
        """How many lie in which file."""
        return Counter(dict(zip(self._paths, self._counts, strict=True)))

    async def kinds(self) -> Counter[int]:
        """How many are of which kind."""
        return Counter([hit.symbol.kind async for hit in paced(self)])

    async def of_kinds(self, is_wanted: Callable[[int], bool]) -> "Hits":
        """Those of some kinds."""

        def places(path: str, file: ColumnedFile) -> list[int]:
            kinds = file.symbols.kinds
            return [place for place in self._fitting(path, file) if is_wanted(kinds[place])]

        hits = Hits(self._index, places, shortest_name=self.shortest_name)
        keep = len(self._entries) <= FILES_KEPT
        async for path, entry in paced(zip(self._paths, self._entries, strict=True)):
            hits.look_into(path, entry, keep=keep)
        return hits

    def in_files(self, is_wanted: Callable[[str], bool]) -> "Hits":
        """Those in some files."""
        hits = Hits(self._index, self._fitting, shortest_name=self.shortest_name)
        for path, entry, count in zip(self._paths, self._entries, self._counts, strict=True):
            if is_wanted(path):
                hits.add(path, entry, count)
        return hits


_UNKNOWN = -1
"""How many symbols of a file fit is to be looked up in it."""


class _Counts:
    """How many symbols of which files have one of some names, found name by name while files may change."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._changed = set[str]()

    def add(self, counts: Mapping[str, int]) -> None:
        """Adds what is known of one name at one moment: path → how many."""
        known = self._counts
        if not known:  # of a name that thousands of files have, or none
            known.update(counts)
            return
        for path, count in counts.items():
            before = known.get(path, 0)
            known[path] = before + count if before >= 0 <= count else _UNKNOWN

    def change(self, paths: Iterable[str]) -> None:
        """Takes note of files of which what was counted is not right any more, or not all of it."""
        self._changed.update(paths)

    @property
    def paths(self) -> Collection[str]:
        """In the order in which they came, which is hardly another than their own: they are sorted soon."""
        return self._counts.keys()

    def of(self, path: str) -> int:
        """Those of a file, if they are known."""
        count = self._counts[path]
        return count if count < MANY and path not in self._changed else _UNKNOWN

    def of_each(self, paths: Sequence[str]) -> Sequence[int]:
        """Those of some files if all of them have some, and how many is known; else nothing."""
        counts = list(map(self._counts.__getitem__, paths))
        is_sure = min(counts) > 0 and max(counts) < MANY and (not self._changed or self._changed.isdisjoint(paths))
        return counts if is_sure else ()


def _places(reading: Reading, names: Set[str]) -> Places:
    last, is_bare = reading.last.name, reading.is_bare
    are_whole = is_bare and "/" not in last
    """Whether nothing more is asked of a symbol with that name."""

    def fits(path: str, file: ColumnedFile, place: int) -> bool:
        return (is_bare and "/" not in file.symbols.name(place)) or reading.fits(file.path(place), path)

    def with_part(path: str, file: ColumnedFile) -> list[int]:
        return [place for place in file.symbols.with_part(last) if fits(path, file, place)]

    def with_name(path: str, file: ColumnedFile) -> list[int]:
        places = file.symbols.named(names)
        return places if are_whole else [place for place in places if fits(path, file, place)]

    return with_part if reading.substring else with_name


class SymbolIndex:
    """In memory; belongs to the event loop's thread. All paths are root-relative POSIX paths."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._names = NameTable()
        self._name_text = NameText()
        self._unmapped: dict[str, bytes] = {}
        """Restored files whose names are not all mapped yet → those names. They are searched as they are."""
        self._mapping: tuple[str, Iterator[tuple[str, int]]] | None = None
        """The one of these of which some are, and the rest."""
        self._searches: list[_Counts] = []
        """Those under way, which are told of files that change."""
        self._decoded: Lru[str, ColumnedFile] = Lru(max_size=DECODED_SYMBOLS, size_of=_size)
        self.changes = 0
        """How often something has changed of which a find may tell."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def paths(self) -> Collection[str]:
        return self._entries.keys()

    def entry(self, path: str) -> Entry | None:
        return self._entries.get(path)

    def put(self, path: str, file: FileSymbols, *, stamp: Stamp, indexed_at_ns: int, source: str) -> None:
        """Takes over what a server said about a file, in place of what was known.

        Raises:
            ValueError: for what cannot be kept (`compressed`).
        """
        self._put(path, Entry(stamp, indexed_at_ns, source, compressed(file), file.cut), file.lookup_names)

    def put_packed(self, path: str, symbols: Packed, *, stamp: Stamp, indexed_at_ns: int, source: str) -> None:
        """As `put`, of symbols that are encoded already."""
        self._put(path, Entry(stamp, indexed_at_ns, source, symbols.compressed, symbols.cut), symbols.names)

    def _put(self, path: str, entry: Entry, names: Mapping[str, int]) -> None:
        before = self._entries.get(path)
        if before is None or path in self._unmapped:
            self.drop(path)
            self._entries[path] = entry
            self._note_new(self._names.add(path, names))
            return
        self._note_change([path])
        self._entries[path] = entry
        self._decoded.discard(path)
        if before.compressed != entry.compressed:
            self._note_new(self._names.replace(path, names_in(before), names))

    def restore(self, path: str, entry: Entry, names: bytes) -> None:
        """Takes over an entry of the cache for a file that is not known; `names` are what `names_in` says, `packed`."""
        self._note_change([path])
        self._entries[path] = entry
        self._unmapped[path] = names

    def map_names(self, most: int) -> bool:
        """Lets up to `most` names of restored files lead to them; False when all do.

        Millions of names take a second or two, which the first answer after a restart doesn't wait for, and those of
        one generated file 0.1 s, for which nobody else does.
        """
        while most > 0 and self._unmapped:
            if self._mapping is None:
                path = next(reversed(self._unmapped))
                self._mapping = path, iter(unpacked(self._unmapped[path]).items())
            path, names = self._mapping
            some = dict(islice(names, most))
            self._note_new(self._names.add(path, some))
            if len(some) < most:
                del self._unmapped[path]
                self._mapping = None
            most -= len(some) + 1
        return bool(self._unmapped)

    def _note_new(self, names: Iterable[str]) -> None:
        """Takes note of names that no file had."""
        self._name_text.add(names)
        if len(self._name_text) > 2 * len(self._names) + NAMES_PER_TEXT:
            left = set(self.names())  # most of the text is gone
            self._name_text = NameText()
            self._name_text.add(left)

    def drop(self, path: str) -> None:
        """Forgets a file; nothing happens if it isn't known."""
        self._note_change([path])
        if path not in self._entries:
            return
        is_begun = self._mapping is not None and self._mapping[0] == path
        if is_begun:
            self._mapping = None
        if self._unmapped.pop(path, None) is None or is_begun:
            self._names.drop(path, names_in(self._entries[path]))
        del self._entries[path]
        self._decoded.discard(path)

    def clear(self) -> None:
        """Forgets all files."""
        self._note_change(self._entries)
        for known in (self._entries, self._unmapped, self._decoded):
            known.clear()
        self._names, self._name_text, self._mapping = NameTable(), NameText(), None

    def _note_change(self, paths: Iterable[str]) -> None:
        """What searches have counted in these files is known no more."""
        self.changes += 1
        for search in self._searches:
            search.change(paths)

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

    def decoded(self, path: str, entry: Entry, *, keep: bool = True) -> ColumnedFile:
        """The symbols that a file has, or had in an entry of before."""
        if self._entries.get(path) is not entry:
            return decompressed(entry.compressed)
        known = self._decoded.get(path)
        if known is None:
            known = decompressed(entry.compressed)
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
            names = reading.names
            hits = Hits(self, _places(reading, names), shortest_name=len(reading.last.name))
            for _ in self._search(hits, reading, names, within):
                pass
            if hits:
                break
        return hits

    async def find_paced(self, pattern: Pattern, within: str | None = None) -> Hits:
        """As `find`, with turns for others. What changes meanwhile may be missing."""
        hits = Hits(self)
        for reading in pattern.readings:
            names = reading.names
            hits = Hits(self, _places(reading, names), shortest_name=len(reading.last.name))
            async for _ in paced(self._search(hits, reading, names, within)):
                pass
            if hits:
                break
        return hits

    def _search(self, hits: Hits, reading: Reading, names: Set[str], within: str | None) -> Iterator[None]:
        """Adds what fits, in steps. `names` are the reading's."""
        with self._counting() as counts:
            if not reading.substring:
                steps = self._counts_of(names, within)
            elif within is not None and within in self._entries:
                steps = iter([{within: _UNKNOWN}])
            else:
                steps = self._counts_with_part(reading.last.name, "" if within is None else within + "/")
            for some in steps:
                counts.add(some)
                yield
            paths = counts.paths
            if reading.held:
                paths = set(paths)
                yield from self._drop_without_containers(paths, reading, within)
            yield from self._add(hits, sorted(paths), counts if reading.is_bare else None)

    @contextmanager
    def _counting(self) -> Generator[_Counts]:
        """For a search that gives turns to others, who may change files meanwhile."""
        counts = _Counts()
        self._searches.append(counts)
        try:
            yield counts
        finally:
            self._searches.remove(counts)

    def _add(self, hits: Hits, paths: Sequence[str], counts: _Counts | None) -> Iterator[None]:
        """Adds what fits in files, in steps: as often as it was counted, if it was."""
        is_kept, each = len(paths) <= FILES_KEPT, iter(paths)
        while some := list(islice(each, ADDED_AT_ONCE)):
            yield
            if counts and (counted := counts.of_each(some)):
                hits.add_all(some, self._entries, counted)  # of a name that thousands of files have
                continue
            for path in some:
                entry = self._entries.get(path)
                if entry is None:
                    continue
                count = counts.of(path) if counts else _UNKNOWN
                if count == _UNKNOWN:
                    hits.look_into(path, entry, keep=is_kept)
                    yield
                elif count:
                    hits.add(path, entry, count)

    def _counts_with_part(self, part: str, folder: str) -> Iterator[Mapping[str, int]]:
        """How many symbols of which files of a folder have a name that holds a part, in steps."""
        needle = part.encode("utf-8", "surrogatepass")
        # These first: what is mapped meanwhile is found below.
        for some in self._unmapped_parts():
            yield {
                path: _UNKNOWN
                for path, held in some
                if needle in held and path.startswith(folder) and any(part in name for name in unpacked(held))
            }
        names = set[str]()
        for name in self._name_text.containing(part):
            if name in self._names:
                names.add(name)
            yield {}
        for name in names:
            yield self._mapped(name, folder)

    def _drop_without_containers(self, paths: set[str], reading: Reading, within: str | None) -> Iterator[None]:
        """Takes files out of `paths` in which nothing can fit, in steps."""
        for containers in reading.held:
            if len(paths) <= FEW_FILES:
                return
            holding = set[str]()
            for found in self._counts_of(containers, within):
                holding.update(found)
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
            file = self.decoded(path, self._entries[path])
            hits += [Hit(path, file, place) for place in file.symbols.named([name])]
        return hits

    def holding(self, name: str) -> set[str]:
        """Files that are found by a name; all that have a symbol of it are among them."""
        return {path for found in self._counts_of({name}, None) for path in found}

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

    def _counts_of(self, names: Set[str], within: str | None) -> Iterator[Mapping[str, int]]:
        """How many symbols of which files have one of some names, in steps."""
        if within is not None and within in self._entries:
            yield {within: _UNKNOWN}
            return
        folder = "" if within is None else within + "/"
        needles = [b"\0%b\0" % name.encode("utf-8", "surrogatepass") for name in names if self._unmapped]
        # These first: what is mapped meanwhile is found below.
        for some in self._unmapped_parts() if needles else ():
            for needle in needles:
                yield {path: _UNKNOWN for path, held in some if needle in held and path.startswith(folder)}
        for name in names:
            yield self._mapped(name, folder)

    def _unmapped_parts(self) -> Iterator[list[tuple[str, bytes]]]:
        """Files whose names are not mapped yet, as of now, a part of them at a time."""
        unmapped = iter(list(self._unmapped.items()))
        while some := list(islice(unmapped, UNMAPPED_AT_ONCE)):
            yield some

    def _mapped(self, name: str, folder: str) -> Mapping[str, int]:
        counts = self._names.counts(name)
        if folder:
            counts = {path: count for path, count in counts.items() if path.startswith(folder)}
        # A name with a `/` is several parts of a name path.
        return dict.fromkeys(counts, _UNKNOWN) if "/" in name else counts
