"""The named questions about ranges of time: calls, memory and edits, from totals that are kept as rows are written."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Integer, Select, Table, cast, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from serena_central.store.database import Database
from serena_central.store.query_results import CallBin, DayTotal, ToolStatistics
from serena_central.store.rows import CallStepRow, CallTotalRow, EditRow, MemoryTotalRow
from serena_central.store.spans import SPANS_S, TimeRange
from serena_central.store.tables import METADATA

_CALLS, _STEPS, _MEMORY, _EDITS = (
    METADATA.tables[kind.table] for kind in (CallTotalRow, CallStepRow, MemoryTotalRow, EditRow)
)

MOST_PROJECTS = 50

NO_CALLS = 0.0, 0.0
"""Percentiles where none is on record: totals and what percentiles are read from are not deleted at once."""


class TotalQueries:
    """Every method raises StoreError when the database can't be used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tool_statistics(self, wanted: TimeRange, *, project: str = "") -> list[ToolStatistics]:
        """One entry per tool, the most called first; of whole spans, the first of which holds the beginning.

        Percentiles are means of the calls that took about as long: off by at most a tenth, and exact for few calls.
        """
        return self.with_percentiles_of_tools(wanted, self.tool_totals(wanted, project=project), project=project)

    def tool_totals(self, wanted: TimeRange, *, project: str = "") -> list[ToolStatistics]:
        """As `tool_statistics`, without percentiles, which are several times as much to read."""
        columns = _CALLS.columns
        # By name, since the tool stands before the time in the key.
        names = self.tools_on_record(project)
        return self._totals(wanted, columns.tool, columns.project == project, columns.tool.in_(names))

    def with_percentiles_of_tools(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, project: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `tool_totals`, in their order."""
        columns = _STEPS.columns
        own = columns.tool.in_([one.tool for one in totals])
        return self._with_percentiles(wanted, totals, columns.tool, columns.project == project, own)

    def project_statistics(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_statistics`, one entry per project, which stands as `tool`."""
        return self.with_percentiles_of_projects(wanted, self.project_totals(wanted, tool=tool), tool=tool)

    def project_totals(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_totals`, one entry per project, which stands as `tool`: those with the most calls."""
        columns = _CALLS.columns
        names = self.projects_on_record()
        found = self._totals(wanted, columns.project, columns.project.in_(names), columns.tool == tool)
        return found[:MOST_PROJECTS]

    def with_percentiles_of_projects(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, tool: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `project_totals`, in their order."""
        columns = _STEPS.columns
        own = columns.project.in_([one.tool for one in totals])
        return self._with_percentiles(wanted, totals, columns.project, own, columns.tool == tool)

    def projects_called(self, wanted: TimeRange) -> list[str]:
        """Projects with calls on the days of the range, those with the most first."""
        columns = _CALLS.columns
        days = columns.span == SPANS_S[-1], columns.since > wanted.since - SPANS_S[-1], columns.since < wanted.until
        chosen = select(columns.project).where(
            *days, columns.tool == "", columns.project.in_(self.projects_on_record())
        )
        chosen = chosen.group_by(columns.project).order_by(func.sum(columns.calls).desc()).limit(MOST_PROJECTS)
        return [str(project) for (project,) in self._database.read_at_once([chosen])]

    def calls_over_time(self, wanted: TimeRange, *, tool: str = "", project: str = "") -> list[CallBin]:
        """One entry for each bin in which calls ended, in order."""

        def of_range(table: Table) -> list[ColumnElement[bool]]:
            columns = table.columns
            own = columns.span == wanted.span_s, columns.project == project, columns.tool == tool
            return [*own, columns.since >= wanted.start, columns.since < math.ceil(wanted.until)]

        start, by_step = (_bin_of(table.columns.since, wanted) for table in (_CALLS, _STEPS))
        sums = [_sum(_CALLS.columns[name]) for name in ("calls", "errors")]
        totals, steps = self._database.read_each_at_once(
            [select(start, *sums).where(*of_range(_CALLS)).group_by(start), _by_step(by_step, *of_range(_STEPS))]
        )
        found = _percentiles_of_each(steps)
        return [
            CallBin(at=int(at), calls=calls, errors=errors, p50_ms=p50_ms, p95_ms=p95_ms)
            for at, calls, errors in sorted(totals)
            for p50_ms, p95_ms in [found.get(at, NO_CALLS)]
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

    def totals_by_day(self) -> list[DayTotal]:
        """Every day on record, in order."""
        columns = _CALLS.columns
        own = columns.span == SPANS_S[-1], columns.project == "", columns.tool == ""
        chosen = select(columns.since, columns.calls, columns.errors, columns.answer_chars).where(*own)
        return [
            DayTotal(day=time.strftime("%Y-%m-%d", time.gmtime(since)), calls=calls, errors=errors, answer_chars=chars)
            for since, calls, errors, chars in self._database.read_at_once([chosen.order_by(columns.since)])
        ]

    def tools_on_record(self, project: str = "") -> list[str]:
        """Tools with calls on record in this project, or in any."""
        columns = _CALLS.columns
        return self._names(columns.tool, columns.project == project)

    def projects_on_record(self) -> list[str]:
        """Projects with calls on record."""
        return self._names(_CALLS.columns.project)

    def _names(self, name: ColumnElement[str], *own: ColumnElement[bool]) -> list[str]:
        """The tools or projects of which there are totals: one step in the key for each, not one for each row."""
        columns = _CALLS.columns
        first = select(func.min(name).label("name")).where(columns.span == SPANS_S[-1], name > "", *own)
        names = first.cte("names", recursive=True)
        following = select(func.min(name)).where(columns.span == SPANS_S[-1], name > names.columns.name, *own)
        names = names.union_all(select(following.scalar_subquery()).where(names.columns.name.is_not(None)))
        chosen = select(names.columns.name).where(names.columns.name.is_not(None))
        return [str(name) for (name,) in self._database.read_at_once([chosen])]

    def _totals(self, wanted: TimeRange, by: ColumnElement[str], *own: ColumnElement[bool]) -> list[ToolStatistics]:
        """Without percentiles; the most called first."""
        columns = _CALLS.columns
        sums = [_sum(columns[name]) for name in ("calls", "errors", "duration_ms", "answer_chars")]

        def chosen(*of_stretch: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
            return select(by, *sums, func.max(columns.longest_ms)).where(*own, *of_stretch).group_by(by)

        found: dict[str, ToolStatistics] = {}
        for of, calls, errors, duration_ms, answer_chars, longest_ms in self._of_stretches(_CALLS, wanted, chosen):
            before = found.get(of) or ToolStatistics(of, 0, 0, 0.0, 0, 0.0)
            found[of] = ToolStatistics(
                of,
                before.calls + calls,
                before.errors + errors,
                before.duration_ms + duration_ms,
                before.answer_chars + answer_chars,
                max(before.max_ms, longest_ms),
            )
        return sorted(found.values(), key=lambda one: (-one.calls, one.tool))

    def _with_percentiles(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], by: ColumnElement[str], *own: ColumnElement[bool]
    ) -> list[ToolStatistics]:
        found = _percentiles_of_each(
            self._of_stretches(_STEPS, wanted, lambda *of_stretch: _by_step(by, *own, *of_stretch))
        )
        return [
            msgspec.structs.replace(one, p50_ms=p50_ms, p95_ms=p95_ms)
            for one in totals
            for p50_ms, p95_ms in [found.get(one.tool, NO_CALLS)]
        ]

    def _of_stretches(
        self, table: Table, wanted: TimeRange, chosen: Callable[..., Select[*tuple[Any, ...]]]
    ) -> Sequence[Sequence[Any]]:
        """What `chosen` finds in each of the longest spans that cover the range, by the conditions that it is given:
        each in the order of the key, which the database would sort again if it were to put them together."""
        columns = table.columns
        return self._database.read_at_once(
            [
                chosen(columns.span == span, columns.since >= start, columns.since < end)
                for span, start, end in wanted.stretches()
            ]
        )

    def _pairs(self, chosen: Select[*tuple[Any, ...]]) -> list[tuple[int, int]]:
        return [(int(at), int(count)) for at, count in self._database.read_at_once([chosen])]


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


def _by_step(of: ColumnElement[Any], *own: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """For each value of `of`, and for calls that took about as long: the step, calls and duration."""
    columns = _STEPS.columns
    sums = [_sum(columns[name]) for name in ("calls", "duration_ms")]
    return select(of, columns.step, *sums).where(*own).group_by(of, columns.step)


def _percentiles_of_each(steps: Iterable[Sequence[Any]]) -> dict[Any, tuple[float, float]]:
    """The 50th and the 95th of rows of `_by_step`, of one stretch of time or of several, by their first value."""
    found: dict[Any, dict[int, tuple[int, float]]] = {}
    for of, step, calls, duration_ms in steps:
        together = found.setdefault(of, {})
        before = together.get(step, (0, 0.0))
        together[step] = before[0] + calls, before[1] + duration_ms
    return {of: _percentiles([together[step] for step in sorted(together)]) for of, together in found.items()}


def _percentiles(quickest_first: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Of calls that took about as long: how many, and how long together."""
    calls = sum(count for count, _ in quickest_first)

    def percentile(percent: int) -> float:
        wanted, passed = calls * percent / 100, 0
        for count, duration_ms in quickest_first:
            passed += count
            if passed >= wanted:
                return duration_ms / count
        return 0.0

    return percentile(50), percentile(95)
