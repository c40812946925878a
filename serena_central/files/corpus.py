"""Keeps the texts of searched files in memory, so that the next search reads only the files that changed since.

The texts stand in a few large chunks, each of which is searched as one text: a `find` over a chunk tells where in its
hundreds of files something stands, in a tenth of the time that opening them takes. A text counts for the stamp that its
file had when it was read, and only for that: whoever asks brings the stamps of now, from behind the tree's barrier.
Some writes are heard of late or never, through a memory map or another name of the file: so the stamps are compared
with the disk's once a second.
What is too large, was changed a moment ago, has several names on the disk or a wide encoding is not kept: each search
reads it.

A `Corpora` bounds all of them together, and drops those that nobody has searched for a while.
"""

import codecs
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.nofollow import open_file
from serena_central.core.periodic import repeat
from serena_central.files.stamp import RACY_NS, Stamp
from serena_central.files.text import WIDE_MARKS

MAX_BYTES = 85_000_000
"""Of all corpora together: Django has 46 MB. What does not fit is read by each search. With 128 MB of texts a server
that answers about 40,000 files took 440 MB."""

LEAST_SHARE = 0.6
"""Of what a search reads has to fit, else nothing of it is kept: a tenth of the Linux kernel would save a tenth of a
search's time, for all the memory that there is, and push out the texts of every other root."""

MAX_FILE_BYTES = 4_000_000
"""Larger files are data, and would push out hundreds of others."""

CHUNK_BYTES = 1_000_000
"""`bytes.find` keeps the interpreter's lock while it looks through one chunk: 0.3 ms."""

CHECK_S = 1.0
"""How long what is kept counts without a look at the disk: that takes 3 ms per 1,000 files, a tenth of reading them."""

IDLE_S = 600.0
"""Who searches does so again within some minutes, and all can be read again in a tenth of a second per 10,000 files."""

LEAST_WANTED = 0.5
"""Of a chunk's bytes have to be asked for, else those texts alone are searched."""


class Block(NamedTuple):
    """Texts one after the other, as `lines_of` makes them. `ends` are without the line feed that a text doesn't have
    itself. `wanted`: the numbers of those that are searched; None: all."""

    data: bytes
    starts: Sequence[int]
    ends: Sequence[int]
    paths: Sequence[str]
    wanted: Collection[int] | None = None

    @classmethod
    def of(cls, path: str, text: bytes) -> "Block":
        """One text, with or without a line feed at its end."""
        return cls(text if not text or text.endswith(b"\n") else text + b"\n", [0], [len(text)], [path])

    def singly(self, numbers: Collection[int] | None = None) -> "Iterator[Block]":
        """Each text that is searched in a block of its own; of `numbers` alone, if these are given."""
        wanted: Iterable[int] = range(len(self.paths)) if self.wanted is None else sorted(self.wanted)
        for number in wanted if numbers is None else filter(numbers.__contains__, wanted):
            start, end = self.starts[number], self.ends[number]
            if start < end:
                yield Block.of(self.paths[number], self.data[start:end])

    @property
    def text_count(self) -> int:
        """How many texts are searched."""
        return len(self.paths) if self.wanted is None else len(self.wanted)


def holds_needed(data: bytes, needed: Sequence[Sequence[bytes]], start: int = 0, end: int | None = None) -> bool:
    """Whether all texts of one of these alternatives stand in a stretch of bytes; with none it can't be told."""
    return not needed or any(all(data.find(one, start, end) >= 0 for one in texts) for texts in needed)


def lines_of(data: bytes) -> bytes:
    """What stands in a file in UTF-8, without a byte-order mark, with plain line ends."""
    data = data.removeprefix(codecs.BOM_UTF8)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


class _Chunk:
    def __init__(self) -> None:
        self.data = b""
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.paths: list[str] = []
        self.unused = 0
        """Bytes of texts that are not kept any more."""


class _Kept(msgspec.Struct, frozen=True, gc=False):
    """Nothing that the garbage collector would look at, of 40,000 files."""

    stamp: Stamp
    chunk: _Chunk
    place: int
    """Its number among the chunk's texts."""

    @property
    def size(self) -> int:
        return self.chunk.ends[self.place] - self.chunk.starts[self.place] + 1


class _Planned(NamedTuple):
    """The blocks of a search, for the next one that asks for the same files when nothing has changed."""

    paths: Sequence[str]
    stamps: Mapping[str, Stamp]
    blocks: list[Block]
    missing: list[str]


class Corpus:
    """The texts of one root. May be used in any thread."""

    def __init__(self, root: Path, make_room: Callable[["Corpus", int], int]) -> None:
        """`make_room(corpus, wanted)` tells how many bytes more it may keep."""
        self._folder = f"{root}/"
        self._make_room = make_room
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._chunks: list[_Chunk] = []
        self.size_bytes = 0
        self.last_used = time.monotonic()
        self._checked_at = self.last_used
        self._unheard: set[str] = set()
        self._planned: _Planned | None = None

    def blocks(
        self, paths: Sequence[str], stamps: Mapping[str, Stamp], go_on: Callable[[int], bool]
    ) -> tuple[list[Block], list[str]]:
        """The texts of the files that are kept, after those that are missing were read as `read` does, and the files
        that are not kept."""
        self._check_now_and_then()
        planned = self._planned
        # Mostly the same object: `==` would compare all stamps with themselves.
        if planned is not None and planned.paths == paths and (planned.stamps is stamps or planned.stamps == stamps):
            self.last_used = time.monotonic()
            return planned.blocks, planned.missing
        self.read(paths, stamps, go_on)
        places: dict[int, list[int]] = {}
        missing = list[str]()
        with self._lock:
            for path in paths:
                one = self._kept.get(path)
                if one is not None and one.stamp == stamps.get(path):
                    places.setdefault(id(one.chunk), []).append(one.place)
                else:
                    missing.append(path)
            blocks = [block for one in self._chunks if id(one) in places for block in _blocks(one, places[id(one)])]
            if blocks:
                self._planned = _Planned(paths, stamps, blocks, missing)
        return blocks, missing

    def read(self, paths: Iterable[str], stamps: Mapping[str, Stamp], go_on: Callable[[int], bool]) -> set[str]:
        """Reads and keeps those of the files that are not kept as of their stamps, as far as there is room; returns
        those that are kept then.

        `stamps` are those of all files of the root. `go_on` is told how many were read, and says whether to continue.
        """
        self.last_used = time.monotonic()
        self._check_now_and_then()
        kept = self._kept.get
        found, missing = set[str](), dict[str, Stamp]()
        for path in paths:
            stamp = stamps.get(path)
            if stamp is None:
                continue
            if (one := kept(path)) is not None and one.stamp == stamp:
                found.add(path)
            else:
                missing[path] = stamp
        if not missing:
            return found
        self._add(missing, stamps, go_on)
        return {path for path in (*found, *missing) if (one := kept(path)) is not None and one.stamp == stamps[path]}

    def unheard(self) -> set[str]:
        """Files that were found changed although nobody had heard of it; each is told once."""
        with self._lock:
            found, self._unheard = self._unheard, set()
            return found

    def clear(self) -> None:
        with self._lock:
            self._kept, self._chunks, self.size_bytes, self._planned = {}, [], 0, None

    def _check_now_and_then(self) -> None:
        if time.monotonic() - self._checked_at >= CHECK_S:
            self._check()

    def _check(self) -> None:
        """Forgets the files that are not as they were when they were read."""
        self._checked_at = time.monotonic()
        with self._lock:
            kept = list(self._kept.items())
            if self._planned is not None and self._planned.missing:
                self._planned = None  # some may have been too new to be kept, and are not any more
        changed: list[str] = []
        for path, one in kept:
            try:
                status = os.stat(self._folder + path, follow_symlinks=False)  # noqa: PTH116 - a third of the time
            except OSError:
                continue  # of what is gone the tree hears
            stamp = one.stamp
            if status.st_ctime_ns != stamp.ctime_ns or status.st_size != stamp.size or status.st_ino != stamp.inode:
                changed.append(path)
        self._drop(changed)

    def _drop(self, changed: Collection[str]) -> None:
        if changed:
            with self._lock:
                self._unheard.update(changed)
                for path in changed:
                    self._forget(path)

    def _add(self, missing: Mapping[str, Stamp], stamps: Mapping[str, Stamp], go_on: Callable[[int], bool]) -> None:
        wanted = sum(stamp.size for stamp in missing.values() if stamp.size <= MAX_FILE_BYTES)
        room = self._make_room(self, wanted)
        if room < wanted:
            with self._lock:
                for path in [path for path, one in self._kept.items() if stamps.get(path) != one.stamp]:
                    self._forget(path)
            room = self._make_room(self, wanted)
        if not room:
            return
        parts: list[tuple[str, Stamp, bytes]] = []
        size = 0
        for number, (path, stamp) in enumerate(missing.items()):
            if not go_on(number):
                break
            if stamp.size > min(MAX_FILE_BYTES, room - size):
                continue
            try:
                data = _read(self._folder + path, stamp)
            except _SeveralNames:
                self._drop([other for other, one in self._kept.items() if one.stamp.inode == stamp.inode])
                continue
            if data is None:
                continue
            parts.append((path, stamp, data))
            size += len(data) + 1
            if size >= CHUNK_BYTES:
                self._keep(parts)
                room -= size
                parts, size = [], 0
        self._keep(parts)

    def _keep(self, parts: Collection[tuple[str, Stamp, bytes]]) -> None:
        if not parts:
            return
        with self._lock:
            self._planned = None
            for path, _, _ in parts:
                self._forget(path)
            # A small chunk grows until it is a full one: a file that is edited and searched in turn makes no new ones.
            if not self._chunks or len(self._chunks[-1].data) >= CHUNK_BYTES:
                self._chunks.append(_Chunk())
            chunk = self._chunks[-1]
            start, pieces = len(chunk.data), [chunk.data]
            for path, stamp, data in parts:
                self._kept[path] = _Kept(stamp, chunk, len(chunk.paths))
                chunk.paths.append(path)
                chunk.starts.append(start)
                chunk.ends.append(start + len(data))
                pieces.append(data)
                start += len(data)
                if data and not data.endswith(b"\n"):
                    pieces.append(b"\n")
                    start += 1
            self.size_bytes += start - len(chunk.data)
            chunk.data = b"".join(pieces)

    def _forget(self, path: str) -> None:
        """With the whole chunk, where most of it is not used: its other files are read again."""
        gone = self._kept.pop(path, None)
        if gone is None:
            return
        self._planned = None
        chunk = gone.chunk
        chunk.unused += gone.size
        if chunk.unused * 2 > len(chunk.data):
            self._chunks.remove(chunk)
            self.size_bytes -= len(chunk.data)
            for other in chunk.paths:
                if (one := self._kept.get(other)) is not None and one.chunk is chunk:
                    del self._kept[other]


class Corpora:
    """Hands out the corpora of all roots and bounds them together. May be used in any thread."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._corpora: dict[Path, Corpus] = {}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Drops idle ones until it is cancelled."""
        task_status.started()
        await repeat("dropping idle corpora", self.drop_idle, every_s=IDLE_S / 10)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in list(self._corpora.values()))

    @property
    def idle_s(self) -> float:
        """Since the last search in any of them."""
        used = [one.last_used for one in list(self._corpora.values())]
        return time.monotonic() - max(used) if used else 0.0

    def of(self, root: Path) -> Corpus:
        with self._lock:
            return self._corpora.setdefault(root, Corpus(root, self._make_room))

    def drop_idle(self, idle_s: float = IDLE_S) -> None:
        with self._lock:
            idle = [root for root, one in self._corpora.items() if time.monotonic() - one.last_used >= idle_s]
            for root in idle:
                self._corpora.pop(root).clear()

    def drop(self) -> None:
        """Frees all of them: the next search reads its files again."""
        self.drop_idle(0.0)

    def _make_room(self, corpus: Corpus, wanted: int) -> int:
        """Drops what was not searched for the longest time until as much as wanted fits, but never `corpus` itself. 0
        where too little of it can fit."""
        with self._lock:
            if self._max_bytes - corpus.size_bytes < LEAST_SHARE * wanted:
                return 0
            room = self._max_bytes - self.size_bytes
            others = (root for root, one in self._corpora.items() if one is not corpus)
            for root in sorted(others, key=lambda root: self._corpora[root].last_used):
                if room >= wanted:
                    break
                other = self._corpora.pop(root)
                room += other.size_bytes
                other.clear()
            return room


class _SeveralNames(Exception):
    """A file may be written by a name that nobody listens to."""


def _read(path: str, stamp: Stamp) -> bytes | None:
    """The text of a file, which had this stamp before and after; empty for a binary one, None for one that is not kept.

    Raises:
        _SeveralNames
    """
    try:
        descriptor = open_file(path)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if status.st_nlink != 1 and stat.S_ISREG(status.st_mode):
            raise _SeveralNames
        if not stat.S_ISREG(status.st_mode) or Stamp.of(status) != stamp:
            return None
        data = os.read(descriptor, stamp.size + 1)
        changed = max(stamp.mtime_ns, stamp.ctime_ns)
        if Stamp.of(os.fstat(descriptor)) != stamp or len(data) != stamp.size or time.time_ns() - changed <= RACY_NS:
            return None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if data.startswith(WIDE_MARKS):
        return None
    return b"" if b"\0" in data else lines_of(data)


def _blocks(chunk: _Chunk, places: Sequence[int]) -> list[Block]:
    """Those texts of a chunk, of which others are searched with them where they are few."""
    starts, ends, paths = chunk.starts.copy(), chunk.ends.copy(), chunk.paths.copy()
    wanted = None if len(places) == len(paths) else frozenset(places)
    block = Block(chunk.data, starts, ends, paths, wanted)
    if wanted is None or sum(ends[place] - starts[place] for place in places) >= LEAST_WANTED * len(chunk.data):
        return [block]
    return list(block.singly())
