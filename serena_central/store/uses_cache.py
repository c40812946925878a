"""The caches of what language servers said about uses: answers about single symbols, and what was made of them.

One SQLite file per root and kind. Blocks: for worker threads. Knows blobs and digests, neither symbols nor what a
digest covers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from serena_central.store.cache_file import FAILURES, CacheFile, name_of

SCHEMA_VERSION = 2

_CREATE = """
CREATE TABLE uses (
    path TEXT, name_path TEXT, digest BLOB, fingerprint BLOB, blob BLOB, PRIMARY KEY (path, name_path)
) WITHOUT ROWID
"""


class CachedUses(NamedTuple):
    """The uses of one symbol. `digest` covers what the answer depends on, `fingerprint` all files when it was asked."""

    path: str
    name_path: str
    digest: bytes
    fingerprint: bytes
    blob: bytes


class UsesCache:
    """The cache of one root below `folder` (Places.cache). Neither method raises: a cache that fails is empty."""

    def __init__(self, folder: Path, root: Path) -> None:
        path = folder / f"{name_of(root)}.uses.db"
        self._file = CacheFile(path, table="uses", create=_CREATE, version=SCHEMA_VERSION)

    def load(self) -> list[CachedUses]:
        """All rows, in no order."""
        try:
            with self._file.connection() as connection:
                return [CachedUses._make(row) for row in connection.execute("SELECT * FROM uses")]
        except FAILURES as error:
            self._file.give_up(error)
            return []

    def save(self, rows: Iterable[CachedUses], gone: Iterable[str] = ()) -> bool:
        """Writes rows in place of older ones, and drops those of the paths that are `gone`; False if it failed."""
        try:
            with self._file.connection() as connection:
                connection.executemany("DELETE FROM uses WHERE path = ?", ((path,) for path in gone))
                connection.executemany("INSERT OR REPLACE INTO uses VALUES (?,?,?,?,?)", rows)
        except FAILURES as error:
            self._file.give_up(error)
            return False
        return True


_CREATE_FINISHED = "CREATE TABLE finished (question TEXT PRIMARY KEY, digest BLOB, blob BLOB)"
_DROP_OLDER = "DELETE FROM finished WHERE rowid NOT IN (SELECT rowid FROM finished ORDER BY rowid DESC LIMIT ?)"

FINISHED_KEPT = 16
"""Finished collections of one root that are kept, the newest: each holds all uses of its part, megabytes for a large
project."""


class FinishedCache:
    """Finished collections of one root, by question. Neither method raises: a cache that fails is empty."""

    def __init__(self, folder: Path, root: Path) -> None:
        path = folder / f"{name_of(root)}.finished.db"
        self._file = CacheFile(path, table="finished", create=_CREATE_FINISHED, version=SCHEMA_VERSION)

    def load(self, question: str, digest: bytes) -> bytes | None:
        """What was found, if it depended on what has this digest."""
        try:
            with self._file.connection() as connection:
                query = "SELECT blob FROM finished WHERE question = ? AND digest = ?"
                row = connection.execute(query, (question, digest)).fetchone()
                return row[0] if row else None
        except FAILURES as error:
            self._file.give_up(error)
            return None

    def save(self, question: str, digest: bytes, blob: bytes) -> None:
        try:
            with self._file.connection() as connection:
                connection.execute("INSERT OR REPLACE INTO finished VALUES (?,?,?)", (question, digest, blob))
                connection.execute(_DROP_OLDER, (FINISHED_KEPT,))
        except FAILURES as error:
            self._file.give_up(error)
