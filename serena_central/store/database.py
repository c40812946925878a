"""The database: opened and brought up to date when first needed, set aside when corrupt. Blocks; for worker threads.

SQLAlchemy is driven synchronously on purpose: one hop to a thread per batch or query is cheaper than one per statement,
which is what its asyncio form does on SQLite. Importing this module costs half a second: `store` does it in a thread.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Select, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from serena_central.core.decoding import from_json
from serena_central.core.encoding import lossy_json
from serena_central.core.errors import StoreError
from serena_central.store.rows import Change
from serena_central.store.schema import bring_up_to_date, is_up_to_date
from serena_central.store.statements import STATEMENT_ROWS, execute_all, execute_each

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

BUSY_TIMEOUT_S = 2.0
"""How long a statement waits for another process's lock; the writer tries again after that."""

OPEN_TIMEOUT_S = 30.0
"""How long opening waits for another process that is just upgrading the same file."""

OPEN_ATTEMPT_S = 0.5
"""How long one of its attempts waits for the lock of a file: nothing ends it before, not even the server's stop."""

INCREMENTAL = 2
"""What SQLite calls the auto_vacuum of our files."""

VACUUM_PAGES = 100
"""Pages given back in one transaction: of a large file, whose pages lie far apart, 1000 take a second."""

TRUNCATE_ATTEMPTS, TRUNCATE_PAUSE_S = 5, 0.02
"""To empty the log between what others read and write."""

STATEMENTS_KEPT = 256
"""That were made once to be run again: making one takes as long as running it."""

AnySelect = Select[*tuple[Any, ...]]

Parameters = Mapping[str, Any]
"""Values for the parameters of statements, by their names."""

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class Database:
    """SQLite at `path`, or the database at `url`. Safe from several threads; `__init__` does no I/O."""

    def __init__(
        self,
        path: Path,
        url: str | None = None,
        *,
        tell: Callable[[str], None] = logger.warning,
        stopping: Callable[[], bool] = lambda: False,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` is called, in the thread that works, with what people must hear: a file was set aside. While
        `stopping`, nobody waits for a file that another process keeps from being opened. `moved` is called in that
        thread where another file, or none, is at the path, before anything is changed there."""
        self._path = None if url else path
        self._tell = tell
        self._stopping = stopping
        self._moved = moved
        self._url = url or f"sqlite:///{path}"
        self._engine: Engine | None = None
        self._identity: tuple[int, int] | None = None
        """Of the file that the engine was made for."""
        self._failure: tuple[float, str] = (0.0, "")
        """When opening last failed, by the monotonic clock, and why."""
        self._lock = threading.RLock()
        self._closed = False

    def open(self) -> None:
        """Opens and upgrades the database, if that is not done yet.

        Raises:
            StoreError
        """
        self._opened()

    def close(self) -> None:
        """For good: a thread that still works on it, or comes late, opens nothing."""
        with self._lock:
            self._closed = True
            self._dispose()

    def _dispose(self) -> None:
        with self._lock:
            if self._engine is not None:
                # What a thread still holds is closed when it is returned, not when the garbage collector finds it.
                event.listen(self._engine.pool, "checkin", _close_returned)
                self._engine.dispose()
                self._engine = None

    def write(self, rows: Sequence[Change]) -> int:
        """Writes all rows in one transaction. A row replaces the one with its key; keys among `rows` are distinct.

        Returns how many rows the database refused for what is in them.

        Raises:
            StoreError: if none could be written.
        """
        try:
            return self.change(lambda connection: execute_all(connection, rows))
        except StoreError as error:
            if not _is_about_a_value(error.__cause__):
                raise
        return self.change(lambda connection: execute_each(connection, rows))

    def read(self, query: Callable[[Connection], Answer]) -> Answer:
        """Runs `query` on one snapshot.

        Raises:
            StoreError
        """
        engine = self._opened()
        with self._failing_plainly(engine), engine.begin() as connection:
            return query(connection)

    def look(self, query: Callable[[Connection], Answer]) -> Answer:
        """Runs `query` on the database as it is: neither created nor upgraded.

        Raises:
            StoreError
        """
        with self._failing_plainly():
            engine = _engine(self._url, BUSY_TIMEOUT_S)
            try:
                with engine.begin() as connection:
                    return query(connection)
            finally:
                engine.dispose()

    def read_at_once(self, statements: Sequence[AnySelect], parameters: Parameters | None = None) -> list[list[Any]]:
        """All rows of these statements, one after the other: see `read_each_at_once`.

        Raises:
            StoreError
        """
        return [row for rows in self.read_each_at_once(statements, parameters) for row in rows]

    def read_each_at_once(
        self, statements: Sequence[AnySelect], parameters: Parameters | None = None
    ) -> list[list[list[Any]]]:
        """The rows of each of these statements, on one snapshot: numbers and texts, in the order of the statement.

        SQLite's driver waits for Python's lock at each row and statement, up to 5 ms while the server is busy: there
        all of them are one statement, which answers with a single row of JSON. It is made once where `parameters` are
        given, which promises that the same statements, as objects, come again.

        Raises:
            StoreError
        """

        def read(connection: Connection) -> list[list[list[Any]]]:
            if connection.dialect.name != "sqlite":
                return [[list(row) for row in connection.execute(one, parameters or {})] for one in statements]
            together = _as_json(statements) if parameters is None else _kept_as_json(tuple(statements))
            return [from_json(packed) for packed in connection.execute(together, parameters or {}).one()]

        return self.read(read)

    def change(self, work: Callable[[Connection], Answer]) -> Answer:
        """Runs `work` in one transaction.

        Raises:
            StoreError
        """
        engine = self._opened()
        with self._failing_plainly(engine), engine.execution_options(writes=True).begin() as connection:
            return work(connection)

    def listener(self) -> Any:
        """A new connection that hears of notices (`postgresql.Listener`); None where the database has none.

        Raises:
            StoreError
        """
        parsed = _parsed(self._url)
        if parsed.get_backend_name() == "sqlite":
            return None
        return _postgresql().Listener(parsed)

    def vacuum(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Gives the free pages of an SQLite file back to the disk, in parts between which others may write;
        `goes_on` is asked before each.

        Raises:
            StoreError
        """
        engine = self._opened()
        if engine.dialect.name == "sqlite":
            with self._failing_plainly(engine), engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert isinstance(raw, sqlite3.Connection)
                # A file that was restored from a dump gives nothing back: its free pages are used again.
                gives_back = raw.execute("PRAGMA auto_vacuum").fetchone() == (INCREMENTAL,)
                while gives_back and goes_on() and raw.execute("PRAGMA freelist_count").fetchone() != (0,):
                    # Not `execute`: it steps a statement without columns once, which frees a single page.
                    raw.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
                # Only now does the file shrink; its log would keep the size of its busiest hour.
                _truncate_log(raw)

    def _opened(self) -> Engine:
        asked_at = time.monotonic()
        note = ""
        with self._lock:
            if self._closed:
                raise StoreError("The database is closed: the server stops.")
            if self._engine is not None and self._path is not None:
                with self._failing_plainly():
                    if _identity(self._path) != self._identity:
                        self._moved()
                        note = self._leave(self._path)
            if self._engine is None:
                failed_at, why = self._failure
                if failed_at > asked_at:  # for others, who had the lock meanwhile
                    raise StoreError(why)
                try:
                    self._engine = self._newly_opened()
                except StoreError as error:
                    self._failure = (time.monotonic(), str(error))
                    raise
                finally:
                    if note:
                        self._tell(note)
                with self._failing_plainly():
                    self._identity = None if self._path is None else _identity(self._path)
            return self._engine

    def _leave(self, path: Path) -> str:
        """Gives up a file that is not at its place any more, and returns what is to be told. SQLite would go on
        writing to it, where nobody finds it."""
        # SQLite would take a log that is left for that of the file that is there now.
        self._rename(path, ("-wal", "-shm"), "replaced")
        self._dispose()
        return (
            f"The database {path} was deleted or replaced while the server used it. The server continues with the "
            "file that is there now, or with a new one."
        )

    def _rename(self, path: Path, suffixes: Sequence[str], why: str) -> Path:
        """Renames a file of the database with its log files, since nothing is ever deleted; returns the new name."""
        stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{time.time_ns()}"
        aside = path.with_name(f"{path.name}.{why}-{stamp}")
        for suffix in suffixes:
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
        return aside

    def _newly_opened(self) -> Engine:
        try:
            with self._failing_plainly():
                return _open(self._url, self._stopping)
        except _FileReplaced:
            with self._failing_plainly():
                return _open(self._url, self._stopping)

    @contextmanager
    def _failing_plainly(self, engine: Engine | None = None) -> Generator[None]:
        """Turns the driver's errors into StoreError. A file that turns out to be corrupt is set aside.

        `engine` is what the work is done with; None while there is none yet.
        """
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError, ImportError, ValueError, OverflowError) as error:
            if self._path is not None and _code(error) in _CORRUPT:
                raise _FileReplaced(self._set_aside(self._path, engine, error)) from error
            raise StoreError(
                f"The database {self._path or 'at database_url'} is not usable: {_reason(error)}. "
                "The server continues without it: records wait in memory until this is fixed; what does not fit, or "
                "still waits when the server stops, is lost."
            ) from error

    def _set_aside(self, path: Path, engine: Engine | None, error: Exception) -> str:
        """Renames the file and returns what was told.

        Several threads may meet the same fault: a late one must not set aside the new file.
        """
        with self._lock:
            if self._engine is not engine:
                return f"The database {path} was corrupt and has been replaced."
            self._dispose()
            aside = self._rename(path, ("", "-wal", "-shm"), "corrupt")
        note = (
            f"The database {path} was corrupt ({_reason(error)}). "
            f"It was set aside as {aside.name}, and a new one was created."
        )
        self._tell(note)
        return note


class _FileReplaced(StoreError):
    """The file was corrupt and has been set aside; the next use begins a new one."""


def _open(url: str, stopping: Callable[[], bool]) -> Engine:
    """An engine on a database whose schema is today's."""
    is_file = url.startswith("sqlite")
    engine = _engine(url, OPEN_ATTEMPT_S if is_file else OPEN_TIMEOUT_S)
    deadline = time.monotonic() + OPEN_TIMEOUT_S
    try:
        while True:
            try:
                if is_file:
                    _set_up_file(engine)
                _bring_up_to_date(engine)
                break
            except (SQLAlchemyError, sqlite3.Error) as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline or stopping():
                    raise
                time.sleep(0.02)  # changing a file to WAL fails at once, whatever the timeout
    finally:
        engine.dispose()
    return _engine(url, BUSY_TIMEOUT_S)


def _bring_up_to_date(engine: Engine) -> None:
    with engine.begin() as connection:
        current = is_up_to_date(connection)
    if not current:  # else nobody who holds the write lock is waited for
        with engine.execution_options(writes=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                _postgresql().upgrade_lock(connection)
            bring_up_to_date(connection)


def _engine(url: str, timeout_s: float) -> Engine:
    """`timeout_s` bounds the wait for another process's lock."""
    options: dict[str, Any] = {
        "json_serializer": _to_json,
        "json_deserializer": from_json,
        "insertmanyvalues_page_size": STATEMENT_ROWS,
    }
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(parsed, connect_args={"timeout": timeout_s}, **options)
        event.listen(engine, "connect", _set_up_connection)
        event.listen(engine, "begin", _begin)
    else:
        engine = _postgresql().postgresql_engine(parsed, timeout_s, **options)
    engine.dialect.use_insertmanyvalues_wo_returning = True
    return engine


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The message repeats the URL, which may hold a password; so might its context.
        raise StoreError("database_url is not a valid database URL.") from None
    if parsed.drivername == "sqlite" or _postgresql().is_postgresql(parsed):
        return parsed
    raise StoreError("database_url must begin with sqlite:/// or postgresql://.")


def _postgresql() -> ModuleType:
    """Imported for those who use it."""
    from serena_central.store import postgresql

    return postgresql


def _close_returned(_connection: object, record: ConnectionPoolEntry) -> None:
    record.invalidate()


def _as_json(statements: Sequence[AnySelect]) -> AnySelect:
    """A statement with one row, which holds the rows of each of these as JSON."""
    rows = [one.subquery() for one in statements]
    return select(*(select(func.json_group_array(func.json_array(*one.columns))).scalar_subquery() for one in rows))


@lru_cache(maxsize=STATEMENTS_KEPT)
def _kept_as_json(statements: tuple[AnySelect, ...]) -> AnySelect:
    return _as_json(statements)


def _to_json(value: Any) -> str:
    return lossy_json(value, str).decode()


def _set_up_connection(connection: sqlite3.Connection, _record: object) -> None:
    # SQLAlchemy's `begin` event opens transactions instead of the driver, so that DDL is inside them as well.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")


def _begin(connection: Connection) -> None:
    # A transaction that will write takes the lock at once: upgrading a read lock later fails without waiting.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_file(engine: Engine) -> None:
    """What the file itself remembers."""
    raw = engine.raw_connection()
    try:
        if raw.cursor().execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raw.cursor().execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
            raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _truncate_log(connection: sqlite3.Connection) -> None:
    """Empties the log of the file, unless somebody reads what stands in there: then the next time.

    SQLite keeps others from writing while this waits for readers, and a backup may read for minutes.
    """
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # nearly all of the work, while others write
    (timeout_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        for _ in range(TRUNCATE_ATTEMPTS):
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                break
            time.sleep(TRUNCATE_PAUSE_S)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")


def _code(error: BaseException | None) -> int | None:
    """SQLite's primary result code, if the error is SQLite's."""
    orig: Any = getattr(error, "orig", None) or error
    code: int | None = getattr(orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_about_a_value(error: BaseException | None) -> bool:
    """Whether one row's content is to blame, rather than the database."""
    if isinstance(error, DBAPIError) and not isinstance(error.orig, sqlite3.Error):
        about: bool = _postgresql().is_about_a_value(error)
        return about
    if isinstance(error, DBAPIError):
        return isinstance(error, DataError | IntegrityError) or _code(error) in {None, sqlite3.SQLITE_TOOBIG}
    return isinstance(error, SQLAlchemyError | ValueError | OverflowError)


def _reason(error: Exception) -> str:
    """What the driver says, without the statement."""
    original: Any = getattr(error, "orig", None) or error
    if isinstance(error, DBAPIError) and not isinstance(original, sqlite3.Error):
        said: str = _postgresql().reason_of(error)
        return said
    return str(original)
