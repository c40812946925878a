"""The named questions about ranges of time: calls, memory and edits, from totals that are kept as rows are written."""

import math
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Integer, cast, func, literal, select, union_all
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from serena_central.store.database import Database
from serena_central.store.query_results import CallBin, DayTotal, ToolStatistics
from serena_central.store.rows import CallTotalRow, DailyTotalRow, EditRow, MemoryTotalRow
from serena_central.store.spans import TimeRange
from serena_central.store.tables import METADATA

_CALLS, _MEMORY, _EDITS, _DAYS = (
    METADATA.tables[kind.table] for kind in (CallTotalRow, MemoryTotalRow, EditRow, DailyTotalRow)
)

MOST_PROJECTS = 50


class TotalQueries:
    """Every method raises StoreError when the database can't be used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tool_statistics(self, wanted: TimeRange, *, project: str = "") -> list[ToolStatistics]:
        """One entry per tool, the most called first; of whole spans, the first of which holds the beginning.

        Percentiles are means of the calls that took about as long: off by at most a tenth, and exact for few calls.
        """
        columns = _CALLS.columns
        days = _DAYS.columns
        # By name, since the tool stands before the time in the key.
        called = select(days.tool).where(days.day >= _day(wanted.since), days.day <= _day(wanted.until)).distinct()
        found = self._statistics(wanted, columns.tool, columns.project == project, columns.tool.in_(called))
        return sorted(found, key=lambda one: (-one.calls, one.tool))

    def project_statistics(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_statistics`, one entry per project, which stands as `tool`."""
        columns = _CALLS.columns
        projects = self.projects_called(wanted)
        found = self._statistics(wanted, columns.project, columns.project.in_(projects), columns.tool == tool)
        return sorted(found, key=lambda one: (-one.calls, one.tool))

    def projects_called(self, wanted: TimeRange) -> list[str]:
        """Projects with calls on the days of the range, those with the most first."""
        columns = _DAYS.columns
        calls = func.sum(columns.calls)
        chosen = select(columns.project).where(columns.project != "", columns.day >= _day(wanted.since))
        chosen = chosen.where(columns.day <= _day(wanted.until)).group_by(columns.project)
        chosen = chosen.order_by(calls.desc()).limit(MOST_PROJECTS)
        return self._database.read(lambda connection: list(connection.execute(chosen).scalars()))

    def calls_over_time(self, wanted: TimeRange, *, tool: str = "", project: str = "") -> list[CallBin]:
        """One entry for each bin in which calls ended, in order."""
        columns = _CALLS.columns
        start = _bin_of(columns.since, wanted)
        whole = [(wanted.span_s, wanted.start, math.ceil(wanted.until))]
        of_bins = self._grouped(whole, start, columns.project == project, columns.tool == tool)
        return [
            CallBin(
                at=int(at),
                calls=one.calls,
                errors=one.errors,
                p50_ms=one.p50_ms,
                p95_ms=one.p95_ms,
            )
            for at, one in of_bins
        ]

    def memory_over_time(self, wanted: TimeRange, *, root: str = "") -> list[tuple[int, int]]:
        """When a bin began and the most bytes that language servers took in it, for bins in which one ran."""
        columns = _MEMORY.columns
        span = min(wanted.span_s, 900)
        start = _bin_of(columns.since, wanted)
        chosen = select(start, func.max(columns.memory_bytes)).where(columns.span == span, columns.root == root)
        chosen = chosen.where(columns.since > wanted.since - span, columns.since < wanted.until)
        return self._pairs(chosen.group_by(start).order_by(start))

    def edits_over_time(self, wanted: TimeRange, *, tool: str = "", root: str = "") -> list[tuple[int, int]]:
        """When a bin began and how many edits were made in it, for bins with any."""
        columns = _EDITS.columns
        start = _bin_of(_WholeSecond(columns.at), wanted)
        chosen = select(start, func.count()).where(columns.at >= wanted.since, columns.at < wanted.until)
        if tool:
            chosen = chosen.where(columns.tool == tool)
        if root:
            chosen = chosen.where(columns.project_root == root)
        return self._pairs(chosen.group_by(start).order_by(start))

    def daily_totals(self, since_day: str) -> list[DailyTotalRow]:
        """From a day (ISO 8601) on, in order."""
        columns = _DAYS.columns
        chosen = select(_DAYS).where(columns.day >= since_day)
        chosen = chosen.order_by(columns.day, columns.tool, columns.project)
        return self._database.read(
            lambda connection: [DailyTotalRow(**row) for row in connection.execute(chosen).mappings()]
        )

    def totals_by_day(self) -> list[DayTotal]:
        """Every day on record, in order."""
        columns = _DAYS.columns
        sums = [_sum(columns[name]).label(name) for name in ("calls", "errors", "answer_chars")]
        chosen = select(columns.day, *sums).group_by(columns.day).order_by(columns.day)
        return self._database.read(
            lambda connection: [
                DayTotal(day=row["day"], **{one.name: int(row[one.name]) for one in sums})
                for row in connection.execute(chosen).mappings()
            ]
        )

    def _statistics(
        self, wanted: TimeRange, by: ColumnElement[str], *conditions: ColumnElement[bool]
    ) -> list[ToolStatistics]:
        return [one for _, one in self._grouped(wanted.stretches(), by, *conditions)]

    def _grouped(
        self, stretches: Sequence[tuple[int, int, int]], by: ColumnElement[Any], *conditions: ColumnElement[bool]
    ) -> list[tuple[Any, ToolStatistics]]:
        columns = _CALLS.columns
        added = [columns[name] for name in ("calls", "errors", "duration_ms", "answer_chars")]
        read = select(by.label("of"), columns.step, *added, columns.longest_ms).where(*conditions)
        parts = union_all(
            *(
                read.where(columns.span == span, columns.since >= start, columns.since < end)
                for span, start, end in stretches
            )
        ).subquery()
        sums = [_sum(parts.columns[one.name]).label(one.name) for one in added]
        chosen = select(
            parts.columns.of, parts.columns.step, *sums, func.max(parts.columns.longest_ms).label("longest_ms")
        )
        chosen = chosen.group_by(parts.columns.of, parts.columns.step).order_by(parts.columns.of, parts.columns.step)
        steps = self._database.read(lambda connection: connection.execute(chosen).all())
        return [(of, _of_steps(str(of), list(found))) for of, found in groupby(steps, key=lambda step: step.of)]

    def _pairs(self, chosen: Any) -> list[tuple[int, int]]:
        rows: Any = self._database.read(lambda connection: connection.execute(chosen).all())
        return [(int(row[0]), int(row[1])) for row in rows]


def _bin_of(since: ColumnElement[int], wanted: TimeRange) -> ColumnElement[int]:
    # In the text of the statement: PostgreSQL groups by the expression that it selects, where two parameters differ.
    return since - since % literal(wanted.bin_s, literal_execute=True)


class _WholeSecond(FunctionElement[int]):
    """The second in which something happened."""

    type = Integer()
    inherit_cache = True


@compiles(_WholeSecond)
def _truncating(element: _WholeSecond, compiler: SQLCompiler, **how: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **how)} AS INTEGER)"


@compiles(_WholeSecond, "postgresql")
def _rounding(element: _WholeSecond, compiler: SQLCompiler, **how: Any) -> str:
    # Its casts round.
    return f"CAST(FLOOR({compiler.process(element.clauses, **how)}) AS BIGINT)"


def _sum(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """PostgreSQL makes decimals of the sums of large integers."""
    return cast(func.sum(column), column.type)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _of_steps(tool: str, steps: Sequence[Any]) -> ToolStatistics:
    """`steps`: sums of the calls that took about as long, the quickest first."""
    calls = sum(step.calls for step in steps)

    def percentile(percent: int) -> float:
        wanted, passed = calls * percent / 100, 0
        for step in steps:
            passed += step.calls
            if passed >= wanted:
                return step.duration_ms / step.calls
        return 0.0

    return ToolStatistics(
        tool=tool,
        calls=calls,
        errors=sum(step.errors for step in steps),
        average_ms=sum(step.duration_ms for step in steps) / calls,
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        max_ms=max(step.longest_ms for step in steps),
        answer_chars=sum(step.answer_chars for step in steps),
    )
