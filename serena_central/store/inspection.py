"""Inspects a database from outside without changing it, for the doctor and before a start.

The server may use it meanwhile. Blocks; importing this costs nothing.
"""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from serena_central.core.errors import SchemaTooNew, StoreError, StoreUnusable
from serena_central.store.rows import SCHEMA_VERSION
from serena_central.store.saved_rows import saved_schema

CHECK_S = 15.0
"""How long the pages are looked through; a file of some gigabytes is not looked through to its end."""

BUSY_S = 2.0

LOOK_S = 3.0
"""How long a start waits for a database server's answer. One that hangs, or a name server that does, takes up to half a
minute to fail."""


class DatabaseFacts(msgspec.Struct, frozen=True):
    """`damage` is what SQLite finds wrong, "" where nothing is; `checked` whether it saw all pages."""

    schema: str
    size_bytes: int
    free_bytes: int
    damage: str
    checked: bool


def inspect_file(path: Path) -> DatabaseFacts:
    """Raises: FileNotFoundError; StoreError when the file can't be read as a database."""
    size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file == path or file.exists())
    until = time.monotonic() + CHECK_S
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as connection:
            (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone() or ("",)
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            damage, checked = _damage(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{path} is not a readable serena-central database: {error}") from error
    return DatabaseFacts(schema, size, free * page, damage, checked)


def _damage(connection: sqlite3.Connection) -> tuple[str, bool]:
    try:
        found = [line for (line,) in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return "", False
        raise
    return ("" if found == ["ok"] else "; ".join(found)), True


def check_usable(path: Path, url: str | None) -> None:
    """What can't be looked at now is left to the store, which goes on without a database until it can be used.

    Raises:
        StoreUnusable
    """
    found = saved_schema(path) if url is None else _schema_at(url)
    if found is not None and found > SCHEMA_VERSION:
        raise SchemaTooNew(found, SCHEMA_VERSION)


def _schema_at(url: str) -> str | None:
    # Late: only those who have such a server pay for it.
    from serena_central.store.database import Database
    from serena_central.store.schema import schema_of

    def look() -> str | None:
        with closing(Database(Path(), url)) as database:
            return database.look(schema_of)

    worker = ThreadPoolExecutor(1)
    try:
        return worker.submit(look).result(LOOK_S)
    except StoreUnusable:
        raise
    except (StoreError, TimeoutError):
        return None
    finally:
        worker.shutdown(wait=False)


class ServerFacts(msgspec.Struct, frozen=True):
    """`schema` is "" where there are no tables yet; `may_create`: this user may create and change tables."""

    version: str
    schema: str
    size_bytes: int
    may_create: bool


def inspect_server(url: str) -> ServerFacts:
    """What a PostgreSQL server says of the store in it.

    Raises:
        StoreError: it can't be reached, or refuses.
    """
    from serena_central.store.database import Database  # late, too

    with closing(Database(Path(), url)) as database:
        return database.look(_facts)


def _facts(connection: Any) -> ServerFacts:
    version, size, may_create, table = connection.exec_driver_sql(
        "SELECT current_setting('server_version'), pg_database_size(current_database()), "
        "has_schema_privilege(current_schema(), 'CREATE'), to_regclass('alembic_version')::text"
    ).one()
    schema = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() if table else ""
    return ServerFacts(version, schema or "", size, bool(may_create))
