"""Keeps an index in its cache file: takes over what is still true when a project opens, and writes what changed.

What a cached entry has to agree with, the indexer says; when to write is its business, too.
"""

from collections.abc import AsyncGenerator, Callable, Mapping

import anyio
import anyio.lowlevel
import anyio.to_thread

from serena_central.files.stamp import Stamp
from serena_central.store.index_cache import CachedFile, IndexCache
from serena_central.symbols.index import Entry, SymbolIndex

RACY_NS = 2_000_000_000
"""A cached entry made this soon after its file's last change is asked again: the coarsest file-system clock has 2 s,
and a second change within it would leave the same stamp."""

FILES_AT_ONCE = 500
"""Taken over before others get their turn: some 10 ms."""


class IndexKeeper:
    """Belongs to the event loop's thread; the cache file is read and written in others. Without a cache it does
    nothing."""

    def __init__(self, index: SymbolIndex, cache: IndexCache | None) -> None:
        self._index = index
        self._cache = cache
        self._unsaved: set[str] = set()

    @property
    def unsaved(self) -> int:
        """Files that the cache knows otherwise, or not at all."""
        return len(self._unsaved)

    def changed(self, path: str) -> None:
        self._unsaved.add(path)

    async def restore(
        self, stamps: Mapping[str, Stamp], identity: Callable[[str, str], str | None]
    ) -> AsyncGenerator[CachedFile]:
        """Puts into the index what is as it was, and yields it. `stamps` are the files as they are; `identity` tells
        for a path and a cached source what that source would be today."""
        cached = await anyio.to_thread.run_sync(self._cache.load) if self._cache else []
        for number, file in enumerate(cached):
            if number % FILES_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
            if self._is_true(file, stamps, identity):
                # The tree's own stamp: one for both.
                entry = Entry(stamps[file.path], file.indexed_at_ns, file.server, file.blob)
                names = file.names.decode("utf-8", "surrogatepass")
                self._index.restore(file.path, entry, names.split("\0") if names else ())
                yield file
            else:
                self.changed(file.path)

    def _is_true(
        self, file: CachedFile, stamps: Mapping[str, Stamp], identity: Callable[[str, str], str | None]
    ) -> bool:
        stamp = Stamp(file.size, file.mtime_ns, file.ctime_ns, file.inode)
        racy = file.indexed_at_ns - max(stamp.mtime_ns, stamp.ctime_ns) < RACY_NS
        return stamps.get(file.path) == stamp and not racy and file.server == identity(file.path, file.server)

    async def save(self) -> None:
        """Writes what changed since the last time."""
        if self._cache is None or not self._unsaved:
            return
        paths, self._unsaved = self._unsaved, set()
        entries = [self._to_save(path, entry) for path in paths if (entry := self._index.entry(path)) is not None]
        deletes = [path for path in paths if path not in self._index]
        await anyio.to_thread.run_sync(self._cache.save, entries, deletes)

    def _to_save(self, path: str, entry: Entry) -> CachedFile:
        names = "\0".join(self._index.names_of(path)).encode("utf-8", "surrogatepass")
        return CachedFile(path, *entry.stamp, entry.indexed_at_ns, entry.source, names, entry.blob)
