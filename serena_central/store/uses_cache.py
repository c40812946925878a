"""The cache of what language servers said about uses: one SQLite file per root, one row per symbol.

Blocks: for worker threads. Knows blobs and digests, neither symbols nor what a digest covers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from serena_central.store.cache_file import FAILURES, CacheFile, name_of

SCHEMA_VERSION = 1

_CREATE = """
CREATE TABLE uses (
    path TEXT, name_path TEXT, digest BLOB, world BLOB, blob BLOB, PRIMARY KEY (path, name_path)
) WITHOUT ROWID
"""


class CachedUses(NamedTuple):
    """The uses of one symbol. `digest` covers what the answer depends on, `world` all files when it was asked."""

    path: str
    name_path: str
    digest: bytes
    world: bytes
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
