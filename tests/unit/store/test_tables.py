"""Rows, tables and migrations say the same, and the heavy parts are loaded only when they are needed."""

import itertools
import math
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from serena_central.core.resources import migrations_folder
from serena_central.store.database import Database
from serena_central.store.queries import Queries
from serena_central.store.rows import SCHEMA_VERSION, Row, ToolCallRow
from serena_central.store.schema import bring_up_to_date, migrate
from serena_central.store.tables import METADATA


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
        made = schema(connection), version, "AUTOINCREMENT" in sequence
    engine.dispose()
    return made


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
    loaded = modules_after("import serena_central.store.store, serena_central.store.index_cache")
    assert loaded.isdisjoint({"sqlalchemy", "alembic", "pydantic"})


def test_opening_a_new_or_current_database_does_not_load_alembic(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from serena_central.store.database import Database;"
        f"Database(Path({str(tmp_path / 'x.db')!r})).open()"
    )
    for _ in range(2):
        assert "alembic" not in modules_after(code)


def test_totals_of_calls_are_kept_by_the_migration_that_parts_them_from_their_durations(tmp_path: Path) -> None:
    """They are what they would be had the calls been written to a new database."""
    calls = [
        ToolCallRow(
            id=f"c-{number}",
            at=1e9 + 700.0 * number,
            session="s",
            project=("/p", None, "/q")[number % 3],
            tool=("find_symbol", "read_file")[number % 2],
            duration_ms=float(1 + number % 50),
            outcome="error" if number % 7 == 0 else "ok",
            answer_chars=number,
        )
        for number in range(400)
    ]
    old, new = Database(tmp_path / "old.db"), Database(tmp_path / "new.db")
    engine = create_engine(f"sqlite:///{tmp_path / 'old.db'}")
    with engine.begin() as connection:
        migrate(connection, "0012")
        for row in calls:
            _total_as_before(connection, row)
        gone = {"day": "2001-01-01", "tool": "t", "project": "/p", "calls": 3, "errors": 1, "ms": 5.0, "chars": 7}
        connection.execute(
            text("INSERT INTO daily_total VALUES (:day, :tool, :project, :calls, :errors, :ms, :chars)"), gone
        )
    engine.dispose()
    new.write(calls)
    read = [
        database.read(
            lambda connection: {
                table: sorted(map(tuple, connection.exec_driver_sql(f"SELECT * FROM {table}").all()))
                for table in ("call_total", "call_step")
            }
        )
        for database in (old, new)
    ]
    assert read[0]["call_step"] == read[1]["call_step"]
    assert set(read[0]["call_total"]) - set(read[1]["call_total"]) == {(86400, "", "", 978307200, 3, 1, 5.0, 0.0, 7)}
    assert set(read[1]["call_total"]) < set(read[0]["call_total"])
    assert Queries(old).totals_by_day()[0].calls == 3
    old.close()
    new.close()


def _total_as_before(connection: Connection, row: ToolCallRow) -> None:
    """What a call added to its totals before revision 0013."""
    values = {"tool": row.tool, "ms": row.duration_ms, "failed": row.outcome != "ok", "chars": row.answer_chars}
    day = time.strftime("%Y-%m-%d", time.gmtime(row.at))
    connection.execute(
        text(
            "INSERT INTO daily_total VALUES (:day, :tool, :project, 1, :failed, :ms, :chars) ON CONFLICT DO UPDATE SET "
            "calls = calls + 1, errors = errors + :failed, duration_ms = duration_ms + :ms, "
            "answer_chars = answer_chars + :chars"
        ),
        values | {"day": day, "project": row.project or ""},
    )
    step = round(4 * math.log2(row.duration_ms))
    for span, project, tool in itertools.product((60, 900, 21_600, 86_400), {row.project or "", ""}, {row.tool, ""}):
        key = {"span": span, "project": project, "tool": tool, "since": int(row.at // span) * span, "step": step}
        connection.execute(
            text(
                "INSERT INTO call_total VALUES (:span, :project, :tool, :since, :step, 1, :failed, :ms, :ms, :chars) "
                "ON CONFLICT DO UPDATE SET calls = calls + 1, errors = errors + :failed, "
                "duration_ms = duration_ms + :ms, longest_ms = max(longest_ms, :ms), "
                "answer_chars = answer_chars + :chars"
            ),
            values | key,
        )
