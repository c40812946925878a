"""The usage page: what models cost, by day and by group, and the running 5-hour block.

Transcripts are read in a worker thread when the page is looked at, and at most every few seconds; what is imported for
that is imported then, so that a server whose page nobody opens pays nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from serena_central.core.words import counted
from serena_central.web.pages.listing import Column, Columns, Heading, Option
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.plot import Plot
from serena_central.web.pages.references import edit_page
from serena_central.web.pages.transcripts import transcript_page
from serena_central.web.usage_reading import read_usage

if TYPE_CHECKING:
    from serena_central.transcripts.edit_usage import EditUsage
    from serena_central.transcripts.reports import By, UsageRow

PATH = "/usage"

GROUPS: tuple["By", ...] = ("day", "model", "project", "session", "agent", "client", "tool", "upstream", "block")
EDIT_GROUPS = ("edit", "symbol")
WINDOWS_D = {"today": 1, "7 days": 7, "30 days": 30, "all": 0}

DAY_S = 86_400
ROWS = 100
OMISSIONS = 6
"""Of what could not be read, those that are named."""


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


class Edit(msgspec.Struct, frozen=True):
    """One edit of this server. `transcript` is the page of the conversation that asked for it, "" where none is known;
    `undone_url` that of the edit that has undone it."""

    url: str
    at: float
    tool: str
    what: str
    cost: str
    more: bool
    session: str
    transcript: str
    undone_url: str


class Groups(msgspec.Struct, frozen=True):
    """Usage by what was chosen, the first rows of all. `calls` and `failed` are the heads of these columns where rows
    have them alone (tools, symbols), else ""; `edits` stand in place of rows."""

    columns: list[Heading]
    by: list[Option]
    windows: list[Option]
    head: str
    calls: str
    failed: str
    rows: list[Cost]
    edits: list[Edit]
    total: Cost
    left_out: int


class Now(msgspec.Struct, frozen=True):
    """Today and the running block, "" where there is none; `warnings` are of budgets, unknown
    prices and what could not be read."""

    today: str
    block: str
    forecast: str
    warnings: list[str]
    burn_rate: Plot | None


class Days(msgspec.Struct, frozen=True):
    """Cost and tokens of the last 30 days: of all, by model, by project."""

    plots: list[Plot]


async def now(visit: Visit) -> Now:
    return await anyio.to_thread.run_sync(_now, visit)


async def days(visit: Visit) -> Days:
    return await anyio.to_thread.run_sync(_days, visit)


async def groups(visit: Visit) -> Groups:
    window = visit.query.get("window", "")
    window = window if window in WINDOWS_D else "7 days"
    days = WINDOWS_D[window]
    since = datetime.fromtimestamp(visit.now // DAY_S * DAY_S - (days - 1) * DAY_S, UTC) if days else None
    named = visit.query.get("by")
    if named in EDIT_GROUPS:
        # Late: as all that reads transcripts.
        from serena_central.web.edit_usage import edits_used

        return _of_edits(visit, named, window, (await edits_used(visit.parts, since)).edits)
    by: By = "project"
    for one in GROUPS:
        by = one if one == named else by
    return await anyio.to_thread.run_sync(_groups, visit, by, window, since)


def _now(visit: Visit) -> Now:
    from serena_central.transcripts.budgets import overruns
    from serena_central.transcripts.counting import omissions
    from serena_central.transcripts.reports import Block, report
    from serena_central.web.pages.usage_plots import DAYS, burn_rate, quarter

    moment = datetime.fromtimestamp(visit.now, UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=DAYS - 1)
    with read_usage(visit.parts) as (store, done):
        projects = report(store, "project", since=midnight, zone=UTC, now=moment)
        unknown = report(store, "model", since=first, zone=UTC, now=moment).unknown_models
        blocks = report(store, "block", since=moment - timedelta(hours=12), zone=UTC, now=moment)
        running = next((one for one in blocks.rows if isinstance(one, Block) and one.running), None)
        shown = burn_rate(store.totals(quarter(moment - timedelta(hours=6))), running) if running else None
        lacking = omissions(store, done)
    warnings = [str(one) for one in overruns(visit.parts.settings.usage_budgets, projects.total, list(projects.rows))]
    warnings += [
        f"The price of {name or 'a model without a name'} is unknown: {counted(number, 'request')} without cost."
        for name, number in sorted(unknown.items())
    ]
    warnings += lacking[:OMISSIONS]
    if len(lacking) > OMISSIONS:
        warnings.append(f"Not read: {len(lacking) - OMISSIONS} more files or folders.")
    forecast = ""
    if running is not None and running.forecast is not None:
        tokens = (running.tokens_per_minute or 0) * 60
        forecast = f"{_dollars(running.cost_per_hour or 0)} and {tokens:,.0f} tokens per hour, "
        forecast += f"{_dollars(running.forecast)} at its end"
    return Now(
        today=_dollars(projects.total.cost),
        block=_dollars(running.cost) if running else "",
        forecast=forecast,
        warnings=warnings,
        burn_rate=shown,
    )


def _days(visit: Visit) -> Days:
    from serena_central.web.pages.usage_plots import DAYS, by_day, quarter

    today = visit.now // DAY_S * DAY_S
    first = datetime.fromtimestamp(today - (DAYS - 1) * DAY_S, UTC)
    with read_usage(visit.parts) as (store, _):
        return Days(by_day(store.totals(quarter(first)), today))


def _groups(visit: Visit, by: "By", window: str, since: datetime | None) -> Groups:
    from serena_central.transcripts.reports import report

    with read_usage(visit.parts) as (store, _):
        found = report(store, by, since=since, zone=UTC, now=datetime.fromtimestamp(visit.now, UTC))
    heads = ("Calls", "Failed") if by in ("tool", "upstream") else ("", "")
    return _shown(visit, by, window, heads, found.rows, found.total)


def _of_edits(visit: Visit, by: str, window: str, found: "Sequence[EditUsage]") -> Groups:
    from serena_central.transcripts.edit_usage import by_symbol, total_of

    if by == "symbol":
        return _shown(visit, by, window, ("Edits", "Undone"), by_symbol(found), total_of(found))
    shown = _shown(visit, by, window, ("Edits", "Undone"), [], total_of(found))
    edits = [
        Edit(
            url=edit_page(one.key),
            at=one.at,
            tool=one.tool,
            what=one.symbol or ", ".join(one.files[:2]),
            cost=_dollars(one.cost),
            more=one.unpriced > 0,
            session=one.session,
            transcript=transcript_page(one.client, one.session) if one.session else "",
            undone_url=edit_page(one.undone_by) if one.undone_by else "",
        )
        for one in EDIT_COLUMNS.arranged(found, visit)[:ROWS]
    ]
    columns = EDIT_COLUMNS.headings(visit, PATH)
    return msgspec.structs.replace(shown, columns=columns, edits=edits, left_out=max(len(found) - ROWS, 0))


def _shown(
    visit: Visit, by: str, window: str, heads: tuple[str, str], found: "Sequence[UsageRow]", total: "UsageRow"
) -> Groups:
    columns = _columns(by, heads)
    rows = columns.arranged(sorted(found, key=lambda row: row.calls, reverse=True), visit)
    most = max((row.cost for row in rows), default=0)
    chosen = (*GROUPS, *EDIT_GROUPS)
    return Groups(
        columns=columns.headings(visit, PATH),
        by=[Option(link(PATH, by=one, window=window), one, one == by) for one in chosen],
        windows=[Option(link(PATH, by=by, window=one), one, one == window) for one in WINDOWS_D],
        head=by.capitalize(),
        calls=heads[0],
        failed=heads[1],
        rows=[_row(row, most) for row in rows[:ROWS]],
        edits=[],
        total=_row(total, most),
        left_out=max(len(rows) - ROWS, 0),
    )


EDIT_COLUMNS: "Columns[EditUsage]" = Columns(
    {
        "when": Column("When", lambda one: -one.at),
        "edit": Column("Edit", lambda one: one.symbol or ", ".join(one.files)),
        "tool": Column("Tool", lambda one: one.tool),
        "session": Column("Conversation", lambda one: one.session),
        "undone": Column("Undone", lambda one: not one.undone_by),
        "cost": Column("Cost", lambda one: one.cost, "number"),
    },
    default="when",
)


def _columns(by: str, heads: tuple[str, str]) -> "Columns[UsageRow]":
    """Those of the group `by`; `heads` as `Groups` has them."""
    key: Column[UsageRow] = Column(by.capitalize(), lambda row: row.key)
    cost: Column[UsageRow] = Column("Cost of requests" if heads[0] else "Cost", lambda row: row.cost, "number")
    between: dict[str, Column[UsageRow]] = (
        {
            "calls": Column(heads[0], lambda row: row.calls, "number"),
            "failed": Column(heads[1], lambda row: row.failed, "number"),
        }
        if heads[0]
        else {
            "requests": Column("Requests", lambda row: row.requests, "number minor"),
            "input": Column("Input", lambda row: row.input, "number minor"),
            "output": Column("Output", lambda row: row.output, "number"),
            "written": Column("Cache write", lambda row: row.cache_write, "number minor"),
            "read": Column("Cache read", lambda row: row.cache_read, "number minor"),
        }
    )
    return Columns({"key": key, **between, "cost": cost}, default="-key" if by in ("day", "block") else "-cost")


def _row(row: "UsageRow", most: float) -> Cost:
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


def _dollars(value: float) -> str:
    return f"${value:,.2f}"


PAGE = Page(
    path=PATH,
    title="Usage",
    template="usage.html",
    sections={
        "now": Section("usage/_now.html", now, every_s=30),
        "days": Section("usage/_days.html", days, every_s=60),
        "groups": Section("usage/_groups.html", groups, every_s=60),
    },
)
