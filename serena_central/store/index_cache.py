"""The symbol index's cache: one SQLite file per root. It is only a cache: what can't be read is thrown away.

Blocks; the index calls it in a worker thread, one at a time. Knows blobs, not symbols.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 3
"""Kept as the file's user_version; another one means that the file is dropped."""

BUSY_TIMEOUT_S = 2.0

_CREATE = """
CREATE TABLE file (
    path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode INTEGER,
    indexed_at_ns INTEGER, server TEXT, names BLOB, blob BLOB
)
"""


class CachedFile(NamedTuple):
    """One file as it was indexed. `path` is root-relative POSIX; `server` is name, version and settings digest."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    indexed_at_ns: int
    server: str
    names: bytes
    """Of its symbols, each once, between NULs, in UTF-8 (lone surrogates included). Of all files they are needed at
    once, a blob of few."""
    blob: bytes


class IndexCache:
    """The cache of one root below `folder` (Places.cache). Neither method raises: a cache that fails is empty."""

    def __init__(self, folder: Path, root: Path) -> None:
        name = hashlib.blake2b(str(root).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self.path = folder / f"{name}.index.db"

    def load(self) -> list[CachedFile]:
        """All files in it, in no order."""
        try:
            with closing(self._connect()) as connection:
                return [CachedFile._make(row) for row in connection.execute("SELECT * FROM file")]
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return []

    def save(self, upserts: Iterable[CachedFile], deletes: Iterable[str] = ()) -> bool:
        """Writes the changes in one transaction; False if they could not be written."""
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?,?)", upserts)
                connection.executemany("DELETE FROM file WHERE path = ?", ((path,) for path in deletes))
        except (sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
            self._give_up(error)
            return False
        return True

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self._remove()
            return self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
        try:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found != SCHEMA_VERSION:
                with connection:
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("DROP TABLE IF EXISTS file")
                    connection.execute(_CREATE)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_up(self, error: Exception) -> None:
        """A corrupt file is removed, so that the next use begins a new one; anything else may pass."""
        corrupt = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        logger.warning("the index cache %s %s: %s", self.path, "was dropped" if corrupt else "can't be used", error)
        if corrupt:
            self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
