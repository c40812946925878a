"""The usage page: what models cost, by day and by group, and the running 5-hour block.

Transcripts are read in a worker thread when the page is looked at, and at most every few seconds; what is imported for
that is imported then, so that a server whose page nobody opens pays nothing.
"""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from serena_central.core.words import counted
from serena_central.web.pages.listing import Option
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.rendering import count
from serena_central.web.transcripts import read_usage

if TYPE_CHECKING:
    from serena_central.transcripts.reports import By, Report

PATH = "/usage"

GROUPS: tuple["By", ...] = ("day", "model", "project", "session", "agent", "client", "tool", "upstream", "block")
WINDOWS_D = {"today": 1, "7 days": 7, "30 days": 30, "all": 0}

DAYS = 30
DAY_S = 86_400
ROWS = 100


class Cost(msgspec.Struct, frozen=True):
    """One group. `more` says that the cost lacks requests of models whose prices are unknown."""

    key: str
    requests: int
    input: int
    output: int
    cache_write: int
    cache_read: int
    cost: str
    more: bool
    calls: int
    failed: int
    share: float


class Groups(msgspec.Struct, frozen=True):
    """Usage by what was chosen, the first rows of all. `tools`: the rows are of tools."""

    by: list[Option]
    windows: list[Option]
    head: str
    tools: bool
    rows: list[Cost]
    total: Cost
    left_out: int


class Now(msgspec.Struct, frozen=True):
    """Today and the running block, "" where there is none; `warnings` are of budgets and unknown prices."""

    today: str
    block: str
    forecast: str
    warnings: list[str]
    by_day: Plot
    tokens: Plot


async def now(visit: Visit) -> Now:
    return await anyio.to_thread.run_sync(_now, visit)


async def groups(visit: Visit) -> Groups:
    return await anyio.to_thread.run_sync(_groups, visit)


def _now(visit: Visit) -> Now:
    from serena_central.transcripts.budgets import overruns
    from serena_central.transcripts.reports import Block

    today = visit.now // DAY_S * DAY_S
    since = datetime.fromtimestamp(today - (DAYS - 1) * DAY_S, UTC)
    midnight = datetime.fromtimestamp(visit.now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days, projects, blocks = _reports(visit, ("day", since), ("project", midnight), ("block", since))
    warnings = [str(one) for one in overruns(visit.parts.settings.usage_budgets, projects.total, list(projects.rows))]
    warnings += [
        f"The price of {name or 'a model without a name'} is unknown: {counted(number, 'request')} without cost."
        for name, number in sorted(days.unknown_models.items())
    ]
    running = next((one for one in blocks.rows if isinstance(one, Block) and one.running), None)
    starts = [today - back * DAY_S for back in reversed(range(DAYS))]
    shown = [time.strftime("%Y-%m-%d", time.gmtime(start)) for start in starts]
    by_key = {row.key: row for row in days.rows}
    found = [by_key.get(day) for day in shown]
    axis = Timeline(today - (DAYS - 1) * DAY_S, today + DAY_S, starts, DAY_S)
    return Now(
        today=_dollars(projects.total.cost),
        block=_dollars(running.cost) if running else "",
        forecast=f"{_dollars(running.cost_per_hour or 0)} per hour, {_dollars(running.forecast)} at its end"
        if running and running.forecast is not None
        else "",
        warnings=warnings,
        by_day=plot(
            "Cost",
            "dollars per day (UTC)",
            [Series("cost", [row.cost if row else 0 for row in found], "bars")],
            axis,
            show=lambda value: f"{value:,.2f}",
            says_of=lambda index: _dollars(row.cost) if (row := found[index]) else "",
        ),
        tokens=plot(
            "Tokens",
            "per day (UTC)",
            [
                Series("all", [row.tokens if row else 0 for row in found], "bars"),
                Series("output", [row.output if row else 0 for row in found], "bars"),
            ],
            axis,
            show=count,
            says_of=lambda index: f"{row.tokens:,} tokens, {row.output:,} of output" if (row := found[index]) else "",
        ),
    )


def _groups(visit: Visit) -> Groups:
    named = visit.query.get("by")
    by: By = "project"
    for one in GROUPS:
        by = one if one == named else by
    window = visit.query.get("window", "")
    window = window if window in WINDOWS_D else "7 days"
    days = WINDOWS_D[window]
    since = datetime.fromtimestamp(visit.now // DAY_S * DAY_S - (days - 1) * DAY_S, UTC) if days else None
    (found,) = _reports(visit, (by, since))
    rows = sorted(
        found.rows, key=lambda row: (row.key if by in ("day", "block") else "", row.cost, row.calls), reverse=True
    )
    most = max((row.cost for row in rows), default=0)

    def shown(row: "object") -> Cost:
        from serena_central.transcripts.reports import UsageRow

        assert isinstance(row, UsageRow)
        return Cost(
            key=row.key,
            requests=row.requests,
            input=row.input,
            output=row.output,
            cache_write=row.cache_write,
            cache_read=row.cache_read,
            cost=_dollars(row.cost),
            more=row.unpriced > 0,
            calls=row.calls,
            failed=row.failed,
            share=round(100 * row.cost / most, 1) if most else 0.0,
        )

    return Groups(
        by=[Option(link(PATH, by=one, window=window), one, one == by) for one in GROUPS],
        windows=[Option(link(PATH, by=by, window=one), one, one == window) for one in WINDOWS_D],
        head=by.capitalize(),
        tools=by in ("tool", "upstream"),
        rows=[shown(row) for row in rows[:ROWS]],
        total=shown(found.total),
        left_out=max(len(rows) - ROWS, 0),
    )


def _reports(visit: Visit, *asked: "tuple[By, datetime | None]") -> "list[Report]":
    from serena_central.transcripts.reports import report

    with read_usage(visit.parts) as store:
        now = datetime.fromtimestamp(visit.now, UTC)
        return [report(store, by, since=since, zone=UTC, now=now) for by, since in asked]


def _dollars(value: float) -> str:
    return f"${value:,.2f}"


PAGE = Page(
    path=PATH,
    title="Usage",
    template="usage.html",
    sections={
        "now": Section("usage/_now.html", now, every_s=30),
        "groups": Section("usage/_groups.html", groups, every_s=60),
    },
)
