"""The named questions about ranges of time: calls, memory and edits, from totals that are kept as rows are written."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Integer, Select, cast, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from serena_central.store.database import Database
from serena_central.store.query_results import CallBin, DayTotal, ToolStatistics
from serena_central.store.rows import CallTotalRow, DailyTotalRow, EditRow, MemoryTotalRow
from serena_central.store.spans import SPANS_S, TimeRange
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
        return self.with_percentiles_of_tools(wanted, self.tool_totals(wanted, project=project), project=project)

    def tool_totals(self, wanted: TimeRange, *, project: str = "") -> list[ToolStatistics]:
        """As `tool_statistics`, without percentiles, which are several times as much to read."""
        columns = _CALLS.columns
        # By name, since the tool stands before the time in the key.
        names = self._names(columns.tool, columns.project == project)
        return self._totals(wanted, columns.tool, columns.project == project, columns.tool.in_(names))

    def with_percentiles_of_tools(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, project: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `tool_totals`, in their order."""
        columns = _CALLS.columns
        own = columns.tool.in_([one.tool for one in totals])
        return self._with_percentiles(wanted, totals, columns.tool, columns.project == project, own)

    def project_statistics(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_statistics`, one entry per project, which stands as `tool`."""
        return self.with_percentiles_of_projects(wanted, self.project_totals(wanted, tool=tool), tool=tool)

    def project_totals(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_totals`, one entry per project, which stands as `tool`: those with the most calls."""
        columns = _CALLS.columns
        names = self._names(columns.project)
        found = self._totals(wanted, columns.project, columns.project.in_(names), columns.tool == tool)
        return found[:MOST_PROJECTS]

    def with_percentiles_of_projects(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, tool: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `project_totals`, in their order."""
        columns = _CALLS.columns
        own = columns.project.in_([one.tool for one in totals])
        return self._with_percentiles(wanted, totals, columns.project, own, columns.tool == tool)

    def projects_called(self, wanted: TimeRange) -> list[str]:
        """Projects with calls on the days of the range, those with the most first."""
        columns = _CALLS.columns
        days = columns.span == SPANS_S[-1], columns.since > wanted.since - SPANS_S[-1], columns.since < wanted.until
        chosen = select(columns.project).where(
            *days, columns.tool == "", columns.project.in_(self._names(columns.project))
        )
        chosen = chosen.group_by(columns.project).order_by(func.sum(columns.calls).desc()).limit(MOST_PROJECTS)
        return [str(project) for (project,) in self._database.read_at_once([chosen])]

    def calls_over_time(self, wanted: TimeRange, *, tool: str = "", project: str = "") -> list[CallBin]:
        """One entry for each bin in which calls ended, in order."""
        columns = _CALLS.columns
        start = _bin_of(columns.since, wanted)
        of_range = columns.since >= wanted.start, columns.since < math.ceil(wanted.until)
        own = columns.span == wanted.span_s, columns.project == project, columns.tool == tool
        steps = self._database.read_at_once([_by_step(start, *own, *of_range)])
        bins: list[CallBin] = []
        for at, found in groupby(sorted(steps), key=itemgetter(0)):
            of_bin = list(found)
            p50_ms, p95_ms = _percentiles(of_bin)
            calls, errors = (sum(step[field] for step in of_bin) for field in (2, 4))
            bins.append(CallBin(at=int(at), calls=calls, errors=errors, p50_ms=p50_ms, p95_ms=p95_ms))
        return bins

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
        for of, calls, errors, duration_ms, answer_chars, longest_ms in self._of_stretches(wanted, chosen):
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
        steps: dict[str, list[Sequence[Any]]] = {one.tool: [] for one in totals}
        for step in self._of_stretches(wanted, lambda *of_stretch: _by_step(by, *own, *of_stretch)):
            steps[step[0]].append(step)
        found = {of: _percentiles(of_one) for of, of_one in steps.items()}
        return [msgspec.structs.replace(one, p50_ms=found[one.tool][0], p95_ms=found[one.tool][1]) for one in totals]

    def _of_stretches(
        self, wanted: TimeRange, chosen: Callable[..., Select[*tuple[Any, ...]]]
    ) -> Sequence[Sequence[Any]]:
        """What `chosen` finds in each of the longest spans that cover the range, by the conditions that it is given:
        each in the order of the key, which the database would sort again if it were to put them together."""
        columns = _CALLS.columns
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
    """For each value of `of`, and for calls that took about as long: the step, calls, duration and errors."""
    columns = _CALLS.columns
    sums = [_sum(columns[name]) for name in ("calls", "duration_ms", "errors")]
    return select(of, columns.step, *sums).where(*own).group_by(of, columns.step)


def _percentiles(steps: Sequence[Sequence[Any]]) -> tuple[float, float]:
    """The 50th and the 95th of rows of `_by_step`, of one stretch of time or of several."""
    together: dict[int, tuple[int, float]] = {}
    for _, step, calls, duration_ms, _ in steps:
        before = together.get(step, (0, 0.0))
        together[step] = before[0] + calls, before[1] + duration_ms
    quickest_first = [together[step] for step in sorted(together)]
    calls = sum(count for count, _ in quickest_first)

    def percentile(percent: int) -> float:
        wanted, passed = calls * percent / 100, 0
        for count, duration_ms in quickest_first:
            passed += count
            if passed >= wanted:
                return duration_ms / count
        return 0.0

    return percentile(50), percentile(95)
