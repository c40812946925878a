"""What a start reads by `sqlite3` is what the database reads: compared on files that it has written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.store.database import Database
from serena_central.store.queries import Queries
from serena_central.store.rows import AccountRow, EditRow, ProjectRow, Row, SessionRow
from serena_central.store.saved_rows import IDS_ASKED, saved_answers, saved_rows

pytestmark = pytest.mark.sqlite

SESSIONS = [
    SessionRow(
        id=f"s-{number}",
        credential="c",
        era="handshake",
        created_at=1.0,
        last_activity=float(number),
        state="idle",
        client_name="codex",
        shared=number == 1,
        modes=["editing", "ünï"],
        initialize=b"\x00{}" if number else None,
    )
    for number in range(3)
]


def written(path: Path, *rows: Row) -> Path:
    with closing(Database(path)) as database:
        assert database.write(rows) == 0
    return path


def test_rows_are_those_that_the_database_reads(tmp_path: Path) -> None:
    project = ProjectRow(root="/a", name="a", languages=["python"], added_at=1.0, last_used_at=2.0)
    account = AccountRow(name="n", credential="c", token_digest="d", roots=["/a"], created_at=1.0, admin=True)
    path = written(tmp_path / "x.db", *SESSIONS, project, account)
    with closing(Database(path)) as database:
        queries = Queries(database)
        assert saved_rows(path, ProjectRow) == queries.projects()
        assert saved_rows(path, AccountRow) == queries.accounts()
        found = saved_rows(path, SessionRow, ("last_activity", 1.0))
        assert found is not None
        assert sorted(found, key=lambda row: -row.last_activity) == queries.sessions_since(1.0) == SESSIONS[:0:-1]


def test_answers_of_more_edits_than_one_statement_takes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    edits = [
        EditRow(id=f"e-{number}", at=float(number), call="c", tool="t", session="s", project_root="/a", repeat="r")
        for number in range(IDS_ASKED + 1)
    ]
    written(path, *edits)
    ids = [edit.id for edit in edits] + ["unknown"]
    with closing(Database(path)) as database:
        assert saved_answers(path, ids) == Queries(database).edit_answers(ids)
    assert saved_answers(path, []) == {}


def test_there_is_nothing_before_the_first_run(tmp_path: Path) -> None:
    assert saved_rows(tmp_path / "x.db", ProjectRow) == []
    assert not (tmp_path / "x.db").exists()


def test_what_a_killed_server_left_in_the_log_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "x.db")
    with closing(Database(path)) as database:
        database.write([ProjectRow(root="/a", name="a", added_at=1.0, last_used_at=1.0)])
        for suffix in ("", "-wal"):
            (tmp_path / f"copy.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    rows = saved_rows(tmp_path / "copy.db", ProjectRow)
    assert rows is not None
    assert [row.root for row in rows] == ["/a"]


def test_files_that_need_more_are_left_to_the_database(tmp_path: Path) -> None:
    (tmp_path / "corrupt.db").write_bytes(b"no database" * 1000)
    assert saved_rows(tmp_path / "corrupt.db", ProjectRow) is None
    path = written(tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE alembic_version SET version_num = '0001'")
        file.commit()
    assert saved_rows(path, ProjectRow) is None
    assert saved_answers(path, ["e"]) is None
