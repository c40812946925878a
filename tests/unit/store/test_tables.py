"""Rows, tables and migrations say the same, and the heavy parts are loaded only when they are needed."""

import subprocess
import sys
from pathlib import Path

import msgspec
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect

from serena_central.core.resources import migrations_folder
from serena_central.store.rows import Row
from serena_central.store.schema import bring_up_to_date, migrate
from serena_central.store.tables import METADATA, SCHEMA_VERSION


def test_every_row_has_its_table_with_the_same_columns_and_key() -> None:
    kinds = {kind.table: kind for kind in Row.__subclasses__()}
    assert kinds.keys() == METADATA.tables.keys()
    for name, kind in kinds.items():
        table = METADATA.tables[name]
        assert list(kind.__struct_fields__) == [column.name for column in table.columns]
        assert (kind.key or ("id",)) == tuple(column.name for column in table.primary_key.columns)
        for field in msgspec.structs.fields(kind):
            optional = type(None) in getattr(field.type, "__args__", ())
            assert table.columns[field.name].nullable == optional or field.name in kind.key or not kind.key, field.name


def test_the_version_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA_VERSION


def schema(connection: Connection) -> dict[str, object]:
    looked = inspect(connection)
    return {
        name: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in looked.get_columns(name)],
            looked.get_pk_constraint(name)["constrained_columns"],
            sorted((str(index["name"]), index["column_names"], index["unique"]) for index in looked.get_indexes(name)),
        )
        for name in looked.get_table_names()
    }


def made_by(engine: Engine, *, alembic: bool) -> tuple[dict[str, object], str | None, bool]:
    with engine.begin() as connection:
        (migrate if alembic else bring_up_to_date)(connection)
        (sequence,) = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'event'").one()
        version = MigrationContext.configure(connection).get_current_revision()
        return schema(connection), version, "AUTOINCREMENT" in sequence


def test_a_new_database_is_what_the_migrations_make() -> None:
    quick = made_by(create_engine("sqlite://"), alembic=False)
    assert quick == made_by(create_engine("sqlite://"), alembic=True)
    assert quick[1:] == (SCHEMA_VERSION, True)


def modules_after(code: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(printed.stdout.split())


def test_importing_the_store_loads_nothing_that_speaks_sql() -> None:
    assert modules_after("import serena_central.store").isdisjoint({"sqlalchemy", "sqlmodel", "alembic", "pydantic"})


def test_opening_a_new_or_current_database_does_not_load_alembic(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from serena_central.store.database import Database;"
        f"Database(Path({str(tmp_path / 'x.db')!r})).open()"
    )
    for _ in range(2):
        assert "alembic" not in modules_after(code)
