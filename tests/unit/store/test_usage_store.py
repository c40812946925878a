"""The usage stores of earlier versions, and totals of tools."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.core.errors import StoreError
from serena_central.store.usage_store import StoredRequest, UsageStore

FIRST_SCHEMA = """
CREATE TABLE file (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    consumed INTEGER NOT NULL, head BLOB NOT NULL, state TEXT NOT NULL, dropped INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, client TEXT NOT NULL, project TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL,
    model TEXT NOT NULL, UNIQUE (client, project, session, agent, model)
);
CREATE TABLE request (
    key BLOB PRIMARY KEY, at INTEGER NOT NULL, origin INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    write_5m INTEGER NOT NULL, write_1h INTEGER NOT NULL, read INTEGER NOT NULL, searches INTEGER NOT NULL,
    fast INTEGER NOT NULL, sidechain INTEGER NOT NULL, stated_cost REAL, cost REAL, unpriced INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX request_origin ON request (origin, at);
CREATE TABLE tool_use (id BLOB PRIMARY KEY, request BLOB, name TEXT, failed INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX tool_use_request ON tool_use (request);
CREATE TABLE total (
    origin INTEGER NOT NULL, bucket INTEGER NOT NULL, requests INTEGER NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, write_5m INTEGER NOT NULL, write_1h INTEGER NOT NULL, read INTEGER NOT NULL,
    cost REAL NOT NULL, unpriced INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (origin, bucket)
) WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tool_total (
    origin INTEGER NOT NULL, bucket INTEGER NOT NULL, tool TEXT NOT NULL, calls INTEGER NOT NULL,
    failed INTEGER NOT NULL, cost REAL NOT NULL, PRIMARY KEY (origin, bucket, tool)
) WITHOUT ROWID;
"""

SECOND_SCHEMA = FIRST_SCHEMA.replace("cost REAL NOT NULL, PRIMARY", "cost REAL NOT NULL, unpriced INTEGER, PRIMARY")

AT = 1_790_000_000_000
BUCKET = AT // 900_000


def key(number: int) -> bytes:
    """As earlier versions had them: 16 bytes, of which the first eight are the key since."""
    return number.to_bytes(8, signed=True) + b"the rest"


def request(number: int, origin: int, *, cost: float | None = 0.5, output: int = 20) -> StoredRequest:
    return StoredRequest(
        key=number, at=AT, origin=origin, input=10, output=output, write_5m=0, write_1h=0, read=0, searches=0,
        fast=False, sidechain=False, stated_cost=None, cost=cost, unpriced=cost is None,
    )  # fmt: skip


@pytest.mark.parametrize(("version", "schema"), [(1, FIRST_SCHEMA), (2, SECOND_SCHEMA)])
def test_the_store_of_an_earlier_version_keeps_its_requests_calls_and_totals(
    tmp_path: Path, version: int, schema: str
) -> None:
    path = tmp_path / "usage.db"
    with sqlite3.connect(path) as old:
        old.executescript(schema)
        old.execute(f"PRAGMA user_version = {version}")
        for origin, number, cost in ((1, 7, 0.5), (2, -8, None)):
            model = "homemade" if cost is None else "known"
            old.execute("INSERT INTO origin VALUES (?, 'codex', '/p', 's', '', ?)", (origin, model))
            row = request(number, origin, cost=cost)
            old.execute(f"INSERT INTO request VALUES ({', '.join('?' * 14)})", (key(number), *row[1:]))
            old.execute("INSERT INTO tool_use VALUES (?, ?, 'shell', 0)", (key(number + 100), key(number)))
            total = (origin, BUCKET, 1, 10, 20, 0, 0, 0, cost or 0.0, cost is None, AT, AT)
            old.execute(f"INSERT INTO total VALUES ({', '.join('?' * 12)})", total)
        old.execute("INSERT INTO tool_use VALUES (?, NULL, NULL, 1)", (key(900),))  # its call is still to be read
    old.close()
    with UsageStore(path) as store:
        assert sorted((one.model, one.output, one.cost, one.unpriced) for one in store.totals()) == [
            ("homemade", 20, 0.0, 1),
            ("known", 20, 0.5, 0),
        ]
        assert sorted((one.model, one.calls, one.cost, one.unpriced) for one in store.tool_totals()) == [
            ("homemade", 1, 0.0, 1),
            ("known", 1, 0.5, 0),
        ]
        assert store.tool_uses([107])[107].cost == 0.5
        with store.writing() as writer:
            # What a transcript says again is the request that is known.
            writer.put_requests([request(7, 1, output=30), request(-8, 2, cost=None)])
            writer.put_tools([(900, 7, "grep")])
        assert sorted((one.model, one.requests, one.output) for one in store.totals()) == [
            ("homemade", 1, 20),
            ("known", 1, 30),
        ]
        assert [(one.tool, one.failed) for one in store.tool_totals() if one.model == "known"] == [
            ("grep", 1),
            ("shell", 0),
        ]


def test_totals_of_tools_hold_what_was_written_since_they_were_asked_for(tmp_path: Path) -> None:
    def calls(store: UsageStore) -> list[tuple[str, int, int, float]]:
        return [(one.tool, one.calls, one.failed, one.cost) for one in store.tool_totals()]

    path = tmp_path / "usage.db"
    with UsageStore(path) as store, UsageStore(path) as other:
        with store.writing() as writer:
            origin = writer.origin(("codex", "/p", "s", "", "known"))
            writer.put_requests([request(1, origin)])
            writer.put_tools([(11, 1, "shell"), (12, 1, "grep")])
        assert calls(other) == calls(store) == [("grep", 1, 0, 0.25), ("shell", 1, 0, 0.25)]
        with store.writing() as writer:
            writer.put_failures([12])
        with other.writing() as writer:
            writer.put_requests([request(2, origin, cost=2.0)])
            writer.put_tools([(13, 2, "shell")])
        assert calls(store) == calls(other) == [("grep", 1, 1, 0.25), ("shell", 2, 0, 2.25)]


def test_a_store_that_is_no_database_is_to_be_moved_away_and_one_that_is_locked_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.store.usage_store.BUSY_TIMEOUT_S", 0.0)
    path = tmp_path / "usage.db"
    with UsageStore(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked") as locked, store.writing():
            pass
        assert "Move it away" not in str(locked.value)
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError, match="Move it away"):
        UsageStore(path)
