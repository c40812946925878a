"""The pages of the hub: all MCP servers that it reaches, and one of them with its processes, tools and log."""

from pathlib import Path

import anyio
import msgspec

from serena_central.core.event_kinds import UpstreamListed, UpstreamMoved
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import project_page, session_page, tool_page, upstream_page
from serena_central.web.upstreams import (
    UpstreamTool,
    UpstreamView,
    hub_with,
    known_roots,
    no_such_upstream,
    tools_of,
    views,
)
from serena_central.web.views import has_words

PATH = "/upstreams"

LOG_BYTES = 8_000
"""Shown of a log's end."""

TOOL_CHARS = 300
"""Shown of a tool's description."""

STATES = ("ready", "starting", "paused", "failed", "stopped")

COLUMNS = Columns[UpstreamView](
    {
        "name": Column("Upstream", lambda one: one.name.lower()),
        "state": Column("State", lambda one: one.state),
        "scope": Column("Belongs to", lambda one: one.scope),
        "pid": Column("PID", lambda one: one.pid or 0, "number"),
        "memory": Column("Memory", lambda one: one.memory_bytes, "number"),
        "tools": Column("Tools", lambda one: one.tools, "number"),
        "calls": Column("Calls", lambda one: one.calls, "number"),
        "errors": Column("Failed", lambda one: one.errors, "number"),
        "users": Column("Used by", lambda one: -len(one.users)),
        "used": Column("Last used", lambda one: -(one.last_used_at or 0)),
    },
)
TOOL_COLUMNS = Columns[UpstreamTool](
    {
        "name": Column("Name", lambda one: one.offered_as.lower()),
        "description": Column("Description", lambda one: one.description.lower()),
    },
)


class UpstreamRow(msgspec.Struct, frozen=True):
    """`scope_url`: the page of the project or session that it belongs to; empty for one that all share."""

    one: UpstreamView
    url: str
    scope_url: str
    users: list[tuple[str, str]]
    """Sessions with a call in progress, and their pages."""


class UpstreamsFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    words: str
    states: list[Option]
    sort: str


class UpstreamsTable(msgspec.Struct, frozen=True):
    """One page of those that match; `running` and `memory_bytes` are of all."""

    columns: list[Heading]
    rows: list[UpstreamRow]
    pager: Pager
    total: int
    running: int
    memory_bytes: int


class UpstreamState(msgspec.Struct, frozen=True):
    name: str
    rows: list[UpstreamRow]
    runs_now: bool


class ShownTool(msgspec.Struct, frozen=True):
    offered_as: str
    url: str
    description: str


class UpstreamTools(msgspec.Struct, frozen=True):
    """`why` there are none: the state of its runs."""

    columns: list[Heading]
    tools: list[ShownTool]
    why: str


class UpstreamLog(msgspec.Struct, frozen=True):
    """The end of the wire log; `file` is where all of it stands."""

    text: str
    file: str


async def filters(visit: Visit) -> UpstreamsFilters:
    query = visit.query
    return UpstreamsFilters(query.get("q", ""), options(STATES, query.get("state", "")), query.get("sort", ""))


async def table(visit: Visit) -> UpstreamsTable:
    found = await views(visit.parts, known_roots(visit.parts))
    words, state = visit.query.get("q", ""), visit.query.get("state", "")
    chosen = [one for one in found if state in ("", one.state) and has_words(words, one.name, one.target, one.scope)]
    rows, pager = paged(COLUMNS.arranged(chosen, visit), visit, PATH)
    return UpstreamsTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[_row(one) for one in rows],
        pager=pager,
        total=len(found),
        running=sum(one.state == "ready" for one in found),
        memory_bytes=sum(one.memory_bytes for one in found),
    )


def _row(one: UpstreamView) -> UpstreamRow:
    scope = ""
    if one.scope:
        scope = project_page(one.scope) if one.scope.startswith("/") else session_page(one.scope)
    # Rounded: what differs in less is not news.
    one = msgspec.structs.replace(one, started_at=_rounded(one.started_at), last_used_at=_rounded(one.last_used_at))
    return UpstreamRow(one, upstream_page(one.name), scope, [(user, session_page(user)) for user in one.users])


def _rounded(at: float | None) -> float | None:
    return round(at) if at is not None else None


async def state(visit: Visit) -> UpstreamState:
    name = visit.path["upstream"]
    found = [one for one in await views(visit.parts, known_roots(visit.parts)) if one.name == name]
    if not found:
        raise no_such_upstream(name)
    return UpstreamState(name, [_row(one) for one in found], any(one.state == "ready" for one in found))


async def tools(visit: Visit) -> UpstreamTools:
    name, roots = visit.path["upstream"], known_roots(visit.parts)
    found = TOOL_COLUMNS.arranged(await tools_of(visit.parts, name, roots), visit)
    runs = [] if found else [one for one in await views(visit.parts, roots) if one.name == name]
    return UpstreamTools(
        columns=TOOL_COLUMNS.headings(visit, f"{PATH}/{name}"),
        tools=[
            ShownTool(one.offered_as, tool_page(one.offered_as), one.description.strip()[:TOOL_CHARS]) for one in found
        ],
        why="; ".join(dict.fromkeys(one.why or one.state for one in runs)),
    )


async def log(visit: Visit) -> UpstreamLog:
    file = visit.parts.places.wire_log(visit.path["upstream"])
    return UpstreamLog(await anyio.to_thread.run_sync(_end_of, file), str(file))


def _end_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            opened.seek(max(file.stat().st_size - LOG_BYTES, 0))
            return opened.read().decode(errors="replace")
    except OSError:
        return ""


# --- actions ----------------------------------------------------------------------------------------------------------


async def _restart(visit: Visit, form: Form) -> str:
    (name, *_) = form.get("upstream", [""])
    ended = await (await hub_with(visit.parts, name)).restart(name)
    return f"{name} {'was ended' if ended else 'did not run'}. The next call starts it."


async def _stop(visit: Visit, form: Form) -> str:
    (name, *_) = form.get("upstream", [""])
    ended = await (await hub_with(visit.parts, name)).stop(name)
    return f"{name} was stopped. The next call starts it." if ended else f"{name} does not run."


ACTIONS: dict[str, Action] = {f"{PATH}/restart": _restart, f"{PATH}/stop": _stop}

PAGE = Page(
    path=PATH,
    title="Upstreams",
    template="upstreams.html",
    sections={
        "filters": Section("upstreams/_filters.html", filters, every_s=3600),
        "table": Section("upstreams/_table.html", table, (UpstreamMoved, UpstreamListed)),
    },
)

ONE = Page(
    path=f"{PATH}/{{upstream}}",
    title="Upstream {upstream}",
    template="upstream.html",
    sections={
        "state": Section("upstream/_state.html", state, (UpstreamMoved, UpstreamListed)),
        "tools": Section("upstream/_tools.html", tools, (UpstreamListed,), every_s=3600),
        "log": Section("upstream/_log.html", log),
    },
    in_navigation=False,
)
