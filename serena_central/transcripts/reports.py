"""Usage in groups: by day, week, month, model, project, session, agent, client, tool, upstream or 5-hour block.

Pure: totals of the store in, rows out. Days are those of a time zone; weeks begin on Monday.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import PurePath
from typing import Literal, get_args

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.store.usage_store import BUCKET_MS, ToolTotal, Total, UsageStore

By = Literal["day", "week", "month", "model", "project", "session", "agent", "client", "tool", "upstream", "block"]
"""What `report` groups by. Edits and symbols are of `edit_usage`."""
GROUPS: tuple[By, ...] = get_args(By)

BLOCK = timedelta(hours=5)
"""For which Claude's subscriptions count usage together."""

MAIN = "(main conversation)"
OWN_TOOLS = "(client's own tools)"
THIS_SERVER = "serena-central"

IN_BLOCKS = ("claude-code", "messages")
"""Clients whose requests are to Claude."""


class UsageRow(msgspec.Struct, kw_only=True):
    """Usage of one group. Counts are tokens, `cost` is in dollars; `unpriced` requests (of tools: calls) are of models
    whose prices are unknown, and not in it. `calls` and `failed` are of tools. Times are Unix seconds."""

    key: str
    requests: int = 0
    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    cost: float = 0.0
    unpriced: int = 0
    calls: int = 0
    failed: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cache_write + self.cache_read

    @property
    def tokens_per_request(self) -> float:
        """The average; 0 where there was no request."""
        return self.tokens / self.requests if self.requests else 0.0

    @property
    def duration_s(self) -> float:
        """Seconds from the first request to the last."""
        return self.last_at - self.first_at

    def add(self, total: Total) -> None:
        self.requests += total.requests
        self.input += total.input
        self.output += total.output
        self.cache_write += total.write_5m + total.write_1h
        self.cache_read += total.read
        self.cost += total.cost
        self.unpriced += total.unpriced
        first, last = total.first_at / 1000, total.last_at / 1000
        self.first_at = min(self.first_at, first) if self.first_at else first
        self.last_at = max(self.last_at, last)

    def add_tool(self, total: ToolTotal) -> None:
        self.calls += total.calls
        self.failed += total.failed
        self.cost += total.cost
        self.unpriced += total.unpriced


class Block(UsageRow, kw_only=True):
    """Usage in five hours from the first request on. Of the running one, `cost_per_hour` and `tokens_per_minute` so
    far, and `forecast`: the cost at its end if that goes on."""

    ends_at: float = 0.0
    running: bool = False
    cost_per_hour: float | None = None
    tokens_per_minute: float | None = None
    forecast: float | None = None


class Report(msgspec.Struct, kw_only=True):
    """Rows of one grouping with their sum. `unknown_models` maps models without known prices to their requests. What
    could not be read is set by those who read: lines of transcripts, and whole files and folders, each with the reason.
    """

    by: By
    rows: Sequence[UsageRow]
    total: UsageRow
    unknown_models: dict[str, int]
    lines_not_read: int = 0
    not_read: Sequence[str] = ()


def report(
    store: UsageStore,
    by: By,
    *,
    since: datetime | None = None,
    zone: tzinfo | None = None,
    now: datetime,
    session: str | None = None,
    projects: Mapping[str, str] | None = None,
) -> Report:
    """Usage from a time until now, all of it without one, and of blocks those that reach into that time; with `session`
    that of one session of a client. `zone` None is the machine's own. `projects` maps sessions to the projects they are
    of where that is not the folder in which they began.

    Raises:
        StoreError
        InvalidArguments: there is no such grouping.
    """
    if by not in GROUPS:
        raise InvalidArguments(f"Usage is not grouped by {by}, but by one of {', '.join(GROUPS)}.")
    first = 0 if since is None else round(since.timestamp() * 1000) // BUCKET_MS
    # A wrong clock may have written times to come: they are not of today, whatever day that is.
    last = math.inf if since is None else now.timestamp() * 1000 // BUCKET_MS
    found: Sequence[Block] = ()
    if by == "block":  # where one begins depends on what came before
        in_blocks = [one for one in store.totals(session=session) if one.client in IN_BLOCKS and one.bucket <= last]
        found = [one for one in blocks(in_blocks, now) if one.ends_at * 1000 > first * BUCKET_MS]
        begun = found[0].first_at * 1000 if found else 0
        totals = [one for one in in_blocks if found and one.first_at >= begun]
    else:
        totals = [one for one in store.totals(first, session) if one.bucket <= last]
    whole = UsageRow(key="total")
    unknown: dict[str, int] = {}
    for one in totals:
        whole.add(one)
        if one.unpriced:
            unknown[one.model] = unknown.get(one.model, 0) + one.unpriced
    rows: Sequence[UsageRow]
    if by in ("tool", "upstream"):
        tools = [one for one in store.tool_totals(first, session) if one.bucket <= last]
        for tool in tools:
            whole.calls += tool.calls
            whole.failed += tool.failed
        rows = _of_tools(
            tools, (lambda one: one.tool) if by == "tool" else (lambda one: upstream_of(one.tool, one.client))
        )
    elif by == "block":
        rows = found
    else:
        rows = _grouped(totals, _key(by, zone, projects or {}))
        in_time = by in ("day", "week", "month")
        rows.sort(key=lambda row: row.key if in_time else (-row.cost, -row.tokens, row.key))  # type: ignore[return-value]
    return Report(by=by, rows=rows, total=whole, unknown_models=unknown)


def _grouped(totals: Iterable[Total], key: Callable[[Total], str]) -> list[UsageRow]:
    rows: dict[str, UsageRow] = {}
    for one in totals:
        name = key(one)
        row = rows.get(name)
        if row is None:
            row = rows[name] = UsageRow(key=name)
        row.add(one)
    return list(rows.values())


def _of_tools(totals: Iterable[ToolTotal], key: Callable[[ToolTotal], str]) -> list[UsageRow]:
    rows: dict[str, UsageRow] = {}
    for one in totals:
        name = key(one)
        rows.setdefault(name, UsageRow(key=name)).add_tool(one)
    return sorted(rows.values(), key=lambda row: (-row.calls, row.key))


def upstream_of(tool: str, client: str = "") -> str:
    """The MCP server of a tool, by the name under which clients offer it: `mcp__github__search` is of `github`. Tasks
    of the runner `messages` have the names of this server and its hub: `github__search`."""
    if client == "messages":
        return tool.split("__", 1)[0] if "__" in tool else THIS_SERVER
    if tool.startswith("mcp__") and tool.count("__") > 1:
        return tool.split("__", 2)[1]
    if tool.startswith("mcp_") and not tool.startswith("mcp__") and tool.count("_") > 1:  # Gemini's form
        return tool.split("_", 2)[1]
    return OWN_TOOLS


def _key(by: By, zone: tzinfo | None, projects: Mapping[str, str]) -> Callable[[Total], str]:
    days: dict[int, date] = {}

    def day(total: Total) -> date:
        found = days.get(total.bucket)
        if found is None:
            at = datetime.fromtimestamp(total.bucket * BUCKET_MS / 1000, UTC)
            found = days[total.bucket] = at.astimezone(zone).date()
        return found

    match by:
        case "day":
            return lambda total: day(total).isoformat()
        case "week":
            return lambda total: (day(total) - timedelta(days=day(total).weekday())).isoformat()
        case "month":
            return lambda total: day(total).isoformat()[:7]
        case "agent":
            return lambda total: total.agent or MAIN
        case "project":
            return lambda total: projects.get(total.session, total.project)
        case _:
            return lambda total: getattr(total, by)


def is_of(project: str, name: str) -> bool:
    """Whether a project is the one of this name, or a folder in it. `name` is a path or a folder's name."""
    path = PurePath(project)
    return path.is_relative_to(name) if PurePath(name).is_absolute() else name in (project, *path.parts)


def blocks(totals: Iterable[Total], now: datetime) -> list[Block]:
    """Requests to Claude in blocks: one begins with the first request, at its full hour, and another one when that
    is five hours ago, or the last request is."""
    found: list[Block] = []
    for one in sorted((one for one in totals if one.client in IN_BLOCKS), key=lambda one: one.first_at):
        at = one.first_at / 1000
        if not found or at >= found[-1].ends_at or at - found[-1].last_at > BLOCK.total_seconds():
            start = at - at % 3600
            name = datetime.fromtimestamp(start, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
            found.append(Block(key=name, ends_at=start + BLOCK.total_seconds()))
        found[-1].add(one)
    at = now.timestamp()
    latest = next((one for one in reversed(found) if one.first_at <= at), None)
    if latest and at < latest.ends_at and at - latest.last_at < BLOCK.total_seconds():
        _forecast(latest, at)
    return found


def _forecast(block: Block, now: float) -> None:
    block.running = True
    hours = (max(now, block.last_at) - block.first_at) / 3600
    if hours < 1 / 60:  # a minute tells nothing about five hours
        return
    block.cost_per_hour = block.cost / hours
    block.tokens_per_minute = block.tokens / hours / 60
    block.forecast = block.cost + block.cost_per_hour * max(block.ends_at - now, 0) / 3600


class SessionUsage(UsageRow, kw_only=True):
    """Usage of one session of a client; `key` is its id, too."""

    client: str
    project: str
    session: str


def session_usage(store: UsageStore) -> list[SessionUsage]:
    """All sessions, the latest first.

    Raises:
        StoreError
    """
    rows: dict[tuple[str, str], SessionUsage] = {}
    for one in store.totals():
        row = rows.get((one.client, one.session))
        if row is None:
            row = SessionUsage(key=one.session, client=one.client, project=one.project, session=one.session)
            rows[one.client, one.session] = row
        row.add(one)
    return sorted(rows.values(), key=lambda row: row.last_at, reverse=True)
