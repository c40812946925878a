"""The statistics page: calls, edits and memory in a range of time, by tool and by project, and totals by day."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from serena_central.core.words import counted
from serena_central.store.query_results import CallBin, DayTotal, ToolStatistics
from serena_central.store.spans import TimeRange
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.rendering import count, duration, milliseconds, size
from serena_central.web.pages.time_ranges import QUERY, Ranges, chosen, ranges

if TYPE_CHECKING:
    from serena_central.store.queries import Queries

PATH = "/statistics"

ROWS = 10
"""Of a table on one page."""

DAYS = 30
DAY_S = 86_400

Show = Callable[[float], str]
"""Writes a value for people."""


class ToolRow(msgspec.Struct, frozen=True):
    """One tool in the window. `share` is its calls in percent of the most called one's; `chars` is of one answer."""

    tool: str
    calls: int
    share: float
    errors: int
    average_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float
    chars: int
    all_chars: int


class Tools(msgspec.Struct, frozen=True):
    """The most called first, unless the query names another order. `calls` and `errors` are of all."""

    columns: list[Heading]
    rows: list[ToolRow]
    pager: Pager
    calls: int
    errors: int


class StatisticsFilters(msgspec.Struct, frozen=True):
    """What can be chosen; `range` is the part of the query that says the range."""

    ranges: Ranges
    range: dict[str, str]
    tools: list[Option]
    projects: list[Option]


class Plots(msgspec.Struct, frozen=True):
    """All of the same range. Memory is of the project's own root, whichever tool is chosen."""

    calls: Plot
    durations: Plot
    edits: Plot
    memory: Plot


class ProjectUse(msgspec.Struct, frozen=True):
    """A project in the range; `share` is in percent of the most called one's calls, `url` narrows the page to it."""

    project: str
    url: str
    calls: int
    share: float
    errors: int
    p50_ms: float
    p95_ms: float


class Projects(msgspec.Struct, frozen=True):
    """The most called first, unless the query names another order."""

    columns: list[Heading]
    rows: list[ProjectUse]
    pager: Pager


TOOL_COLUMNS = Columns[ToolStatistics](
    {
        "name": Column("Tool", lambda one: one.tool),
        "calls": Column("Calls", lambda one: one.calls, "number"),
        "errors": Column("Failed", lambda one: one.errors, "number"),
        "p50": Column("p50", lambda one: one.p50_ms, "number minor"),
        "p95": Column("p95", lambda one: one.p95_ms, "number"),
        "average": Column("Average", lambda one: one.average_ms, "number minor"),
        "longest": Column("Longest", lambda one: one.max_ms, "number minor"),
        "each": Column("Characters per answer", lambda one: one.answer_chars / one.calls, "number minor"),
        "chars": Column("Characters in total", lambda one: one.answer_chars, "number minor"),
    },
    default="-calls",
    parameter="tools",
)
PROJECT_COLUMNS = Columns[ToolStatistics](
    {
        "name": Column("Project", lambda one: one.tool.lower()),
        "calls": Column("Calls", lambda one: one.calls, "number"),
        "errors": Column("Failed", lambda one: one.errors, "number"),
        "p50": Column("p50", lambda one: one.p50_ms, "number minor"),
        "p95": Column("p95", lambda one: one.p95_ms, "number"),
    },
    default="-calls",
    parameter="projects",
)


PERCENTILES = ("p50", "p95")
"""Columns that are read of the rows shown alone, unless they are sorted by."""


class RangedPlots(msgspec.Struct, frozen=True):
    """Plots on another page, with the choice of their range; `all_url` is of the statistics of the same."""

    ranges: Ranges
    plots: Plots
    all_url: str


def ranged(path: str, *, of: Callable[[Visit], dict[str, str]]) -> Section:
    """A section for another page: the plots of what `of` chooses (`tool`, `project`). `path` is that page's, with the
    visit's words in braces."""

    async def make(visit: Visit) -> RangedPlots:
        only = of(visit)
        kept = {name: visit.query[name] for name in QUERY if visit.query.get(name)}
        return RangedPlots(
            ranges=ranges(visit, path.format_map(visit.path)),
            plots=await plots(replace(visit, query={**kept, **only})),
            all_url=link(PATH, **kept, **only),
        )

    return Section("statistics/_ranged.html", make, every_s=30, recorded=True)


class Totals(msgspec.Struct, frozen=True):
    """What was counted by the day, `since` the first one on record ("" for none)."""

    calls: int
    errors: int
    chars: int
    since: str
    by_day: Plot


async def filters(visit: Visit) -> StatisticsFilters:
    wanted = chosen(visit)
    projects = await visit.parts.store.ask(lambda queries: queries.projects_called(wanted))
    return StatisticsFilters(
        ranges=ranges(visit, PATH),
        range={name: visit.query[name] for name in QUERY if visit.query.get(name)},
        tools=options(sorted(tool.name for tool in visit.parts.catalogue), visit.query.get("tool", "")),
        projects=options(sorted(projects), visit.query.get("project", "")),
    )


async def plots(visit: Visit) -> Plots:
    wanted, tool, project = chosen(visit), visit.query.get("tool", ""), visit.query.get("project", "")
    root = next((one.root for one in visit.parts.projects.snapshots() if one.name == project), project)

    def ask(queries: "Queries") -> tuple[list[CallBin], list[tuple[int, int]], list[tuple[int, int]]]:
        return (
            queries.calls_over_time(wanted, tool=tool, project=project),
            queries.edits_over_time(wanted, tool=tool, root=root),
            queries.memory_over_time(wanted, root=root),
        )

    return drawn(wanted, *await visit.parts.store.ask(ask))


def drawn(
    wanted: TimeRange, calls: Sequence[CallBin], edits: Sequence[tuple[int, int]], memory: Sequence[tuple[int, int]]
) -> Plots:
    """Plots of what was recorded in a range."""
    per = f"per {duration(wanted.bin_s)}"

    def pairs(title: str, unit: str, found: Sequence[tuple[int, int]], series: Series, show: Show, kilo: int) -> Plot:
        own = _axis(wanted, [at for at, _ in found])
        return plot(title, unit, [series], own, show=show, says_of=lambda index: show(found[index][1]), kilo=kilo)

    return Plots(
        *plots_of_calls(wanted, calls),
        pairs("Edits", per, edits, Series("edits", [made for _, made in edits], "bars"), count, 1000),
        pairs("Memory of language servers", "", memory, Series("memory", [most for _, most in memory]), size, 1024),
    )


def plots_of_calls(wanted: TimeRange, calls: Sequence[CallBin]) -> tuple[Plot, Plot]:
    """The number of calls, and how long they took."""
    per, axis = f"per {duration(wanted.bin_s)}", _axis(wanted, [one.at for one in calls])
    return (
        plot(
            "Calls",
            per,
            [
                Series("calls", [one.calls for one in calls], "bars"),
                Series("failed", [one.errors for one in calls], "bars"),
            ],
            axis,
            show=count,
            says_of=lambda index: f"{counted(calls[index].calls, 'call')}, {calls[index].errors:,} failed",
        ),
        plot(
            "Duration of calls",
            "",
            [Series("p95", [one.p95_ms for one in calls]), Series("p50", [one.p50_ms for one in calls])],
            axis,
            show=milliseconds,
            says_of=lambda index: f"p50 {milliseconds(calls[index].p50_ms)}, p95 {milliseconds(calls[index].p95_ms)}",
        ),
    )


def _axis(wanted: TimeRange, times: Sequence[int]) -> Timeline:
    bins = wanted.bins()
    return Timeline(bins[0], bins[-1] + wanted.bin_s, times, wanted.bin_s)


async def tools(visit: Visit) -> Tools:
    wanted, project = chosen(visit), visit.query.get("project", "")
    only = visit.query.get("tool", "")

    def ask(queries: "Queries") -> tuple[list[ToolStatistics], list[ToolStatistics], Pager]:
        found = [one for one in queries.tool_totals(wanted, project=project) if only in ("", one.tool)]
        if TOOL_COLUMNS.sorts_by(visit, *PERCENTILES):
            found = queries.with_percentiles_of_tools(wanted, found, project=project)
        rows, pager = paged(TOOL_COLUMNS.arranged(found, visit), visit, PATH, size=ROWS, parameter="tools-page")
        return found, queries.with_percentiles_of_tools(wanted, rows, project=project), pager

    found, rows, pager = await visit.parts.store.ask(ask)
    most = max((one.calls for one in found), default=0)
    return Tools(
        columns=TOOL_COLUMNS.headings(visit, PATH),
        rows=[_row(one, most) for one in rows],
        pager=pager,
        calls=sum(one.calls for one in found),
        errors=sum(one.errors for one in found),
    )


async def projects(visit: Visit) -> Projects:
    wanted, tool = chosen(visit), visit.query.get("tool", "")

    def ask(queries: "Queries") -> tuple[list[ToolStatistics], list[ToolStatistics], Pager]:
        found = queries.project_totals(wanted, tool=tool)
        if PROJECT_COLUMNS.sorts_by(visit, *PERCENTILES):
            found = queries.with_percentiles_of_projects(wanted, found, tool=tool)
        rows, pager = paged(PROJECT_COLUMNS.arranged(found, visit), visit, PATH, size=ROWS, parameter="projects-page")
        return found, queries.with_percentiles_of_projects(wanted, rows, tool=tool), pager

    found, rows, pager = await visit.parts.store.ask(ask)
    most = max((one.calls for one in found), default=0)
    kept = {name: visit.query[name] for name in (*QUERY, "tool") if name in visit.query}
    return Projects(
        columns=PROJECT_COLUMNS.headings(visit, PATH),
        pager=pager,
        rows=[
            ProjectUse(
                project=one.tool,
                url=link(PATH, **kept, project=one.tool),
                calls=one.calls,
                share=round(100 * one.calls / most, 1),
                errors=one.errors,
                p50_ms=one.p50_ms,
                p95_ms=one.p95_ms,
            )
            for one in rows
        ],
    )


def _row(one: ToolStatistics, most: int) -> ToolRow:
    return ToolRow(
        tool=one.tool,
        calls=one.calls,
        share=round(100 * one.calls / most, 1),
        errors=one.errors,
        average_ms=one.average_ms,
        p50_ms=one.p50_ms,
        p95_ms=one.p95_ms,
        max_ms=one.max_ms,
        chars=round(one.answer_chars / one.calls),
        all_chars=one.answer_chars,
    )


async def totals(visit: Visit) -> Totals:
    return totalled(await visit.parts.store.ask(lambda queries: queries.totals_by_day()), visit.now)


def totalled(days: Sequence[DayTotal], now: float) -> Totals:
    """All days on record, and a plot of the newest. Days are UTC's."""
    today = now // DAY_S * DAY_S
    starts = [today - back * DAY_S for back in reversed(range(DAYS))]
    shown = [time.strftime("%Y-%m-%d", time.gmtime(start)) for start in starts]
    by_day = {one.day: one for one in days}
    found = [by_day.get(day) or DayTotal(day=day, calls=0, errors=0, answer_chars=0) for day in shown]

    return Totals(
        calls=sum(one.calls for one in days),
        errors=sum(one.errors for one in days),
        chars=sum(one.answer_chars for one in days),
        since=days[0].day if days else "",
        by_day=plot(
            "Calls",
            "per day (UTC)",
            [
                Series("calls", [one.calls for one in found], "bars"),
                Series("failed", [one.errors for one in found], "bars"),
            ],
            Timeline(today - (DAYS - 1) * DAY_S, today + DAY_S, starts, DAY_S),
            show=count,
            says_of=lambda index: f"{counted(found[index].calls, 'call')}, {found[index].errors:,} failed",
        ),
    )


PAGE = Page(
    path=PATH,
    title="Statistics",
    template="statistics.html",
    sections={
        "filters": Section("statistics/_filters.html", filters, every_s=3600),
        "plots": Section("statistics/_plots.html", plots, every_s=30, recorded=True),
        "tools": Section("statistics/_tools.html", tools, every_s=30, recorded=True),
        "projects": Section("statistics/_projects.html", projects, every_s=30, recorded=True),
        "totals": Section("statistics/_totals.html", totals, every_s=60, recorded=True),
    },
)
