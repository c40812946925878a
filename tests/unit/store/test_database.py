"""The database opens, upgrades, survives what files go through, and keeps what it was given."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from serena_central.config.policies import RetentionPolicy
from serena_central.core.errors import SchemaTooNew, StoreError
from serena_central.core.resources import migrations_folder
from serena_central.store import schema
from serena_central.store.database import OPEN_ATTEMPT_S, Database
from serena_central.store.queries import Queries
from serena_central.store.query_results import EventFilter
from serena_central.store.rows import CallStepRow, CallTotalRow, EventRow, ProjectRow, Removal, SessionRow, ToolCallRow
from serena_central.store.tables import METADATA
from tests.support.postgresql import rows_in, url_for

PATIENCE_S = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@contextmanager
def opened(path: Path) -> Generator[Database]:
    database = Database(path, url_for(path))
    try:
        yield database
    finally:
        database.close()


def project(root: str, name: str = "x") -> ProjectRow:
    return ProjectRow(root=root, name=name, languages=["python"], added_at=1.0, last_used_at=2.0)


def test_rows_come_back_as_they_were_put(path: Path) -> None:
    session = SessionRow(
        id="s-1",
        credential="d",
        era="handshake",
        client_name="codex",
        created_at=1.5,
        last_activity=2.5,
        state="active",
        modes=["editing", "ünï"],
        transport_id="t-1",
        initialize=b"\x00{}",
    )
    event = EventRow(seq=7, at=1.0, kind="a.b", data={"path": Path("/x"), "n": [1, None]})
    with opened(path) as database:
        assert database.write([session, event]) == 0
    with opened(path) as database:
        queries = Queries(database)
        assert queries.session_of_conversation("t-1") == session
        (found,) = queries.events(EventFilter()).events
        assert (found.id, found.seq, found.data) == (1, 7, {"path": "/x", "n": [1, None]})


def test_a_row_replaces_the_one_with_its_key_and_a_removal_deletes_it(path: Path) -> None:
    with opened(path) as database:
        database.write([project("/a", "old"), project("/b")])
        database.write([project("/a", "new"), Removal(ProjectRow, ("/b",))])
        assert [(row.root, row.name) for row in Queries(database).projects()] == [("/a", "new")]


def test_a_row_that_cannot_be_written_spoils_no_other(path: Path) -> None:
    with opened(path) as database:
        bad = [
            project("/\udcff"),
            ToolCallRow(id="c", at=1.0, session="s", tool="t", duration_ms=1, answer_chars=2**70),
        ]
        assert database.write([project("/a"), *bad, project("/b")]) == 2
        assert {row.root for row in Queries(database).projects()} == {"/a", "/b"}
        assert Queries(database).totals_by_day() == []


@pytest.mark.sqlite
def test_the_file_is_in_wal_mode_and_can_give_space_back(path: Path) -> None:
    with opened(path) as database:
        database.open()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


@pytest.mark.sqlite
@pytest.mark.parametrize("content", [b"this is no database, and long enough to be read as one" * 100, b"\x00" * 8192])
def test_a_corrupt_file_is_set_aside_and_a_new_one_begun(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    told: list[str] = []
    database = Database(path, tell=told.append)
    database.write([project("/a")])
    assert [row.root for row in Queries(database).projects()] == ["/a"]
    database.close()
    (aside,) = path.parent.glob("store.db.corrupt-*")
    assert aside.read_bytes() == content
    assert len(told) == 1
    assert aside.name in told[0]


def corrupt_within(path: Path, told: list[str]) -> Database:
    """An open database whose first pages are sound: the schema, and the first page of every table."""
    with opened(path) as database:
        database.open()
    intact = path.stat().st_size
    with opened(path) as database:
        database.write([EventRow(seq=n, at=1.0, kind="a.b", message="x" * 500) for n in range(500)])
    content = bytearray(path.read_bytes())
    content[intact:] = os.urandom(len(content) - intact)
    path.write_bytes(content)
    database = Database(path, tell=told.append)
    database.open()
    assert told == []
    return database


@pytest.mark.sqlite
def test_who_meets_a_corrupt_page_late_leaves_the_new_file_alone(path: Path) -> None:
    told: list[str] = []
    database = corrupt_within(path, told)

    def meet_it_late(connection: Connection) -> None:
        with pytest.raises(StoreError, match="set aside"):
            Queries(database).events(EventFilter(limit=1000))
        database.write([project("/a")])
        connection.exec_driver_sql("SELECT * FROM event").all()

    with pytest.raises(StoreError, match="has been replaced"):
        database.read(meet_it_late)
    assert [row.root for row in Queries(database).projects()] == ["/a"]
    database.close()
    assert len(told) == len(list(path.parent.glob("store.db.corrupt-*[0-9]"))) == 1


@pytest.mark.sqlite
def test_a_file_that_turns_out_to_be_corrupt_is_set_aside_then(path: Path) -> None:
    told: list[str] = []
    database = corrupt_within(path, told)
    with pytest.raises(StoreError, match="set aside"):
        Queries(database).events(EventFilter(limit=1000))
    database.write([project("/a")])
    assert [row.root for row in Queries(database).projects()] == ["/a"]
    database.close()
    assert len(told) == len(list(path.parent.glob("store.db.corrupt-*[0-9]"))) == 1


@pytest.mark.sqlite
@pytest.mark.parametrize("logs_too", [True, False])
def test_a_file_that_is_deleted_under_the_server_is_made_again(path: Path, logs_too: bool) -> None:
    told: list[str] = []
    database = Database(path, tell=told.append)
    with closing(database):
        database.write([project("/before")])
        for suffix in ("", "-wal", "-shm") if logs_too else ("",):
            Path(f"{path}{suffix}").unlink()
        database.write([project("/after")])
        assert "deleted or replaced" in "".join(told)
        database.write([project("/later")])
    assert rows_in(path, "SELECT root FROM project ORDER BY root") == [("/after",), ("/later",)]
    assert len(told) == 1


@pytest.mark.sqlite
def test_a_backup_that_replaces_the_file_under_the_server_is_used_without_the_log_of_the_old_one(path: Path) -> None:
    backup = path.with_name("backup.db")
    with opened(path) as database:
        database.write([project("/kept")])
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as goal:
            source.backup(goal)
        for number in range(500):
            database.write([project(f"/{number}", "x" * 1000)])
        backup.replace(path)
        database.write([project("/new")])
    assert rows_in(path, "SELECT root FROM project ORDER BY root") == [("/kept",), ("/new",)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.sqlite
def test_a_folder_that_is_gone_is_an_error_until_it_is_there_again(path: Path, tmp_path: Path) -> None:
    inside = tmp_path / "home" / "store.db"
    inside.parent.mkdir()
    with closing(Database(inside)) as database:
        database.write([project("/a")])
        shutil.rmtree(inside.parent)
        with pytest.raises(StoreError, match="not usable"):
            database.write([project("/b")])
        inside.parent.mkdir()
        database.write([project("/b")])
    assert rows_in(inside, "SELECT root FROM project ORDER BY root") == [("/b",)]


def test_a_schema_from_the_future_is_refused_and_left_alone(path: Path) -> None:
    with opened(path) as database:
        database.write([project("/a")])
        database.change(
            lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        )
    with opened(path) as database, pytest.raises(SchemaTooNew, match="newer serena-central"):
        database.open()
    assert rows_in(path, "SELECT root FROM project") == [("/a",)]


NEXT_MIGRATION = f"""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{schema.SCHEMA_VERSION}"


def upgrade():
    with op.batch_alter_table("project") as table:
        table.add_column(sa.Column("colour", sa.String(), nullable=False, server_default="blue"))
"""


def test_an_older_schema_is_upgraded_in_place(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as database:
        database.write([project("/a")])
    folder = tmp_path / "migrations"
    shutil.copytree(migrations_folder(), folder)
    (folder / "versions" / "9999_colour.py").write_text(NEXT_MIGRATION)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", "9999")
    monkeypatch.setattr(schema, "migrations_folder", lambda: folder)
    with opened(path) as database:
        database.open()
    assert rows_in(path, "SELECT root, colour FROM project") == [("/a", "blue")]
    assert rows_in(path, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as database:
        database.write([project("/a")])
    folder = tmp_path / "migrations"
    shutil.copytree(migrations_folder(), folder)
    before = schema.SCHEMA_VERSION
    failing = NEXT_MIGRATION + '    op.execute("INSERT INTO missing VALUES (1)")\n'
    (folder / "versions" / "9999_colour.py").write_text(failing)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", "9999")
    monkeypatch.setattr(schema, "migrations_folder", lambda: folder)
    with opened(path) as database, pytest.raises(StoreError, match="missing"):
        database.open()
    assert rows_in(path, "SELECT version_num FROM alembic_version") == [(before,)]
    with pytest.raises(Exception, match="colour"):
        rows_in(path, "SELECT colour FROM project")


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["folder", "file/below.db", "missing/below.db"])
def test_a_place_that_cannot_hold_a_database_is_a_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with opened(tmp_path / name) as database, pytest.raises(StoreError, match="unable to open database file"):
        database.open()


@pytest.mark.parametrize("url", ["nonsense", "postgresql+nothing://me:hunter2@host/db"])
def test_a_url_that_cannot_be_used_is_an_error_without_its_password(path: Path, url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Database(path, url).open()
    assert "hunter2" not in str(caught.value)


@pytest.mark.sqlite
def test_a_full_disk_is_an_error_until_there_is_room_again(path: Path) -> None:
    big = [EventRow(seq=n, at=1.0, kind="a.b", message="x" * 5000) for n in range(100)]
    with opened(path) as database:
        database.open()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(StoreError, match="continues without it"):
                database.write(big)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert database.write(big) == 0
        assert len(Queries(database).events(EventFilter(limit=1000)).events) == 100
    assert list(path.parent.glob("*corrupt*")) == []


OPENING = """
import sys
from pathlib import Path
from serena_central.store.database import OPEN_ATTEMPT_S, Database
from serena_central.store.rows import ProjectRow
database = Database(Path(sys.argv[1]), sys.argv[3] or None)
print("ready", flush=True)
sys.stdin.readline()
database.open()
database.write([ProjectRow(root=sys.argv[2], name="x", added_at=1.0, last_used_at=1.0)])
"""


@contextmanager
def kept_closed(path: Path) -> Generator[None]:
    """By another process, which shares the file with nobody."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        yield


def test_a_file_that_another_process_lets_go_of_is_opened(path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        with kept_closed(path):
            opening = threads.submit(Database(path).open)
            with pytest.raises(FutureTimeout):
                opening.result(2 * OPEN_ATTEMPT_S)
        opening.result(PATIENCE_S)


def test_nobody_waits_for_a_file_while_the_server_stops(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.store.database.OPEN_TIMEOUT_S", 10 * PATIENCE_S)
    stopping = Event()
    database = Database(path, stopping=stopping.is_set)
    with kept_closed(path), ThreadPoolExecutor() as threads:
        opening = [threads.submit(database.open) for _ in range(20)]
        stopping.set()
        for one in opening:
            with pytest.raises(StoreError, match="locked"):
                one.result(PATIENCE_S)


@pytest.mark.sqlite
def test_giving_space_back_waits_for_nobody_who_reads_and_keeps_nobody_from_writing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.store.database.BUSY_TIMEOUT_S", 2.0 * PATIENCE_S)
    log = Path(f"{path}-wal")
    with opened(path) as database, ThreadPoolExecutor(1) as threads:
        database.write([project("/a")])
        with closing(sqlite3.connect(path, isolation_level=None)) as backup:
            backup.execute("BEGIN")
            backup.execute("SELECT count(*) FROM project").fetchone()
            database.write([project("/b")])
            threads.submit(database.vacuum).result(PATIENCE_S)
            assert log.stat().st_size
            database.write([project("/c")])
        database.vacuum()
        assert not log.stat().st_size


@pytest.mark.sqlite
def test_a_file_that_was_restored_from_a_dump_is_swept_to_an_end(path: Path) -> None:
    """It cannot give space back: whoever makes it from a dump does not say that it should."""
    made = path.with_name("made.db")
    Database(made).open()
    with closing(sqlite3.connect(made)) as source, closing(sqlite3.connect(path)) as goal:
        goal.executescript("\n".join(line for line in source.iterdump() if "sqlite_sequence" not in line))
    with opened(path) as database:
        database.write([EventRow(seq=number, at=1.0, kind="a.b", message="x" * 1000) for number in range(500)])
        asked = iter(range(10_000))
        assert Queries(database).sweep(RetentionPolicy(), 1e9, goes_on=lambda: next(asked) >= 0) == 500


def test_those_who_wait_for_a_file_together_give_up_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.store.database.OPEN_TIMEOUT_S", 2.0)
    database, attempts = Database(path), Mock(wraps=Database._newly_opened)
    monkeypatch.setattr(Database, "_newly_opened", lambda own: attempts(own))
    with kept_closed(path), ThreadPoolExecutor(20) as threads:
        for one in [threads.submit(database.open) for _ in range(20)]:
            with pytest.raises(StoreError, match="locked"):
                one.result(PATIENCE_S)

    assert attempts.call_count == 1
    database.open()  # asked again, it looks again


def test_processes_that_open_a_new_database_at_once_all_succeed(path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPENING, str(path), f"/{number}", url_for(path) or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    with opened(path) as database:
        assert {row.root for row in Queries(database).projects()} == {"/0", "/1", "/2"}


WRITING = """
import sys
from pathlib import Path
from serena_central.store.database import OPEN_ATTEMPT_S, Database
from serena_central.store.rows import EventRow
database = Database(Path(sys.argv[1]), sys.argv[2] or None)
for batch in range(100_000):
    database.write([EventRow(seq=batch, at=1.0, kind="a.b", message="x" * 200) for _ in range(50)])
    print(batch, flush=True)
"""


def test_kill_9_in_the_middle_of_writes_loses_no_batch_that_was_written(path: Path) -> None:
    command = [sys.executable, "-c", WRITING, str(path), url_for(path) or ""]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    with opened(path) as database:
        events = Queries(database).events(EventFilter(limit=1_000_000)).events
    counts = {seq: sum(event.seq == seq for event in events) for seq in {event.seq for event in events}}
    assert set(range(21)) <= counts.keys()
    assert set(counts.values()) == {50}


def test_a_value_that_can_not_be_written_costs_its_own_row_alone(path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):  # more than any version of Python encodes
        deep = {"in": deep}
    rows = [EventRow(seq=number, at=1.0, kind="note", data=deep if number == 1 else {}) for number in range(3)]
    with opened(path) as database:
        assert database.write(rows) == 1
    assert sorted(rows_in(path, "SELECT seq FROM event")) == [(0,), (2,)]


_CALLS = st.lists(
    st.builds(
        lambda at, tool, project, duration_ms, outcome: ToolCallRow(
            id="c",
            at=at,
            session="s",
            tool=tool,
            project=project,
            duration_ms=duration_ms,
            outcome=outcome,
            answer_chars=3,
        ),
        st.floats(0, 200_000),
        st.sampled_from(["find_symbol", "read_file"]),
        st.sampled_from([None, "one", "two"]),
        st.floats(0, 1000),
        st.sampled_from(["ok", "error"]),
    ),
    min_size=1,
    max_size=30,
)


@given(_CALLS)
@settings(max_examples=20, deadline=None)
def test_calls_add_up_to_the_same_whether_they_are_written_together_or_one_by_one(calls: list[ToolCallRow]) -> None:
    for number, call in enumerate(calls):
        call.id = f"c-{number}"
    with tempfile.TemporaryDirectory() as folder:
        found: list[list[list[Any]]] = []
        for name, batches in (("together", [calls]), ("apart", [[call] for call in calls])):
            with closing(Database(Path(folder) / name)) as database:
                for batch in batches:
                    database.write(batch)
                tables = [METADATA.tables[kind.table] for kind in (CallTotalRow, CallStepRow)]
                found.append([sorted(rows) for rows in database.read_each_at_once([select(one) for one in tables])])
    for together, apart in zip(*found, strict=True):
        for one, other in zip(together, apart, strict=True):
            assert one == pytest.approx(other)
