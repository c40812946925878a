"""Turns rows into statements: one upsert or insert per run of rows of a table, and the totals that calls add up to."""

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Connection, Delete, Dialect, Insert, and_, bindparam, case, delete
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError

from serena_central.store.rows import (
    ACCOUNTS,
    AccountRow,
    CallStepRow,
    CallTotalRow,
    Change,
    HostedRootRow,
    MemoryTotalRow,
    Notice,
    Removal,
    Row,
    ToolCallRow,
)
from serena_central.store.spans import SPANS_S
from serena_central.store.tables import METADATA

STEPS_OF_A_DOUBLING = 4
"""What is alike differs by no more than a fifth."""

LEAST_MS = 0.001

STATEMENT_ROWS = 50
"""Rows added by one statement: the driver lets go of Python's lock at each, and is let in again after the others'
turns. A compiled statement is kept for each number of rows: at most 2 MB."""


_GREATEST: dict[type[Row], tuple[str, ...]] = {CallTotalRow: ("longest_ms",), MemoryTotalRow: ("memory_bytes",)}
"""Columns of which the greatest value is kept."""


def execute_all(connection: Connection, rows: Sequence[Change]) -> int:
    """Writes all rows or raises. Returns 0: none was refused."""
    by_kind: dict[type[Row], list[Row]] = {}
    removed: dict[type[Row], list[tuple[Any, ...]]] = {}
    notices: list[Notice] = []
    for row in [*rows, *_totals(rows)]:
        if isinstance(row, Removal):
            removed.setdefault(row.kind, []).append(row.key)
        elif isinstance(row, Notice):
            notices.append(row)
        else:
            by_kind.setdefault(type(row), []).append(row)
    for kind, keys in removed.items():
        connection.execute(_deletion(kind), [dict(zip(kind.key, key, strict=True)) for key in keys])
    for kind, items in by_kind.items():
        if connection.dialect.name == "sqlite":
            _prepared(kind, connection.dialect).write(connection, items)
        else:
            connection.execute(_insert(connection.dialect.name, kind), [_plain(row) for row in items])
    if AccountRow in by_kind:  # also where a command writes them, past all servers
        notices.append(Notice(ACCOUNTS))
    if notices and connection.dialect.name == "postgresql":
        _notify(connection, notices)
    return 0


def execute_each(connection: Connection, rows: Iterable[Change]) -> int:
    """Writes what can be written, and returns how many rows were refused."""
    refused = 0
    for row in rows:
        try:
            with connection.begin_nested():
                execute_all(connection, [row])
        except (SQLAlchemyError, ValueError, OverflowError) as error:
            if connection.invalidated:
                raise  # the connection is lost, and no row is to blame
            refused += not (isinstance(row, Row) and not row.key and _is_there(connection, error))
    return refused


def _is_there(connection: Connection, error: Exception) -> bool:
    """Whether a row that is only ever added was added before: its batch was committed, and the answer to that lost."""
    if connection.dialect.name != "postgresql":
        return False
    from serena_central.store.postgresql import UNIQUE_VIOLATION, sqlstate

    return sqlstate(error) == UNIQUE_VIOLATION


def _plain(row: Row) -> dict[str, Any]:
    values = msgspec.structs.asdict(row.as_written())
    if not row.key and values["id"] is None:
        del values["id"]
    return values


def insert_if_new(connection: Connection, row: Row) -> bool:
    """Writes a row unless one with its key is there; waits for a transaction that is just writing that."""
    statement = _dialects_insert(connection.dialect.name, type(row)).on_conflict_do_nothing()
    return connection.execute(statement, _plain(row)).rowcount > 0


def place_root(connection: Connection, row: HostedRootRow) -> int:
    """Writes which host holds a root, under the epoch after the one before, or under `row.epoch` if there was none;
    returns it. Waits for those who are just relying on the host before."""
    statement = _dialects_insert(connection.dialect.name, HostedRootRow)
    epoch = METADATA.tables[HostedRootRow.table].columns["epoch"]
    changes = {"epoch": epoch + 1, "node": row.node, "host": row.host}
    placed = statement.on_conflict_do_update(index_elements=["root"], set_=changes).returning(epoch)
    return connection.execute(placed, _plain(row)).scalar_one()


def _dialects_insert(dialect: str, kind: type[Row]) -> Any:
    table = METADATA.tables[kind.table]
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # a tenth of a second, for those who need it

        return postgresql.insert(table)
    return sqlite.insert(table)


@cache
def _insert(dialect: str, kind: type[Row]) -> Insert:
    table = METADATA.tables[kind.table]
    statement = _dialects_insert(dialect, kind)
    if not kind.key:
        return statement
    new = statement.excluded
    others = [column.name for column in table.columns if column.name not in kind.key]
    if kind in (CallTotalRow, CallStepRow):
        changes: dict[str, Any] = {name: table.columns[name] + new[name] for name in others}
    else:
        changes = {name: new[name] for name in others}
    for name in _GREATEST.get(kind, ()):
        own = table.columns[name]
        changes[name] = case((own > new[name], own), else_=new[name])
    return statement.on_conflict_do_update(index_elements=list(kind.key), set_=changes)


class _Prepared:
    """Writes one kind of rows as SQLite's driver takes them. Beside calls these are thousands a second: SQLAlchemy
    makes the parameters of each by itself, which takes half of the time."""

    def __init__(self, kind: type[Row], dialect: Dialect) -> None:
        compiled = _insert(dialect.name, kind).compile(dialect=dialect)
        before, values, after = str(compiled).partition(" VALUES ")
        self._row, _, self._after = after.partition(")")
        self._before = before + values
        columns = METADATA.tables[kind.table].columns
        names = compiled.positiontup or []
        self._values = attrgetter(*names)  # each table has several columns, so that this returns a tuple
        processors = [columns[name].type.dialect_impl(dialect).bind_processor(dialect) for name in names]
        self._processors = [(place, process) for place, process in enumerate(processors) if process is not None]
        self._texts: dict[int, str] = {}

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Many rows by one statement: after each the driver waits for Python's lock."""
        for start in range(0, len(rows), STATEMENT_ROWS):
            some = rows[start : start + STATEMENT_ROWS]
            try:
                parameters = tuple(itertools.chain.from_iterable(self._parameters(row.as_written()) for row in some))
            except (TypeError, RecursionError) as error:  # one row is to blame: the others are written without it
                raise ValueError(f"a value can't be written: {error}") from error
            connection.exec_driver_sql(self._text(len(some)), parameters)

    def _text(self, rows: int) -> str:
        if rows not in self._texts:
            self._texts[rows] = f"{self._before}{', '.join([f'{self._row})'] * rows)}{self._after}"
        return self._texts[rows]

    def _parameters(self, row: Row) -> list[Any]:
        values = list(self._values(row))
        for place, process in self._processors:
            values[place] = process(values[place])
        return values


@cache
def _prepared(kind: type[Row], dialect: Dialect) -> _Prepared:
    return _Prepared(kind, dialect)


def _notify(connection: Connection, notices: Iterable[Notice]) -> None:
    from serena_central.store.postgresql import notify

    notify(connection, notices)


@cache
def _deletion(kind: type[Row]) -> Delete:
    """Of a row by the columns of its key."""
    table = METADATA.tables[kind.table]
    return delete(table).where(and_(*(table.columns[name] == bindparam(name) for name in kind.key)))


def _totals(rows: Iterable[Change]) -> list[Row]:
    """What the calls among `rows` add to the totals of their spans, tools and projects. Calls that are alike are added
    up first: most of those that are written together are of a few tools, in the same minute."""
    alike: dict[tuple[str, str, int, int], _Sum] = {}
    for row in rows:
        if isinstance(row, ToolCallRow):
            step = round(STEPS_OF_A_DOUBLING * math.log2(max(row.duration_ms, LEAST_MS)))
            key = (row.project or "", row.tool, int(row.at // SPANS_S[0]) * SPANS_S[0], step)
            found = alike.get(key)
            if found is None:
                found = alike[key] = _Sum()
            found.calls += 1
            found.errors += row.outcome != "ok"
            found.duration_ms += row.duration_ms
            found.longest_ms = max(found.longest_ms, row.duration_ms)
            found.answer_chars += row.answer_chars
    totals: dict[tuple[int, str, str, int], CallTotalRow] = {}
    steps: dict[tuple[int, str, str, int, int], CallStepRow] = {}
    for (of_project, of_tool, at, step), calls in alike.items():
        for span, project, tool in itertools.product(SPANS_S, {of_project, ""}, {of_tool, ""}):
            key = (span, project, tool, at // span * span)
            _add(totals, calls, key)
            _add_to_step(steps, calls, (*key, step))
    return [*totals.values(), *steps.values()]


class _Sum:
    """Of calls."""

    __slots__ = ("answer_chars", "calls", "duration_ms", "errors", "longest_ms")

    def __init__(self) -> None:
        self.calls = self.errors = self.answer_chars = 0
        self.duration_ms = self.longest_ms = 0.0


def _add(totals: dict[tuple[int, str, str, int], CallTotalRow], calls: _Sum, key: tuple[int, str, str, int]) -> None:
    total = totals.get(key)
    if total is None:
        span, project, tool, since = key
        total = totals[key] = CallTotalRow(span=span, project=project, tool=tool, since=since)
    total.calls += calls.calls
    total.errors += calls.errors
    total.duration_ms += calls.duration_ms
    total.longest_ms = max(total.longest_ms, calls.longest_ms)
    total.answer_chars += calls.answer_chars


def _add_to_step(
    steps: dict[tuple[int, str, str, int, int], CallStepRow], calls: _Sum, key: tuple[int, str, str, int, int]
) -> None:
    of_step = steps.get(key)
    if of_step is None:
        span, project, tool, since, step = key
        of_step = steps[key] = CallStepRow(span=span, project=project, tool=tool, since=since, step=step)
    of_step.calls += calls.calls
    of_step.duration_ms += calls.duration_ms
