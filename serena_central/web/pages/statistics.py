"""The statistics page: calls, durations and answer sizes by tool, and totals by day."""

import time
from collections.abc import Sequence

import msgspec

from serena_central.core.words import counted
from serena_central.store.query_results import DayTotal, ToolStatistics
from serena_central.web.pages.listing import Option
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.rendering import count

PATH = "/statistics"

WINDOWS_S = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
DEFAULT_WINDOW = "hour"

DAYS = 30
DAY_S = 86_400


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
    """The most called first. `windows` are the spans of time to choose from."""

    windows: list[Option]
    rows: list[ToolRow]
    calls: int
    errors: int


class Totals(msgspec.Struct, frozen=True):
    """What was counted by the day, `since` the first one on record ("" for none)."""

    calls: int
    errors: int
    chars: int
    since: str
    by_day: Plot


async def tools(visit: Visit) -> Tools:
    window = visit.query.get("window", "")
    window = window if window in WINDOWS_S else DEFAULT_WINDOW
    found = await visit.parts.store.ask(lambda queries: queries.tool_statistics(visit.now - WINDOWS_S[window]))
    most = max((one.calls for one in found), default=0)
    return Tools(
        windows=[Option(link(PATH, window=name), name, name == window) for name in WINDOWS_S],
        rows=[_row(one, most) for one in found],
        calls=sum(one.calls for one in found),
        errors=sum(one.errors for one in found),
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
        "tools": Section("statistics/_tools.html", tools, every_s=30, recorded=True),
        "totals": Section("statistics/_totals.html", totals, every_s=60, recorded=True),
    },
)
