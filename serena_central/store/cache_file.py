"""What every cache of a root shares: one SQLite file, dropped when its schema is another or its bytes are damaged.

Blocks: for worker threads. It is only a cache: nothing here raises because a file can't be used.
"""

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 2.0

DAY_S = 86_400

UNUSED_DAYS = 60
"""After which a cache is deleted: its root may be a worktree or a clone that is gone, which nobody tells."""


def name_of(root: Path) -> str:
    """What the cache files of a root are named by."""
    return hashlib.blake2b(str(root).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


class CacheFile:
    """One file with one table. `version` is kept as its user_version; another one means that the table is dropped."""

    def __init__(self, path: Path, *, table: str, create: str, version: int) -> None:
        self.path = path
        self._table = table
        self._create = create
        self._version = version

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """A transaction that is committed at the end. Raises what `FAILURES` lists; hand that to `give_up`."""
        with closing(self._connect()) as connection, connection:
            yield connection

    def give_up(self, error: Exception) -> None:
        """A corrupt file is removed, so that the next use begins a new one; anything else may pass."""
        corrupt = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        logger.warning("the cache %s %s: %s", self.path, "was dropped" if corrupt else "can't be used", error)
        if corrupt:
            self._remove()

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
            if found != self._version:
                with connection:
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute(f"DROP TABLE IF EXISTS {self._table}")
                    connection.execute(self._create)
                    connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._note_use()
            if not found:
                self._delete_unused()
        except BaseException:
            connection.close()
            raise
        return connection

    def _note_use(self) -> None:
        """Reading leaves a file's time as it is."""
        if time.time() - self.path.stat().st_mtime > DAY_S:
            os.utime(self.path)

    def _delete_unused(self) -> None:
        """Deletes what nobody has used for long, whenever there is one more."""
        before = time.time() - UNUSED_DAYS * DAY_S
        for other in self.path.parent.glob("*.db"):
            with suppress(OSError):  # another process may delete it, too
                if other != self.path and other.stat().st_mtime < before:
                    _remove(other)
                    logger.info("the cache %s was not used for %d days, and was deleted", other, UNUSED_DAYS)

    def _remove(self) -> None:
        _remove(self.path)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


FAILURES = (sqlite3.Error, OSError, UnicodeError, OverflowError)
"""What using a cache file may raise."""
