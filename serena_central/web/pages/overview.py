"""The overview page: sessions, servers, calls, events, and what needs attention."""

from collections import Counter
from pathlib import Path

import msgspec

from serena_central.core.event_kinds import (
    CallFinished,
    EditApplied,
    ProjectEvent,
    ServerBreaker,
    ServerEvent,
    ServerMissing,
    ServerMoved,
    SessionEvent,
    StoreEvent,
    StoreFailed,
)
from serena_central.core.events import Event, Severity
from serena_central.core.owners import put_above
from serena_central.core.words import counted
from serena_central.pool.breaker import REFUSING, BreakerState
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.pool.state import RunState
from serena_central.projects.new_servers import needed
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import ClaudeSettings
from serena_central.projects.trust.trust_decisions import State, Trust
from serena_central.sessions.session import Minute
from serena_central.sessions.session_snapshot import SessionSnapshot
from serena_central.web.pages.configuration import PATH as CONFIGURATION
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.plot import Plot, Series, Timeline, plot
from serena_central.web.pages.references import (
    SHOWN_STATES,
    PageLink,
    PageLinks,
    project_page,
    server_page,
    session_page,
    shown_state,
)
from serena_central.web.pages.rendering import count, milliseconds, percent
from serena_central.web.pages.statistics import plots_of_calls
from serena_central.web.pages.time_ranges import QUERY, Ranges, chosen, ranges
from serena_central.web.tally import MissingServer, Tally

NEWEST_SESSIONS = 8
NEWEST_EVENTS = 12
MOST_SERVERS = 12
MOST_ATTENTION = 12
NAMED_PROJECTS = 3

MINUTE_S = 60.0

RECENT_S = 900.0
"""What went wrong longer ago needs no attention any more, unless it still is so."""

RANKS = {"error": 0, "warning": 1, "info": 2}
"""Failures come first."""

CONFLICTS = ("EditConflict", "FileChanged")
"""Errors of calls that people should know of: two sessions want to change the same."""

_SAID_BY_STATE = (ServerBreaker, ServerMissing, StoreFailed)
"""What is still so is told by the parts themselves."""


class Segment(msgspec.Struct, frozen=True):
    """A state in the strip of sessions. `x` and `width` are percent."""

    state: str
    count: int
    x: float
    width: float
    url: str


class Agent(msgspec.Struct, frozen=True):
    """A session in short. `since` is its last activity; without a project, `folder` is where its client works."""

    id: str
    client: str
    project: str
    folder: str
    state: str
    doing: str
    since: float
    calls: int
    url: str


class Sessions(msgspec.Struct, frozen=True):
    """All sessions by state, and the ones that did something last."""

    total: int
    segments: list[Segment]
    newest: list[Agent]


class ServerCard(msgspec.Struct, frozen=True):
    """A language server in short. `share` is its memory in percent of the budget."""

    url: str
    name: str
    project: str
    root: str
    state: str
    memory_bytes: int
    share: float


class ServerCards(msgspec.Struct, frozen=True):
    """Language servers that run, the largest first; `share` is what all take of the memory budget, in percent."""

    running: int
    memory_bytes: int
    budget_bytes: int
    share: float
    largest: list[ServerCard]
    more: int


class LoadCard(msgspec.Struct, frozen=True):
    """The last hour, or what `ranges` has chosen; None: there is no choice."""

    calls: Plot
    durations: Plot
    ranges: Ranges | None = None


class Happened(msgspec.Struct, frozen=True):
    """An event in a line. `id` counts through the events of this run of the server."""

    id: int
    at: float
    kind: str
    severity: str
    text: str
    about: list[PageLink]


class Events(msgspec.Struct, frozen=True):
    newest: list[Happened]


class AttentionItem(msgspec.Struct, frozen=True):
    """Something a person may want to do something about. `url` leads to where."""

    severity: str
    text: str
    advice: str
    url: str
    at: float | None = None


class Attention(msgspec.Struct, frozen=True):
    """Empty when all is well."""

    problems: list[AttentionItem]
    more: int


async def sessions(visit: Visit) -> Sessions:
    found = visit.parts.sessions.snapshots()
    counts = Counter(map(shown_state, found))
    segments: list[Segment] = []
    x = 0.0
    for state in SHOWN_STATES:
        if counts[state]:
            width = 100 * counts[state] / len(found)
            segments.append(Segment(state, counts[state], round(x, 2), round(width, 2), link("/sessions", state=state)))
            x += width
    found.sort(key=lambda one: one.last_activity, reverse=True)
    return Sessions(len(found), segments, [_agent(one) for one in found[:NEWEST_SESSIONS]])


def _agent(one: SessionSnapshot) -> Agent:
    return Agent(
        id=one.session_id,
        client=f"{one.client_name} {one.client_version}".strip(),
        project=one.project_name or "",
        folder=one.project_root or one.working_folder or "",
        state=shown_state(one),
        doing=", ".join(f"{call.tool} {call.about}".strip() for call in one.running_calls[:3]),
        since=round(one.last_activity),
        calls=one.tool_call_count,
        url=session_page(one.session_id),
    )


async def servers(visit: Visit) -> ServerCards:
    pool = visit.parts.pool
    found = [one for one in pool.snapshot() if one.state is not RunState.DISCONNECTED]
    found.sort(key=lambda one: one.memory_bytes, reverse=True)
    memory, budget = sum(one.memory_bytes for one in found), pool.memory_budget_bytes
    return ServerCards(
        running=len(found),
        memory_bytes=memory,
        budget_bytes=budget,
        share=percent(memory, budget),
        largest=[_server(one, budget) for one in found[:MOST_SERVERS]],
        more=max(0, len(found) - MOST_SERVERS),
    )


def _server(one: ServerSnapshot, budget: int) -> ServerCard:
    return ServerCard(
        url=server_page(one.key),
        name=one.server,
        project=one.root.name,
        root=str(one.root),
        state=one.state,
        memory_bytes=one.memory_bytes,
        share=percent(one.memory_bytes, budget),
    )


async def load(visit: Visit) -> LoadCard:
    choice = ranges(visit, "")
    if not any(visit.query.get(name) for name in QUERY):
        return msgspec.structs.replace(hour(visit.parts.tally.minutes.last_hour(visit.now)), ranges=choice)
    wanted = chosen(visit)
    drawn = plots_of_calls(wanted, await visit.parts.store.ask(lambda queries: queries.calls_over_time(wanted)))
    return LoadCard(*drawn, choice)


def hour(minutes: list[Minute]) -> LoadCard:
    """Plots of these minutes."""

    def calls_in(index: int) -> str:
        one = minutes[index]
        return counted(one.calls, "call") + (f", {one.errors} failed" if one.errors else "")

    def durations_in(index: int) -> str:
        one = minutes[index]
        return f"p50 {milliseconds(one.p50_ms or 0)}, p95 {milliseconds(one.p95_ms or 0)}"

    axis = Timeline(minutes[0].at, minutes[-1].at + MINUTE_S, [one.at for one in minutes], MINUTE_S)
    return LoadCard(
        calls=plot(
            "Calls",
            "per minute",
            [
                Series("calls", [one.calls for one in minutes], "bars"),
                Series("failed", [one.errors for one in minutes], "bars"),
            ],
            axis,
            show=count,
            says_of=calls_in,
        ),
        durations=plot(
            "Duration of calls",
            "",
            [
                Series("p95", [one.p95_ms for one in minutes]),
                Series("p50", [one.p50_ms for one in minutes]),
            ],
            axis,
            show=milliseconds,
            says_of=durations_in,
        ),
    )


async def events(visit: Visit) -> Events:
    kept = [event for event in reversed(visit.parts.tally.news) if not isinstance(event, CallFinished)]
    references = PageLinks(visit.parts)
    return Events([_happened(event, references) for event in kept[:NEWEST_EVENTS]])


def _happened(event: Event, references: PageLinks) -> Happened:
    return Happened(
        id=event.seq,
        at=event.at,
        kind=event.kind,
        severity=event.severity,
        text=event.message,
        about=references.of(event),
    )


async def attention(visit: Visit) -> Attention:
    parts = visit.parts
    happened = [*parts.tally.earlier, *parts.tally.news]
    recent = [
        event
        for event in happened
        if event.at > visit.now - RECENT_S
        and not (isinstance(event, ServerMoved) and (event.root, event.server) in parts.tally.missing)
    ]
    problems = [
        *_of_store(parts.store.writer.problem),
        *_of_servers(parts.pool.snapshot()),
        *_of_missing_servers(parts.tally, parts.projects),
        *await _of_trust(parts.projects.open_projects(), parts.trust),
        *_of_settings(parts.projects.open_projects(), parts.claude),
        *_of_events(recent, PageLinks(parts)),
    ]
    problems.sort(key=lambda one: RANKS[one.severity])  # stable: what people can do something about comes first
    return Attention(problems[:MOST_ATTENTION], max(0, len(problems) - MOST_ATTENTION))


def _of_store(problem: str | None) -> list[AttentionItem]:
    if problem is None:
        return []
    return [
        AttentionItem("error", problem, "Nothing is recorded until the database can be written again.", link("/about"))
    ]


def _of_servers(found: list[ServerSnapshot]) -> list[AttentionItem]:
    open_breakers = {one.key: one for one in reversed(found) if one.breaker.state in REFUSING}
    return [
        AttentionItem(
            "error",
            f"{one.server} in {one.root.name} failed {counted(one.breaker.failures, 'time')}: "
            f"{one.breaker.last_failure}",
            "It will not be restarted automatically. Fix the cause, then restart it or change its configuration."
            if one.breaker.state == BreakerState.GIVEN_UP
            else "Restarts are paused. Fix the cause, or close its breaker to retry now.",
            server_page(one.key),
        )
        for one in open_breakers.values()
    ]


def _of_missing_servers(tally: Tally, projects: ProjectRegistry) -> list[AttentionItem]:
    """Language servers that known projects lack, and that are not being installed."""
    by_server: dict[str, dict[str, MissingServer]] = {}
    for (root, server), missing in tally.missing.items():
        project, is_known = projects.opened(root), projects.known_root_of(Path(root)) == Path(root)
        if is_known and (project is None or _is_still_missing(project, server)):
            by_server.setdefault(server, {})[root] = missing
    problems: list[AttentionItem] = []
    for in_roots in by_server.values():
        (first, *_), names = in_roots.values(), sorted({one.project for one in in_roots.values()})
        more = f" and {len(names) - NAMED_PROJECTS} more" if len(names) > NAMED_PROJECTS else ""
        what = f"{', '.join(names[:NAMED_PROJECTS])}{more}: {first.said}."
        problems.append(
            AttentionItem("warning", what, f"To install it: {first.how_to_get}", project_page(next(iter(in_roots))))
        )
    return problems


def _is_still_missing(project: Project, server: str) -> bool:
    installing = {one.server for one in project.languages.availability.installing()}
    return server not in installing and any(spec.name == server for spec in needed(project))


async def _of_trust(found: list[Project], trust: Trust) -> list[AttentionItem]:
    """Open projects of which something is held back until a person has looked."""
    problems: list[AttentionItem] = []
    for one in found:
        state, page = trust.standing(one.root).state, project_page(str(one.root))
        held_back = [*one.restrictions, *(f"{server} is not started" for server in sorted(await one.servers_not_run()))]
        if state is State.CHANGED:
            what = f"What {one.name} can execute has changed since it was trusted."
            problems.append(AttentionItem("warning", what, "Review the difference and trust it again.", page))
        elif state is State.UNTRUSTED and held_back:
            what = f"{one.name} is not trusted: {'; '.join(held_back)}."
            problems.append(AttentionItem("warning", what, "Review and trust it.", page))
        elif one.strangers_above is not None:
            what = f"{one.name} is trusted, but not executed: {'; '.join(held_back)}."
            problems.append(AttentionItem("warning", what, put_above(one.root, one.strangers_above), page))
    return problems


def _of_settings(found: list[Project], claude: ClaudeSettings) -> list[AttentionItem]:
    """Open projects where something in settings files of Claude Code's format has no effect: those of a user are in all
    projects, and are one problem."""
    by_errors: dict[tuple[str, ...], list[Project]] = {}
    for one in found:
        settings = claude.of(one.root)
        if settings is not None and settings.errors:
            by_errors.setdefault(tuple(map(str, settings.errors)), []).append(one)
    problems: list[AttentionItem] = []
    for errors, (one, *others) in by_errors.items():
        where = f"{one.name} and {counted(len(others), 'other project')}" if others else one.name
        what = f"{where}: {counted(len(errors), 'error')} in settings, the first: {errors[0]}"
        advice = "The last good version of a broken file stays in force until it is fixed."
        problems.append(AttentionItem("warning", what, advice, link(CONFIGURATION, root=str(one.root))))
    return problems


def _of_events(recent: list[Event], references: PageLinks) -> list[AttentionItem]:
    """The newest of each kind and subject that went wrong."""
    newest: dict[tuple[str, ...], Event] = {}
    for event in recent:
        if _asks_for_attention(event):
            newest[event.kind, event.server or "", event.project or ""] = event
    return [_problem(event, references) for event in sorted(newest.values(), key=lambda event: event.at, reverse=True)]


def _asks_for_attention(event: Event) -> bool:
    if isinstance(event, CallFinished):
        return event.error in CONFLICTS
    return event.severity is not Severity.INFO and not isinstance(event, _SAID_BY_STATE)


def _problem(event: Event, references: PageLinks) -> AttentionItem:
    leads = [one.url for one in references.of(event) if one.url]
    where = leads[0] if leads else link("/events", kind=event.kind)
    match event:
        case CallFinished():
            text = f"An edit in {event.project} was refused ({event.tool}) because its symbol had changed."
            advice = "Nothing is lost: the agent received the current text. Two agents may be working on the same code."
        case ServerMoved():
            text = f"{event.server} in {Path(event.project or '').name}: {event.reason}"
            advice = "The next call restarts it. Its page shows its history and stderr."
        case _:
            words = (event.server or "", Path(event.project or "").name, event.message)
            text, advice = " · ".join(word for word in words if word), ""
    return AttentionItem(event.severity, text, advice, where, event.at)


PAGE = Page(
    path="",
    title="Overview",
    template="overview.html",
    sections={
        "attention": Section(
            "overview/_attention.html", attention, (ServerEvent, ProjectEvent, StoreEvent, CallFinished)
        ),
        "sessions": Section("overview/_sessions.html", sessions, (SessionEvent, CallFinished), of_calls=True),
        "servers": Section("overview/_servers.html", servers, (ServerEvent,)),
        "load": Section("overview/_load.html", load),
        "events": Section(
            "overview/_events.html",
            events,
            (SessionEvent, ServerEvent, ProjectEvent, EditApplied, StoreEvent),
            of_calls=True,
        ),
    },
)
