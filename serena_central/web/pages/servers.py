"""The page of all language servers, with the actions on them."""

from collections.abc import Awaitable, Callable

import msgspec

from serena_central.core.event_kinds import ServerEvent
from serena_central.lsp.installers.underway import underway
from serena_central.pool.key import ServerKey
from serena_central.pool.pool import LanguageServerPool
from serena_central.pool.snapshot import BreakerSnapshot, ServerSnapshot
from serena_central.pool.state import RunState
from serena_central.processes.usage import ProcessUsage
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import server_page
from serena_central.web.pages.rendering import percent
from serena_central.web.views import has_words, server_id, server_named

PATH = "/servers"

BY = "requested in the dashboard"


COLUMNS = Columns[ServerSnapshot](
    {
        "server": Column("Server", lambda one: one.server),
        "project": Column("Project", lambda one: one.root.name.lower()),
        "state": Column("State", lambda one: (list(RunState).index(one.state), one.draining)),
        "pid": Column("PID", lambda one: one.pid or 0, "number"),
        "memory": Column("Memory", lambda one: one.memory_bytes, "number"),
        "cpu": Column("CPU", lambda one: one.cpu_percent, "number"),
        "sessions": Column("Sessions", lambda one: one.attached, "number"),
        "leases": Column("Leases", lambda one: one.leases, "number"),
        "calls": Column("Calls", lambda one: one.calls, "number"),
        "restarts": Column("Restarts", lambda one: one.restarts, "number"),
        "started": Column("Started", lambda one: one.age_s),
    },
)
"""Without a choice those that run come first, the largest of them before the others."""


class Breaker(msgspec.Struct, frozen=True):
    """`opens_until` is Unix time, None unless starts are refused until then; `last` is the newest failure."""

    state: str
    failures: int
    opens_until: float | None
    last: str


class HolderRow(msgspec.Struct, frozen=True):
    """Who holds a lease, since when in Unix time."""

    label: str
    since: float


class ServerRow(msgspec.Struct, frozen=True):
    """A run in the table, newest of its key first. `share` is its memory in percent of the budget; `started_at` is Unix
    time, None for one that is gone."""

    id: str
    url: str
    name: str
    languages: str
    version: str
    project: str
    root: str
    state: str
    draining: bool
    reason: str
    run: int
    pid: int | None
    memory_bytes: int
    share: float
    cpu_percent: float
    attached: int
    leases: int
    calls: int
    restarts: int
    started_at: float | None
    breaker: Breaker
    holders: list[HolderRow]
    open_documents: int
    processes: list[ProcessUsage]
    """As measured last, the largest first."""


class ServersFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    words: str
    states: list[Option]
    languages: list[Option]
    sort: str


class ServersTable(msgspec.Struct, frozen=True):
    """One page of the runs that match; `running` and `memory_bytes` are of all, `share` of the budget in percent."""

    columns: list[Heading]
    rows: list[ServerRow]
    pager: Pager
    total: int
    running: int
    memory_bytes: int
    budget_bytes: int
    share: float
    installing: list[str] = []
    """Installations in progress, in any process, one sentence each."""


async def filters(visit: Visit) -> ServersFilters:
    languages = {language for one in visit.parts.pool.snapshot() for language in one.languages}
    return ServersFilters(
        words=visit.query.get("q", ""),
        states=options(
            [state.value for state in RunState],
            visit.query.get("state", ""),
            shown=lambda state: state.replace("_", " "),
        ),
        languages=options(sorted(languages), visit.query.get("language", "")),
        sort=visit.query.get("sort", ""),
    )


async def table(visit: Visit) -> ServersTable:
    pool = visit.parts.pool
    found = pool.snapshot()
    chosen = [one for one in found if _matches(one, visit)]
    chosen.sort(key=lambda one: (one.state is RunState.DISCONNECTED, -one.memory_bytes))
    rows, pager = paged(COLUMNS.arranged(chosen, visit), visit, PATH)
    memory = sum(one.memory_bytes for one in found)
    return ServersTable(
        columns=COLUMNS.headings(visit, PATH),
        rows=[server_row(one, pool.memory_budget_bytes, visit.now) for one in rows],
        pager=pager,
        total=len(found),
        running=sum(one.state is not RunState.DISCONNECTED for one in found),
        memory_bytes=memory,
        budget_bytes=pool.memory_budget_bytes,
        share=percent(memory, pool.memory_budget_bytes),
        installing=[one.text(visit.now) for one in underway(visit.parts.places)],
    )


def _matches(one: ServerSnapshot, visit: Visit) -> bool:
    state, language, words = (visit.query.get(name, "") for name in ("state", "language", "q"))
    return (
        state in ("", one.state)
        and (not language or language in one.languages)
        and has_words(words, one.server, str(one.root), str(one.pid or ""))
    )


def server_row(one: ServerSnapshot, budget_bytes: int, now: float) -> ServerRow:
    return ServerRow(
        id=f"{server_id(one.key)}-{one.run}",
        url=server_page(one.key),
        name=one.server,
        languages=", ".join(one.languages),
        version=one.version,
        project=one.root.name,
        root=str(one.root),
        state=one.state,
        draining=one.draining,
        reason=one.reason,
        run=one.run,
        pid=one.pid,
        memory_bytes=one.memory_bytes,
        share=percent(one.memory_bytes, budget_bytes),
        cpu_percent=one.cpu_percent,
        attached=one.attached,
        leases=one.leases,
        calls=one.calls,
        restarts=one.restarts,
        # Rounded: what differs in less is not news.
        started_at=round(now - one.age_s) if one.age_s else None,
        breaker=_breaker(one.breaker),
        holders=[HolderRow(held.label, round(now - held.held_s)) for held in one.holders],
        open_documents=one.open_documents,
        processes=list(one.processes),
    )


def _breaker(one: BreakerSnapshot) -> Breaker:
    until = round(one.opens_until) if one.opens_until else None
    return Breaker(one.state.replace("_", " "), one.failures, until, one.last_failure)


# --- actions ----------------------------------------------------------------------------------------------------------


def _on_server(act: Callable[[LanguageServerPool, ServerKey], Awaitable[str]]) -> Action:
    async def action(visit: Visit, form: Form) -> str:
        (name, *_) = form.get("server", [""])
        pool = visit.parts.pool
        return await act(pool, server_named(pool, name))

    return action


async def _restart(pool: LanguageServerPool, key: ServerKey) -> str:
    await pool.restart(key, BY)
    return f"{key.server} was restarted in {key.root.name}."


async def _stop(pool: LanguageServerPool, key: ServerKey) -> str:
    await pool.stop(key, BY)
    return f"{key.server} was stopped in {key.root.name}. The next call that needs it starts it."


async def _close_breaker(pool: LanguageServerPool, key: ServerKey) -> str:
    pool.close_breaker(key, BY)
    return f"{key.server} can be started in {key.root.name} again."


ACTIONS: dict[str, Action] = {
    f"{PATH}/restart": _on_server(_restart),
    f"{PATH}/stop": _on_server(_stop),
    f"{PATH}/close-breaker": _on_server(_close_breaker),
}

PAGE = Page(
    path=PATH,
    title="Servers",
    template="servers.html",
    sections={
        "filters": Section("servers/_filters.html", filters, every_s=3600),
        "table": Section("servers/_table.html", table, (ServerEvent,)),
    },
)
