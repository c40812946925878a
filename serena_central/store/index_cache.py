"""The symbol index's cache: one SQLite file per root. It is only a cache: what can't be read is thrown away.

Blocks; the index calls it in a worker thread, one at a time. Knows bytes, not symbols.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from serena_central.store.cache_file import FAILURES, CacheFile, name_of

SCHEMA_VERSION = 14

_CREATE = """
CREATE TABLE file (
    path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode INTEGER,
    indexed_at_ns INTEGER, server TEXT, cut INTEGER, names BLOB, compressed BLOB
)
"""


class CachedFile(msgspec.Struct, frozen=True, gc=False):
    """One file as it was indexed. `path` is root-relative POSIX; `server` is name, version and settings digest. Nothing
    that the garbage collector would look at, of 100,000 at a time."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    indexed_at_ns: int
    server: str
    cut: bool
    """SQLite returns it as an integer."""
    names: bytes
    """By which it is found, each once, between NULs, in UTF-8 (lone surrogates included). Of all files they are needed
    at once, symbols of few."""
    compressed: bytes
    """Its symbols."""


class IndexCache:
    """The cache of one root below `folder` (Places.cache). Neither method raises: a cache that fails is empty."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._file = CacheFile(
            folder / f"{name_of(root)}.index.db", table="file", create=_CREATE, version=SCHEMA_VERSION
        )

    @property
    def path(self) -> Path:
        return self._file.path

    def load(self) -> list[CachedFile]:
        """All files in it, in no order."""
        try:
            with self._file.connection() as connection:
                return [CachedFile(*row) for row in connection.execute("SELECT * FROM file")]
        except FAILURES as error:
            self._file.give_up(error)
            return []

    def save(self, upserts: Iterable[CachedFile], deletes: Iterable[str] = ()) -> bool:
        """Writes the changes in one transaction; False if they could not be written."""
        try:
            with self._file.connection() as connection:
                connection.executemany("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?,?,?)", map(_row, upserts))
                connection.executemany("DELETE FROM file WHERE path = ?", ((path,) for path in deletes))
        except FAILURES as error:
            self._file.give_up(error)
            return False
        return True


def _row(file: CachedFile) -> tuple[Any, ...]:
    return msgspec.structs.astuple(file)
