"""The usage store: requests to models that were read from transcripts, and totals of them, in one SQLite file.

It is written by whoever asks for usage, with or without a server, and read in some milliseconds: hence `sqlite3` alone,
without SQLAlchemy's half a second. It is no cache: clients delete their transcripts after some weeks. Blocks.
"""

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from serena_central.core.errors import StoreError

SCHEMA_VERSION = 3

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for another process's."""

BUCKET_MS = 900_000
"""Totals are of quarters of an hour: the days of every time zone are made of them."""

# Keys are row numbers: what is read first, many rows at a time, goes into one tree for each table instead of two.
_KEYED = """
CREATE TABLE request (
    key INTEGER PRIMARY KEY, at INTEGER NOT NULL, origin INTEGER NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, write_5m INTEGER NOT NULL, write_1h INTEGER NOT NULL, read INTEGER NOT NULL,
    searches INTEGER NOT NULL, fast INTEGER NOT NULL, sidechain INTEGER NOT NULL, stated_cost REAL, cost REAL,
    unpriced INTEGER NOT NULL
);
CREATE INDEX request_origin ON request (origin, at);
CREATE INDEX request_to_price ON request (unpriced) WHERE cost IS NULL AND unpriced = 0;
CREATE TABLE tool_use (id INTEGER PRIMARY KEY, request INTEGER, name TEXT, failed INTEGER NOT NULL);
CREATE INDEX tool_use_request ON tool_use (request);
CREATE TABLE tool_total (
    origin INTEGER NOT NULL, bucket INTEGER NOT NULL, tool TEXT NOT NULL, calls INTEGER NOT NULL,
    failed INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (origin, bucket, tool)
) WITHOUT ROWID;
CREATE TABLE tool_total_due (origin INTEGER PRIMARY KEY);
"""

_SCHEMA = f"""
CREATE TABLE file (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    consumed INTEGER NOT NULL, head BLOB NOT NULL, state TEXT NOT NULL, dropped INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, client TEXT NOT NULL, project TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL,
    model TEXT NOT NULL, UNIQUE (client, project, session, agent, model)
);
CREATE TABLE total (
    origin INTEGER NOT NULL, bucket INTEGER NOT NULL, requests INTEGER NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, write_5m INTEGER NOT NULL, write_1h INTEGER NOT NULL, read INTEGER NOT NULL,
    cost REAL NOT NULL, unpriced INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (origin, bucket)
) WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
{_KEYED}"""

_TO_3 = f"""
ALTER TABLE request RENAME TO old_request;
ALTER TABLE tool_use RENAME TO old_tool_use;
DROP INDEX request_origin;
DROP INDEX tool_use_request;
DROP TABLE tool_total;
{_KEYED}
INSERT OR IGNORE INTO request SELECT short(key), at, origin, input, output, write_5m, write_1h, read, searches, fast,
    sidechain, stated_cost, cost, unpriced FROM old_request;
INSERT OR IGNORE INTO tool_use SELECT short(id), short(request), name, failed FROM old_tool_use;
DROP TABLE old_request;
DROP TABLE old_tool_use;
INSERT INTO tool_total_due SELECT id FROM origin;
"""  # noqa: S608 - a constant
"""From schemas 1 and 2, whose keys were 16 bytes: they become the number in the first eight, as `transcripts.requests`
makes them."""

_WRITTEN = "(write_5m + write_1h, write_1h) >= (excluded.write_5m + excluded.write_1h, excluded.write_1h)"
_COUNTED = f"""input >= excluded.input AND output >= excluded.output AND {_WRITTEN} AND read >= excluded.read
        AND searches >= excluded.searches"""

# What counts when rows of one request meet: they grow while an answer is streamed, so the largest count of each kind is
# the final one. Both counts of cache writes are of one row: one that does not tell for how long has all as 5 minutes.
# The time is that of the row with more tokens, else the earlier; the owner is not a replay. None of it depends on the
# order in which files are read.
_MERGE = f"""
INSERT INTO request VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    at = CASE
        WHEN excluded.input + excluded.output + excluded.write_5m + excluded.write_1h + excluded.read
            > input + output + write_5m + write_1h + read THEN excluded.at
        WHEN excluded.input + excluded.output + excluded.write_5m + excluded.write_1h + excluded.read
            = input + output + write_5m + write_1h + read THEN min(at, excluded.at)
        ELSE at END,
    origin = CASE WHEN sidechain > excluded.sidechain THEN excluded.origin ELSE origin END,
    sidechain = min(sidechain, excluded.sidechain),
    input = max(input, excluded.input), output = max(output, excluded.output),
    write_5m = CASE WHEN {_WRITTEN} THEN write_5m ELSE excluded.write_5m END,
    write_1h = CASE WHEN {_WRITTEN} THEN write_1h ELSE excluded.write_1h END,
    read = max(read, excluded.read), searches = max(searches, excluded.searches), fast = max(fast, excluded.fast),
    stated_cost = max(ifnull(stated_cost, excluded.stated_cost), ifnull(excluded.stated_cost, stated_cost)),
    cost = CASE WHEN {_COUNTED} THEN cost ELSE NULL END,
    unpriced = CASE WHEN {_COUNTED} THEN unpriced ELSE 0 END
WHERE excluded.sidechain < sidechain OR excluded.at < at OR NOT ({_COUNTED}) OR excluded.stated_cost IS NOT stated_cost
"""  # noqa: S608 - a constant

_TOTALS = f"""
INSERT INTO total SELECT origin, at / {BUCKET_MS}, count(*), sum(input), sum(output), sum(write_5m), sum(write_1h),
    sum(read), total(cost), sum(unpriced), min(at), max(at)
FROM request WHERE origin IN temp.touched GROUP BY 1, 2
"""  # noqa: S608 - a constant

_TOOL_TOTALS = f"""
INSERT INTO tool_total
SELECT request.origin, request.at / {BUCKET_MS}, tool_use.name, count(*), sum(tool_use.failed),
    total(request.cost / (SELECT count(*) FROM tool_use AS other WHERE other.request = request.key)),
    sum(request.unpriced)
FROM request JOIN tool_use ON tool_use.request = request.key
WHERE request.origin IN tool_total_due GROUP BY 1, 2, 3
"""  # noqa: S608 - a constant

# The folders of sessions that have several, ordered so that the last row of a session is its own: that of its earliest
# request. What is no path was not told by a line, but is the name of a folder of transcripts.
_FOLDERS = """
SELECT client, session, project FROM (
    SELECT client, session, project, (SELECT min(first_at) FROM total WHERE origin = origin.id) AS began FROM origin
    WHERE (client, session) IN (SELECT client, session FROM origin GROUP BY 1, 2 HAVING min(project) < max(project))
) WHERE began IS NOT NULL ORDER BY project GLOB '/*', began DESC, length(project) DESC, project DESC
"""

_TOOL_USES = """
SELECT tool_use.id, name, cost / (SELECT count(*) FROM tool_use AS other WHERE other.request = request.key),
    project, session, agent, model
FROM tool_use JOIN request ON request.key = tool_use.request JOIN origin ON origin.id = request.origin
"""

IDS_ASKED = 500
"""In one query."""


class KnownFile(NamedTuple):
    """A transcript as it was read last. `head` tells it from one that replaced it (`transcripts.reading`), `state` is
    the reader's own JSON."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    consumed: int
    head: bytes
    state: str
    dropped: int


class StoredRequest(NamedTuple):
    """A row of `request`. `origin` is the id that `UsageWriter.origin` gives; `at` is Unix time in milliseconds."""

    key: int
    at: int
    origin: int
    input: int
    output: int
    write_5m: int
    write_1h: int
    read: int
    searches: int
    fast: bool
    sidechain: bool
    stated_cost: float | None
    cost: float | None
    unpriced: bool


class Total(NamedTuple):
    """Requests of one origin in one quarter of an hour; `bucket` counts quarters since 1970. `unpriced` of them are of
    models without known rates. `first_at` and `last_at` are Unix times in milliseconds. `project` is the folder of the
    session's first request: an agent's shell goes elsewhere, and the session remains that project's."""

    client: str
    project: str
    session: str
    agent: str
    model: str
    bucket: int
    requests: int
    input: int
    output: int
    write_5m: int
    write_1h: int
    read: int
    cost: float
    unpriced: int
    first_at: int
    last_at: int


class ToolTotal(NamedTuple):
    """Calls of one tool. `cost` is that of the requests whose answers called it, divided among their calls; `unpriced`
    calls are of requests without known rates."""

    client: str
    project: str
    session: str
    agent: str
    model: str
    bucket: int
    tool: str
    calls: int
    failed: int
    cost: float
    unpriced: int


class ToolUse(NamedTuple):
    """One call of a tool. `cost` is its part of its request's, None where that is unknown."""

    tool: str
    cost: float | None
    project: str
    session: str
    agent: str
    model: str


class UsageStore:
    """One connection; for one thread. Safe beside other processes that use the same file. Every method
    raises StoreError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._failing_plainly():
            self._connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            try:
                self._set_up()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "UsageStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def files(self) -> dict[str, KnownFile]:
        """By path."""
        with self._failing_plainly():
            return {row[0]: KnownFile._make(row) for row in self._connection.execute("SELECT * FROM file")}

    def dropped(self) -> int:
        """Lines that could not be read, in all files."""
        with self._failing_plainly():
            return int(self._connection.execute("SELECT ifnull(sum(dropped), 0) FROM file").fetchone()[0])

    def setting(self, name: str) -> str | None:
        with self._failing_plainly():
            found = self._connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
            return found[0] if found else None

    def has_session(self, session: str) -> bool:
        """Whether a transcript of it was read."""
        with self._failing_plainly():
            found = self._connection.execute("SELECT 1 FROM origin WHERE session = ? LIMIT 1", (session,))
            return found.fetchone() is not None

    def totals(self, since_bucket: int = 0, session: str | None = None) -> list[Total]:
        """Of quarters of an hour from `since_bucket` on."""
        return self._read(Total, "total", since_bucket, session)

    def tool_totals(self, since_bucket: int = 0, session: str | None = None) -> list[ToolTotal]:
        """The same of tools. Brought up to date here: few ask for them, and they take as long as all other totals."""
        with self._failing_plainly():
            if self._connection.execute("SELECT 1 FROM tool_total_due LIMIT 1").fetchone():
                with self._transaction():
                    self._connection.execute("DELETE FROM tool_total WHERE origin IN tool_total_due")
                    self._connection.execute(_TOOL_TOTALS)
                    self._connection.execute("DELETE FROM tool_total_due")
        return self._read(ToolTotal, "tool_total", since_bucket, session)

    def tool_uses(self, ids: Sequence[int]) -> dict[int, ToolUse]:
        """Those of these calls that are known, by id."""
        found: dict[int, ToolUse] = {}
        for start in range(0, len(ids), IDS_ASKED):
            part = ids[start : start + IDS_ASKED]
            query = f"{_TOOL_USES} WHERE tool_use.id IN ({', '.join('?' * len(part))})"
            with self._failing_plainly():
                found |= {row[0]: ToolUse._make(row[1:]) for row in self._connection.execute(query, part)}
        return found

    def _read(self, kind: Any, table: str, since_bucket: int, session: str | None) -> list[Any]:
        counted = (
            f"SELECT client, project, session, agent, model, {table}.* FROM {table} JOIN origin ON origin.id = origin"  # noqa: S608 - a constant
        )
        query = f"{counted} WHERE bucket >= ?"
        given: list[Any] = [since_bucket]
        if session is not None:
            query += " AND session = ?"
            given.append(session)
        with self._failing_plainly():
            begun = {(client, one): project for client, one, project in self._connection.execute(_FOLDERS)}
            return [
                kind._make((row[0], begun.get((row[0], row[2]), row[1]), *row[2:5], *row[6:]))
                for row in self._connection.execute(query, given)
            ]

    @contextmanager
    def writing(self) -> Generator["UsageWriter"]:
        """One transaction: all that is written in the block, with totals that fit, or nothing."""
        with self._failing_plainly(), self._transaction():
            writer = UsageWriter(self._connection)
            yield writer
            writer.bring_totals_up_to_date()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _set_up(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA cache_size = -32000")
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path} was written by a newer serena-central (schema {found}, this version knows "
                f"{SCHEMA_VERSION}). Update, or move the file away: usage is then read again from the transcripts."
            )
        self._connection.execute("CREATE TEMP TABLE touched (origin INTEGER PRIMARY KEY)")
        if found < SCHEMA_VERSION:
            self._migrate()
        # An update may take a request from one origin to another: the totals of both are made again.
        self._connection.execute(
            "CREATE TEMP TRIGGER moved AFTER UPDATE ON main.request BEGIN "
            "INSERT INTO touched SELECT old.origin WHERE old.origin NOT IN touched; "
            "INSERT INTO touched SELECT new.origin WHERE new.origin NOT IN touched; END"
        )

    def _migrate(self) -> None:
        self._connection.create_function("short", 1, _short)
        with self._transaction():
            (found,) = self._connection.execute("PRAGMA user_version").fetchone()
            statements = "" if found == SCHEMA_VERSION else _TO_3 if found else _SCHEMA
            for statement in filter(str.strip, statements.split(";")):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _failing_plainly(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # It is no cache: nobody is to move it away because it is locked or the disk is full.
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            advice = " Move it away: usage is then read again from the transcripts that still exist." if damaged else ""
            raise StoreError(f"The usage store {self._path} is not usable: {error}.{advice}") from error


def _short(key: bytes | None) -> int | None:
    return None if key is None else int.from_bytes(key[:8], signed=True)


class UsageWriter:
    """What one transaction writes; used inside `UsageStore.writing` only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("DELETE FROM temp.touched")

    def origin(self, parts: Sequence[str]) -> int:
        """The id of an origin: client, project, session, agent, model."""
        find = "SELECT id FROM origin WHERE client = ? AND project = ? AND session = ? AND agent = ? AND model = ?"
        found = self._connection.execute(find, parts).fetchone()
        if found is None:
            added = self._connection.execute(
                "INSERT INTO origin (client, project, session, agent, model) VALUES (?, ?, ?, ?, ?)", parts
            )
            assert added.lastrowid is not None
            return added.lastrowid
        return int(found[0])

    def put_requests(self, requests: Sequence[StoredRequest]) -> None:
        """Adds requests, or merges them with the rows of the same key."""
        self._connection.executemany(_MERGE, sorted(requests, key=itemgetter(0)))
        self._touch({one.origin for one in requests})

    def put_tools(self, tools: Iterable[tuple[int, int, str]]) -> None:
        """Calls of tools: id, key of the request, name."""
        self._connection.executemany(
            "INSERT INTO tool_use VALUES (?, ?, ?, 0) ON CONFLICT (id) DO UPDATE SET request = excluded.request, "
            "name = excluded.name WHERE request IS NULL",
            sorted(tools, key=itemgetter(0)),
        )

    def put_failures(self, tools: Sequence[int]) -> None:
        """Ids of calls that failed."""
        rows = [(tool,) for tool in tools]
        self._connection.executemany(
            "INSERT INTO tool_use VALUES (?, NULL, NULL, 1) ON CONFLICT (id) DO UPDATE SET failed = 1", rows
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO temp.touched SELECT origin FROM request WHERE key = "
            "(SELECT request FROM tool_use WHERE id = ?)",
            rows,
        )

    def put_file(self, file: KnownFile) -> None:
        self._connection.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)", file)

    def put_setting(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    def without_cost(self) -> list[tuple[StoredRequest, str]]:
        """Requests whose cost is to be found out, with their models."""
        query = (
            "SELECT request.*, model FROM request INDEXED BY request_to_price JOIN origin ON origin.id = origin "
            "WHERE cost IS NULL AND unpriced = 0"
        )
        return [(StoredRequest._make(row[:-1]), row[-1]) for row in self._connection.execute(query)]

    def forget_costs(self) -> None:
        self._connection.execute("UPDATE request SET cost = NULL, unpriced = 0")

    def put_costs(self, costs: Iterable[tuple[int, float | None]]) -> None:
        """By key of the request; None where the price is unknown."""
        rows = [(cost, cost is None, key) for key, cost in costs]
        self._connection.executemany("UPDATE request SET cost = ?, unpriced = ? WHERE key = ?", rows)

    def bring_totals_up_to_date(self) -> None:
        self._connection.execute("DELETE FROM total WHERE origin IN temp.touched")
        self._connection.execute(_TOTALS)
        self._connection.execute("INSERT OR IGNORE INTO tool_total_due SELECT origin FROM temp.touched")

    def _touch(self, origins: Iterable[int]) -> None:
        self._connection.executemany("INSERT OR IGNORE INTO temp.touched VALUES (?)", [(one,) for one in origins])
