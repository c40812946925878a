"""Brings a database to today's schema, on one connection and in one transaction.

A new database gets its tables at once; Alembic, a second to import, runs only when an older schema is found.
"""

from sqlalchemy import Connection, inspect, text

from serena_central.core.errors import SchemaTooNew
from serena_central.core.resources import migrations_folder
from serena_central.store.rows import SCHEMA_VERSION
from serena_central.store.tables import METADATA

_VERSION_TABLE = "alembic_version"


def is_up_to_date(connection: Connection) -> bool:
    return schema_of(connection) == SCHEMA_VERSION


def bring_up_to_date(connection: Connection) -> None:
    """The caller holds the write lock, so that two servers can't do this at once.

    Raises:
        SchemaTooNew
    """
    found = schema_of(connection)
    if found == SCHEMA_VERSION:
        return
    if found is None:
        METADATA.create_all(connection)
        connection.execute(text(f"CREATE TABLE {_VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        stamp = text(f"INSERT INTO {_VERSION_TABLE} VALUES (:version)")  # noqa: S608 - a constant name
        connection.execute(stamp, {"version": SCHEMA_VERSION})
    else:
        _migrate(connection, found)


def migrate(connection: Connection, revision: str = "head") -> None:
    """Runs Alembic's migrations up to this one, the newest by default."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _migrate(connection: Connection, found: str) -> None:
    from alembic.util import CommandError

    try:
        migrate(connection)
    except CommandError as error:
        raise SchemaTooNew(found, SCHEMA_VERSION) from error


def schema_of(connection: Connection) -> str | None:
    """The version that a database's tables have; None where there are none."""
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()  # noqa: S608
    return found
