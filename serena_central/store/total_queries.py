"""The named questions about ranges of time: calls, memory and edits, from totals that are kept as rows are written."""

import math
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Integer, Table, bindparam, cast, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from serena_central.store.database import AnySelect, Database, Parameters
from serena_central.store.query_results import CallBin, DayTotal, ToolStatistics
from serena_central.store.rows import CallStepRow, CallTotalRow, EditRow, MemoryTotalRow
from serena_central.store.spans import SPANS_S, TimeRange
from serena_central.store.tables import METADATA

_CALLS, _STEPS, _MEMORY, _EDITS = (
    METADATA.tables[kind.table] for kind in (CallTotalRow, CallStepRow, MemoryTotalRow, EditRow)
)

MOST_PROJECTS = 50

By = Literal["tool", "project"]
"""What there is a total of each of."""

_OTHER: dict[By, By] = {"tool": "project", "project": "tool"}

NO_CALLS = 0.0, 0.0
"""Percentiles where none is on record: totals and what percentiles are read from are not deleted at once."""


class TotalQueries:
    """Every method raises StoreError when the database can't be used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tool_totals(self, wanted: TimeRange, *, project: str = "") -> list[ToolStatistics]:
        """One entry per tool, the most called first; of whole spans, the first of which holds the beginning. Without
        percentiles, which are several times as much to read."""
        return self._totals(wanted, "tool", project)

    def with_percentiles_of_tools(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, project: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `tool_totals`, in their order. Percentiles are means of the calls that took about as long:
        off by at most a tenth, and exact for few calls."""
        return self._with_percentiles(wanted, totals, "tool", project)

    def project_totals(self, wanted: TimeRange, *, tool: str = "") -> list[ToolStatistics]:
        """As `tool_totals`, one entry per project, which stands as `tool`: those with the most calls."""
        return self._totals(wanted, "project", tool)[:MOST_PROJECTS]

    def with_percentiles_of_projects(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], *, tool: str = ""
    ) -> list[ToolStatistics]:
        """These entries of `project_totals`, in their order."""
        return self._with_percentiles(wanted, totals, "project", tool)

    def projects_called(self, wanted: TimeRange) -> list[str]:
        """Projects with calls on the days of the range, those with the most first."""
        days = {"since": math.floor(wanted.since) - SPANS_S[-1], "until": math.ceil(wanted.until)}
        return [str(project) for (project,) in self._database.read_at_once([_projects_called()], days)]

    def calls_over_time(self, wanted: TimeRange, *, tool: str = "", project: str = "") -> list[CallBin]:
        """One entry for each bin in which calls ended, in order."""
        parameters = {
            "span": wanted.span_s,
            "project": project,
            "tool": tool,
            "start": wanted.start,
            "end": math.ceil(wanted.until),
        }
        totals, steps = self._database.read_each_at_once(_over_time(wanted.span_s, wanted.bin_s), parameters)
        found = _percentiles_of_each(steps)
        return [
            CallBin(at=int(at), calls=calls, errors=errors, p50_ms=p50_ms, p95_ms=p95_ms)
            for at, calls, errors in sorted(totals)
            for p50_ms, p95_ms in [found.get(at, NO_CALLS)]
        ]

    def memory_over_time(self, wanted: TimeRange, *, root: str = "") -> list[tuple[int, int]]:
        """When a bin began and the most bytes that language servers took in it, for bins in which one ran."""
        span = min(wanted.span_s, 900)
        parameters = {
            "span": span,
            "root": root,
            "since": math.floor(wanted.since) - span,
            "until": math.ceil(wanted.until),
        }
        return self._pairs(_memory(wanted.bin_s), parameters)

    def edits_over_time(self, wanted: TimeRange, *, tool: str = "", root: str = "") -> list[tuple[int, int]]:
        """When a bin began and how many edits were made in it, for bins with any."""
        only = {name: value for name, value in (("tool", tool), ("project_root", root)) if value}
        parameters = {"since": wanted.since, "until": wanted.until, **only}
        return self._pairs(_edits(wanted.bin_s, tuple(only)), parameters)

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
        return self._listed(_names(columns.tool, columns.project == project))

    def projects_on_record(self) -> list[str]:
        """Projects with calls on record."""
        return self._listed(_names(_CALLS.columns.project))

    def _listed(self, names: AnySelect) -> list[str]:
        return [str(name) for (name,) in self._database.read_at_once([names])]

    def _totals(self, wanted: TimeRange, by: By, of: str) -> list[ToolStatistics]:
        """Without percentiles, the most called first: by tool `of` a project, or by project `of` a tool; "" for all."""
        stretches = wanted.stretches()
        rows = self._database.read_at_once(_totals_of(by, len(stretches)), {**_bounds(stretches), "of": of})
        found: dict[str, ToolStatistics] = {}
        for name, calls, errors, duration_ms, answer_chars, longest_ms in rows:
            before = found.get(name) or ToolStatistics(name, 0, 0, 0.0, 0, 0.0)
            found[name] = ToolStatistics(
                name,
                before.calls + calls,
                before.errors + errors,
                before.duration_ms + duration_ms,
                before.answer_chars + answer_chars,
                max(before.max_ms, longest_ms),
            )
        return sorted(found.values(), key=lambda one: (-one.calls, one.tool))

    def _with_percentiles(
        self, wanted: TimeRange, totals: Sequence[ToolStatistics], by: By, of: str
    ) -> list[ToolStatistics]:
        stretches = wanted.stretches()
        parameters = {**_bounds(stretches), "of": of, "names": [one.tool for one in totals]}
        found = _percentiles_of_each(self._database.read_at_once(_steps_of(by, len(stretches)), parameters))
        return [
            msgspec.structs.replace(one, p50_ms=p50_ms, p95_ms=p95_ms)
            for one in totals
            for p50_ms, p95_ms in [found.get(one.tool, NO_CALLS)]
        ]

    def _pairs(self, chosen: AnySelect, parameters: Parameters) -> list[tuple[int, int]]:
        return [(int(at), int(count)) for at, count in self._database.read_at_once([chosen], parameters)]


def _names(name: ColumnElement[str], *own: ColumnElement[bool]) -> AnySelect:
    """The tools or projects of which there are totals: one step in the key for each, not one for each row."""
    columns = _CALLS.columns
    first = select(func.min(name).label("name")).where(columns.span == SPANS_S[-1], name > "", *own)
    names = first.cte("names", recursive=True)
    following = select(func.min(name)).where(columns.span == SPANS_S[-1], name > names.columns.name, *own)
    names = names.union_all(select(following.scalar_subquery()).where(names.columns.name.is_not(None)))
    return select(names.columns.name).where(names.columns.name.is_not(None))


@cache
def _projects_called() -> AnySelect:
    columns = _CALLS.columns
    days = columns.since > bindparam("since"), columns.since < bindparam("until")
    of_all = columns.span == SPANS_S[-1], columns.tool == "", columns.project.in_(_names(columns.project))
    chosen = select(columns.project).where(*of_all, *days).group_by(columns.project)
    return chosen.order_by(func.sum(columns.calls).desc()).limit(MOST_PROJECTS)


@cache
def _over_time(span_s: int, bin_s: int) -> tuple[AnySelect, AnySelect]:
    """Calls in each bin of totals of that span, and their steps."""

    def of_range(table: Table) -> list[ColumnElement[bool]]:
        columns = table.columns
        own = [columns[name] == bindparam(name) for name in ("span", "project", "tool")]
        return [*own, columns.since >= bindparam("start"), columns.since < bindparam("end")]

    # Where a bin is a span, they are grouped as the key has them, and not sorted first.
    start, of_step = (
        table.columns.since if span_s == bin_s else _bin_of(table.columns.since, bin_s) for table in (_CALLS, _STEPS)
    )
    sums = [_sum(_CALLS.columns[name]) for name in ("calls", "errors")]
    return select(start, *sums).where(*of_range(_CALLS)).group_by(start), _by_step(of_step, *of_range(_STEPS))


@cache
def _memory(bin_s: int) -> AnySelect:
    columns = _MEMORY.columns
    start = _bin_of(columns.since, bin_s)
    own = columns.span == bindparam("span"), columns.root == bindparam("root")
    chosen = select(start, func.max(columns.memory_bytes)).where(*own)
    chosen = chosen.where(columns.since > bindparam("since"), columns.since < bindparam("until"))
    return chosen.group_by(start).order_by(start)


@cache
def _edits(bin_s: int, only: tuple[str, ...]) -> AnySelect:
    """In each bin; `only` are columns with a wanted value."""
    columns = _EDITS.columns
    start = _bin_of(_WholeSecond(columns.at), bin_s)
    chosen = select(start, func.count()).where(columns.at >= bindparam("since"), columns.at < bindparam("until"))
    chosen = chosen.where(*(columns[name] == bindparam(name) for name in only))
    return chosen.group_by(start).order_by(start)


@cache
def _totals_of(by: By, stretches: int) -> tuple[AnySelect, ...]:
    columns = _CALLS.columns
    name = columns[by]
    # By name, since the tool stands before the time in the key.
    own = columns[_OTHER[by]] == bindparam("of"), name.in_(_names(name, *_names_of(by)))
    sums = [_sum(columns[one]) for one in ("calls", "errors", "duration_ms", "answer_chars")]
    chosen = select(name, *sums, func.max(columns.longest_ms)).group_by(name)
    return tuple(chosen.where(*own, *_of_stretch(_CALLS, number)) for number in range(stretches))


def _names_of(by: By) -> list[ColumnElement[bool]]:
    """Of which names there may be totals: tools have some in each project that they were called in."""
    return [_CALLS.columns.project == bindparam("of")] if by == "tool" else []


@cache
def _steps_of(by: By, stretches: int) -> tuple[AnySelect, ...]:
    columns = _STEPS.columns
    own = columns[_OTHER[by]] == bindparam("of"), columns[by].in_(bindparam("names", expanding=True))
    return tuple(_by_step(columns[by], *own, *_of_stretch(_STEPS, number)) for number in range(stretches))


def _of_stretch(table: Table, number: int) -> list[ColumnElement[bool]]:
    """Each of the longest spans that cover a range is read alone, in the order of the key, which the database would
    sort again if it were to put them together."""
    columns = table.columns
    bounds = columns.since >= bindparam(f"start{number}"), columns.since < bindparam(f"end{number}")
    return [columns.span == bindparam(f"span{number}"), *bounds]


def _bounds(stretches: Sequence[tuple[int, int, int]]) -> dict[str, int]:
    """The parameters of `_of_stretch`, of each."""
    found: dict[str, int] = {}
    for number, (span, start, end) in enumerate(stretches):
        found |= {f"span{number}": span, f"start{number}": start, f"end{number}": end}
    return found


def _bin_of(since: ColumnElement[int], bin_s: int) -> ColumnElement[int]:
    # In the text of the statement: PostgreSQL groups by the expression that it selects, where two parameters differ.
    return since - since % literal(bin_s, literal_execute=True)


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


def _by_step(of: ColumnElement[Any], *own: ColumnElement[bool]) -> AnySelect:
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
