"""Finds the files of a root that may contain a word, by a Bloom filter over each file's words.

A file is read once for each stamp that it has, the first time somebody asks; where there is too much to read, files
are searched for the word instead. A filter takes some 200 bytes, asking
thousands of them half a millisecond; about one file in a hundred is named although it lacks the word, and none that has
it is left out. Belongs to the event loop's thread, and reads in another one.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from unicodedata import is_normalized, normalize

import anyio
import anyio.to_thread

from serena_central.core.pacing import paced
from serena_central.files.containing import find_containing
from serena_central.files.open_words import open_words, when_begun, when_ended
from serena_central.files.stamp import RACY_NS, Stamp
from serena_central.files.text import encodings_of, in_utf8, read_quickly
from serena_central.files.words import behind_digits, pieces, split

BITS_PER_WORD = 10
"""With two bits set for each word, a filter is wrong about one word in thirty at most, and in a hundred on average."""

FEWEST_BITS = 256

READ_BYTES = 100_000_000
"""Of files without a filter: filters of more take ten times as long as a search for one word, and a gigabyte of code
would need 100 MB of them."""

GONE_KEPT = 1000
"""Filters of files that are gone, at most: 200 KB."""

BATCH = 200
"""Files read in one turn of a thread: a tenth of a second, after which a cancelled call ends."""

_SIZES = range(5, 32)
"""Filters have 2 to the power of one of these bytes."""

AT_ONCE = 2000
"""Files that are asked before others have their turn: a millisecond."""

_ASCII = bytes(range(128))

_SPELLED = re.compile(r"(?<![0-9A-Za-z_])[0-9A-Za-z_]*[^\x00-\x7f][^\x00-/:-@\[-^`{-\x7f]*")
"""What may be a name with characters beyond ASCII. It begins where a word does: a long one in ASCII (a megabyte of
hexadecimal digits) would be searched from each of its characters, to its end."""

MOST_RESPELLED = 1000
"""Names of one file that it spells otherwise; one with more may have any."""

_ANY = frozenset(("",))

_PYTHON = (".py", ".pyi", ".pyw")
"""Endings of files in which libraries join names by `__` (`author__name`): each part counts as a word behind one. Names
that are spelled otherwise mean the same in no others."""

_ONE = ord("1")

_UNREAD: tuple[None, bytes] = None, b""
_UNREADABLE: tuple[bytes, frozenset[str]] = b"", frozenset()


class Vocabulary:
    """Of the files of one root."""

    def __init__(self, root: Path, encoding: str | None, *, composes: Callable[[str], bool] = lambda _: True) -> None:
        """`composes` tells of which files `composing` may be asked: elsewhere such words are not looked for."""
        self._root = root
        self._composes = composes
        self._encoding = encoding
        self._filters: dict[str, tuple[Stamp, bytes]] = {}
        self._respelled: dict[str, frozenset[str]] = {}
        """File → names in normal form that it spells otherwise: hardly any file has one."""
        self._reading = anyio.Lock()

    async def holding(self, files: Mapping[str, Stamp], paths: Iterable[str], name: str) -> list[str]:
        """Those of `paths` that may hold all words of `name`, in their order. `files` has their current stamps.

        A name without a word in it (an operator) stands, as far as can be told here, in all of them.
        """
        if len(self._filters) > len(files) + GONE_KEPT:
            self._filters = {path: known for path, known in self._filters.items() if path in files}
            self._respelled = {path: names for path, names in self._respelled.items() if path in files}
        asked = [path for path in paths if path in files]
        unread = await self._unread(files, asked)
        if _size(unread) > READ_BYTES:
            return (await find_containing(self._root, asked, name, encoding=self._encoding)).files
        await self._read(unread)
        forms = [[hash(word) for word in _words(form)] for form in encodings_of(name, self._encoding)]
        found = [await self._with(asked, words) for words in forms]
        if len(found) == 1:
            return found[0]
        either = {path for some in found for path in some}
        return [path for path in asked if path in either]

    async def joining(self, files: Mapping[str, Stamp], paths: Iterable[str], name: str) -> list[str]:
        """Those of `paths`, all of Python, that may hold a word of which `name` is one of several parts, joined by
        `__`."""
        asked = [path for path in paths if path in files and path.endswith(_PYTHON)]
        if _size(await self._unread(files, asked)) > READ_BYTES:
            return (await find_containing(self._root, asked, name, whole=False, encoding=self._encoding)).files
        return await self.holding(files, asked, f"__{name}")

    async def composing(
        self, files: Mapping[str, Stamp], paths: Iterable[str], *, beginnings: Iterable[str], ends: Iterable[str]
    ) -> list[str]:
        """Those of `paths` that may have a string which leaves one of some beginnings or ends of words open; none where
        there is too much to read: each of them would be searched for."""
        asked = [path for path in paths if path in files]
        unread = await self._unread(files, asked)
        if _size(unread) > READ_BYTES:
            return []
        await self._read(unread)
        words = [*map(when_begun, beginnings), *map(when_ended, ends)]
        found = {path for word in words for path in await self._with(asked, [hash(word.encode())])}
        return [path for path in asked if path in found]

    async def may_be_respelled(self, files: Mapping[str, Stamp], paths: Sequence[str], name: str) -> bool:
        """Whether some of `paths`, which `holding` was asked about, may hold a name in other characters that Python
        takes for the same (NFKC: `ﬁ` is `fi`), which no search for the name finds."""
        if not is_normalized("NFKC", name):
            return True
        if any((name in names or names is _ANY) and path in files for path, names in self._respelled.items()):
            return True
        return _size(await self._unread(files, paths)) > READ_BYTES

    def knows(self, path: str, stamp: Stamp) -> bool:
        """Whether it knows the words of a file as of a stamp: one that was old enough, so that no other text has it."""
        known = self._filters.get(path)
        return known is not None and known[0] == stamp

    async def _unread(self, files: Mapping[str, Stamp], paths: Sequence[str]) -> dict[str, Stamp]:
        """Those of `paths` without a filter for their stamp. Thousands of files: not a call of `knows` for each."""
        unread: dict[str, Stamp] = {}
        async for some in paced(_pieces(paths)):
            known, now = self._filters.get, files.get
            stamps = ((path, now(path)) for path in some)  # some may be gone meanwhile
            unread |= {
                path: stamp for path, stamp in stamps if stamp is not None and (known(path) or _UNREAD)[0] != stamp
            }
        return unread

    async def _with(self, paths: Sequence[str], words: Iterable[int]) -> list[str]:
        """Those of `paths` that may hold all words, given by their hashes."""
        found: list[str] = []
        async for some in paced(_pieces(paths)):
            kept = some
            for word in words:
                kept = _with_word(self._filters, kept, word)
            found += kept
        return found

    async def _read(self, stamps: Mapping[str, Stamp]) -> None:
        if not stamps:
            return
        async with self._reading:
            missing = [path for path, stamp in stamps.items() if not self.knows(path, stamp)]
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                composing, is_utf8 = set(filter(self._composes, batch)), self._encoding is None
                filters_of = partial(_filters_of, self._root, batch, composing, in_utf8_alone=is_utf8)
                read = await anyio.to_thread.run_sync(filters_of)
                young = time.time_ns() - RACY_NS
                for path in batch:
                    stamp = stamps[path]
                    known, respelled = read.get(path, _UNREADABLE)
                    self._respelled.pop(path, None)
                    if respelled:
                        self._respelled[path] = respelled
                    if known and max(stamp.mtime_ns, stamp.ctime_ns) < young:
                        self._filters[path] = stamp, known
                    else:
                        self._filters.pop(path, None)


def _size(stamps: Mapping[str, Stamp]) -> int:
    return sum(stamp.size for stamp in stamps.values())


def _pieces(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + AT_ONCE] for start in range(0, len(paths), AT_ONCE))


def _with_word(filters: Mapping[str, tuple[Stamp, bytes]], paths: Iterable[str], word: int) -> list[str]:
    """Those of `paths` whose filters let a word's hash through, or that have none: they changed meanwhile, or can't be
    read, which whoever looks closer will see."""
    kept: list[str] = []
    places = {1 << power: _bits_of(word, 1 << power) for power in _SIZES}
    for path in paths:
        if (known := filters.get(path)) is not None:
            bits = known[1]
            first, one, second, other = places[len(bits)]
            if not (bits[first] & one and bits[second] & other):
                continue
        kept.append(path)
    return kept


def _bits_of(word: int, size: int) -> tuple[int, int, int, int]:
    """The two bits of a word in a filter of `size` bytes: byte and mask of the first, byte and mask of the second."""
    mask = (size << 3) - 1
    first, second = word & mask, (word >> 24) & mask
    return first >> 3, 1 << (first & 7), second >> 3, 1 << (second & 7)


def _filters_of(
    root: Path, paths: Iterable[str], composing: Collection[str], *, in_utf8_alone: bool
) -> dict[str, tuple[bytes, frozenset[str]]]:
    """The filters of files that can be read, and the names that these respell."""
    folder = f"{root}/"
    found: dict[str, tuple[bytes, frozenset[str]]] = {}
    for path in paths:
        read = read_quickly(folder + path)
        data = None if read is None else in_utf8(read, path)
        if data is not None:
            is_python = path.endswith(_PYTHON)
            is_binary = in_utf8_alone and b"\0" in data  # no reading of a text takes it
            words = set[bytes]() if is_binary else _words(data)
            if is_python:
                words |= {b"__" + part for word in words if b"__" in word for part in word.split(b"__")}
            if words and path in composing:
                words |= open_words(data)
            found[path] = _filter_of(words), _respelled_in(data) if is_python else frozenset()
    return found


def _respelled_in(data: bytes) -> frozenset[str]:
    """Names in normal form that a text spells otherwise."""
    if data.isascii() or is_normalized("NFKC", text := data.decode(errors="replace")):
        return frozenset()
    spelled = {word: normalize("NFKC", word) for word in _SPELLED.findall(text)}
    found = frozenset(name for word, name in spelled.items() if name != word and name.isidentifier())
    return found if len(found) <= MOST_RESPELLED else _ANY


def _words(data: bytes) -> set[bytes]:
    """All that a search for whole words could find is made of these, whatever stands beside it. Each character beyond
    ASCII counts alone: it may be a quotation mark or a byte-order mark beside a name."""
    words, beyond, is_ascii = set[bytes](), set[str](), data.isascii()
    for start, end in pieces(data):
        piece = data[start:end]
        words.update(split(piece, beyond_ascii=False))
        if not is_ascii:
            beyond.update(piece.translate(None, _ASCII).decode(errors="ignore"))
    words.update(one.encode() for one in beyond)
    led = behind_digits(words)
    words = {word for word in words if word > b":"}
    words.update(filter(None, led))
    return words


def _filter_of(words: Collection[bytes]) -> bytes:
    size = max(FEWEST_BITS, 1 << (len(words) * BITS_PER_WORD).bit_length())
    mask = size - 1
    bits = bytearray(b"0") * size  # as digits, the last of which is the first bit: two thirds of the time
    for word in map(hash, words):
        bits[~(word & mask)] = bits[~((word >> 24) & mask)] = _ONE
    return int(bits, 2).to_bytes(size >> 3, "little")
