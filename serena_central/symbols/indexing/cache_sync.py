"""Synchronizes an index with its cache file: loads what is still true when a project opens, and writes what changed.

What a cached entry has to agree with, and when to write, is decided above.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.pacing import Pace
from serena_central.files.stamp import RACY_NS, Stamp
from serena_central.store.index_cache import CachedFile, IndexCache
from serena_central.symbols.columns import is_whole
from serena_central.symbols.index import Entry, SymbolIndex, names_in, packed


class _Alike(NamedTuple):
    """Files of one place that one source knew when they were cached; `source` is that source today."""

    source: str | None
    restored: list[str]


class CacheSync:
    """Belongs to the event loop's thread; the cache file is read and written in others. Without a cache it does
    nothing."""

    def __init__(self, index: SymbolIndex, cache: IndexCache | None) -> None:
        self._index = index
        self._cache = cache
        self.unsaved: set[str] = set()
        """Files that the cache knows otherwise, or not at all: whoever changes the index adds them."""
        self._saved_at = time.monotonic()
        self._one_at_a_time = anyio.Lock()

    @property
    def seconds_since_save(self) -> float:
        """Since the last save began, or since the index was opened."""
        return time.monotonic() - self._saved_at

    async def restore(
        self,
        stamps: Mapping[str, Stamp],
        place: Callable[[str], Hashable],
        identity: Callable[[str, str], str | None],
        restored: Callable[[str, Sequence[str]], None],
    ) -> None:
        """Puts into the index what is as it was, and tells `restored` a source and files of one place that it knows.
        `stamps` are the files as they are; `identity` tells for a path and a cached source what that source would be
        today, which is the same for all files of one `place`."""
        cached = await anyio.to_thread.run_sync(self._load)
        pace, groups = Pace(), dict[tuple[Hashable, str], _Alike]()
        due = pace.due
        for path, stamp in list(stamps.items()):
            if time.perf_counter() >= due:
                _tell(groups, restored)
                groups = {}  # others have a turn, in which anything may change
                await pace.turn()
                due = pace.due
            file = cached.pop(path, None)
            if file is None:
                continue
            key = place(path), file.server
            alike = groups.get(key)
            if alike is None:
                alike = groups[key] = _Alike(identity(path, file.server), [])
            source, paths = alike
            if source is not None and source == file.server and stamps.get(path) is stamp and _is_true(file, stamp):
                # The tree's own path and stamp, the source's own name: one each for all that know them.
                entry = Entry(stamp, file.indexed_at_ns, source, file.compressed, bool(file.cut))
                self._index.restore(path, entry, file.names)
                paths.append(path)
            else:
                self.unsaved.add(path)
        _tell(groups, restored)
        self.unsaved.update(cached)

    def _load(self) -> dict[str, CachedFile]:
        return {file.path: file for file in self._cache.load()} if self._cache else {}

    async def save(self) -> None:
        """Writes what changed since the last time. What a cancelled save has not written stays unsaved."""
        self._saved_at = time.monotonic()
        if self._cache is None or not self.unsaved:
            return
        paths, self.unsaved = self.unsaved, set()
        entries = [(path, entry) for path in paths if (entry := self._index.entry(path)) is not None]
        deletes = [path for path in paths if path not in self._index]
        # Names are read out of the entries in the thread, while the batch is written.
        try:
            async with self._one_at_a_time:
                await anyio.to_thread.run_sync(self._cache.save, starmap(_to_save, entries), deletes)
        except BaseException:
            self.unsaved |= paths
            raise


def _tell(groups: Mapping[tuple[Hashable, str], _Alike], restored: Callable[[str, Sequence[str]], None]) -> None:
    for source, paths in groups.values():
        if source is not None and paths:
            restored(source, paths)


def _is_true(file: CachedFile, stamp: Stamp) -> bool:
    if file.indexed_at_ns - max(stamp.mtime_ns, stamp.ctime_ns) < RACY_NS:
        return False
    # Not a stamp of it: a restart compares 100,000.
    return (
        file.ctime_ns == stamp.ctime_ns
        and file.mtime_ns == stamp.mtime_ns
        and file.size == stamp.size
        and file.inode == stamp.inode
        and is_whole(file.compressed)
    )


def _to_save(path: str, entry: Entry) -> CachedFile:
    stamp, names = entry.stamp, packed(names_in(entry))
    return CachedFile(
        path,
        stamp.size,
        stamp.mtime_ns,
        stamp.ctime_ns,
        stamp.inode,
        entry.indexed_at_ns,
        entry.source,
        entry.cut,
        names,
        entry.compressed,
    )
