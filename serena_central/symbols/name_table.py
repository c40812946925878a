"""NameTable: which files define a name, and how often, for millions of names, in twelve bytes for each file of each.

A hash table of records, a name's hash and a file's number and count, in buckets that are searched as bytes. It grows by
a bucket at a time (linear hashing), so that no addition takes long. Names whose 64-bit hashes are equal count as one:
two of a million are in one index of thirty million.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

NAMES_PER_TEXT = 20_000
"""Joined at once: a millisecond. Names that are not joined yet are looked through one by one."""

_END = "\0"


class NameText:
    """Names are added and never removed: callers know which still exist. In the event loop's thread."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._new: list[str] = []

    def __len__(self) -> int:
        """Names that were added, some perhaps several times."""
        return len(self._texts) * NAMES_PER_TEXT + len(self._new)

    def add(self, names: Iterable[str]) -> None:
        self._new.extend(names)
        while len(self._new) >= NAMES_PER_TEXT:
            self._texts.append(_END.join([*self._new[:NAMES_PER_TEXT], ""]))
            del self._new[:NAMES_PER_TEXT]

    def __iter__(self) -> Iterator[str]:
        """Names in the order in which they came."""
        for text in self._texts:
            yield from text.split(_END)[:-1]
        yield from self._new

    def containing(self, part: str) -> Iterator[str]:
        """Names that a part occurs in, of those that were there when it began; some perhaps several times."""
        if _END in part:
            return
        texts, new = list(self._texts), list(self._new)
        for text in texts:
            at = text.find(part)
            while at >= 0:
                start, end = text.rfind(_END, 0, at) + 1, text.find(_END, at)
                yield text[start:end]
                at = text.find(part, end)
        yield from (name for name in new if part in name)


_HASH = struct.Struct("<q")
_FILE = struct.Struct("<I")
_BOTH = struct.Struct("<qI")
_RECORD = _BOTH.size

_FILE_BITS = 23
"""Of a record's last four bytes: 8 million files. The rest is the count."""

MANY = (1 << (32 - _FILE_BITS)) - 1
"""The largest count that is kept: so many or more."""

PER_BUCKET = 64
"""Records of a bucket on average: a search through them takes a fraction of a microsecond."""

ADDED_AT_ONCE = 256
"""Names: generated code has files of 175,000."""


class NameTable:
    """Belongs to one thread. What it holds is nothing that the garbage collector looks at, but for the buckets."""

    def __init__(self) -> None:
        self._buckets = [bytearray()]
        self._round: int = 1
        """Buckets when this round of splits began, a power of two."""
        self._split = 0
        """The bucket that is split next."""
        self._records = 0
        self._names = 0
        self._paths: list[str] = []
        """By the files' numbers; "" for a number that is free."""
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        """Names that some file defines."""
        return self._names

    def __contains__(self, name: str) -> bool:
        number = hash(name)
        return _next(self._buckets[self._place(number)], _HASH.pack(number)) >= 0

    def add(self, path: str, names: Mapping[str, int]) -> list[str]:
        """Takes note of how often a file defines these names, which it is not known to define yet; returns those that
        no other file does."""
        file, new, counts = self._number(path), list[str](), iter(names.items())
        while some := list(islice(counts, ADDED_AT_ONCE)):
            self._add(file, some, new)
        return new

    def _add(self, file: int, names: list[tuple[str, int]], new: list[str]) -> None:
        """Adds names of a file, so few that no bucket becomes long before the table grows."""
        # Millions of names at a restart: everything here counts.
        buckets, split, low, high = self._buckets, self._split, self._round - 1, 2 * self._round - 1
        pack, known, once = _HASH.pack, len(new), _file(file, 1)
        for name, count in names:
            number = hash(name)
            key = pack(number)
            place = number & low
            bucket = buckets[place if place >= split else number & high]
            at = bucket.find(key)
            if at < 0 or (at % _RECORD and _next(bucket, key, at + 1) < 0):
                new.append(name)
            bucket += key + (once if count == 1 else _file(file, count))
        self._records += len(names)
        self._names += len(new) - known
        while self._records > PER_BUCKET * len(buckets):
            self._grow()

    def replace(self, path: str, before: Mapping[str, int], names: Mapping[str, int]) -> list[str]:
        """As `drop` and `add`, but that names which stay are left as they are: nearly all, mostly."""
        gone = {name: count for name, count in before.items() if names.get(name) != count}
        self._drop(self._numbers[path], gone)
        return self.add(path, {name: count for name, count in names.items() if before.get(name) != count})

    def drop(self, path: str, names: Mapping[str, int]) -> None:
        """Forgets a file that was added with these names, as often."""
        number = self._numbers.pop(path)
        self._paths[number] = ""
        self._free.append(number)
        self._drop(number, names)

    def _drop(self, number: int, names: Mapping[str, int]) -> None:
        for name, count in names.items():
            key = _HASH.pack(hash(name))
            bucket = self._buckets[self._place(hash(name))]
            at = _next(bucket, key + _file(number, count))
            if at < 0:
                continue  # it was added without this name
            bucket[at : at + _RECORD] = bucket[-_RECORD:]
            del bucket[-_RECORD:]
            self._records -= 1
            self._names -= _next(bucket, key) < 0

    def files(self, name: str) -> Iterator[str]:
        """Paths of the files that define a name."""
        return iter(self.counts(name))

    def counts(self, name: str) -> dict[str, int]:
        """Paths of the files that have a name → how many symbols of it each has, at most `MANY`."""
        wanted, paths, numbers = hash(name), self._paths, (1 << _FILE_BITS) - 1
        bucket = self._buckets[self._place(wanted)]
        at = _next(bucket, _HASH.pack(wanted))
        records = _BOTH.iter_unpack(bucket[at:]) if at >= 0 else ()
        return {paths[file & numbers]: file >> _FILE_BITS for number, file in records if number == wanted}

    def _number(self, path: str) -> int:
        if (known := self._numbers.get(path)) is not None:
            return known
        if self._free:
            number = self._free.pop()
            self._paths[number] = path
        else:
            number = len(self._paths)
            self._paths.append(path)
        self._numbers[path] = number
        return number

    def _place(self, number: int) -> int:
        place = number & (self._round - 1)
        return place if place >= self._split else number & (2 * self._round - 1)

    def _grow(self) -> None:
        """Divides the records of one bucket between it and a new one, by the next bit of their hashes."""
        old, kept, moved = self._buckets[self._split], bytearray(), bytearray()
        for at in range(0, len(old), _RECORD):
            (number,) = _HASH.unpack_from(old, at)
            (moved if number & self._round else kept).extend(old[at : at + _RECORD])
        self._buckets[self._split] = kept
        self._buckets.append(moved)
        self._split += 1
        if self._split == self._round:
            self._round, self._split = 2 * self._round, 0


def _file(number: int, count: int) -> bytes:
    return _FILE.pack(number | min(count, MANY) << _FILE_BITS)


def _next(bucket: bytearray, key: bytes, start: int = 0) -> int:
    """Where the next record begins that begins so, -1 if none does."""
    at = bucket.find(key, start)
    while at >= 0 and at % _RECORD:
        at = bucket.find(key, at + 1)
    return at
