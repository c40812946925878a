"""The page of hooks: sessions that they have halted, and of one project the hooks and their newest runs.

What reads settings is imported when the page is asked for.
"""

from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.core.event_kinds import CallFinished, ProjectTrust, SessionHalted, SessionResumed
from serena_central.core.quoting import quoted
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.projects import known, one_value
from serena_central.web.pages.references import ProjectLink, project_links, project_page, session_page

PATH = "/hooks"

BY = "a user in the dashboard"

MOST_RUNS = 100


class HaltedRow(msgspec.Struct, frozen=True):
    """`at` is Unix seconds."""

    session: str
    url: str
    reason: str
    root: str
    at: float


class HaltedSessions(msgspec.Struct, frozen=True):
    columns: list[Heading]
    rows: list[HaltedRow]


class HookRow(msgspec.Struct, frozen=True):
    """One hook. `rule` is its matcher."""

    event: str
    rule: str
    condition: str
    type: str
    runs: str
    tier: str
    place: str
    background: bool
    active: bool


class HookTable(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is empty where no project is chosen. `held_back` counts hooks that the repository is not trusted with;
    `trust` is its state in words, `trust_url` the page to decide on."""

    projects: list[ProjectLink]
    name: str = ""
    columns: list[Heading] = []
    rows: list[HookRow] = []
    held_back: int = 0
    trust: str = ""
    trust_url: str = ""


class RunRow(msgspec.Struct, frozen=True):
    time: str
    event: str
    tool: str
    file: str
    outcome: str
    exit_code: int | None
    duration_ms: float
    hook: str
    text: str


class RunTable(msgspec.Struct, frozen=True):
    """`name` is empty where no project is chosen."""

    name: str
    columns: list[Heading]
    rows: list[RunRow]


HALTED_COLUMNS = Columns[HaltedRow](
    {
        "session": Column("Session", lambda one: one.session),
        "reason": Column("Reason", lambda one: one.reason.lower()),
        "project": Column("Project", lambda one: one.root),
        "since": Column("Since", lambda one: -one.at),
        "action": Column("Resume", css="unseen"),
    },
    parameter="halted",
)
HOOK_COLUMNS = Columns[HookRow](
    {
        "event": Column("Event", lambda one: one.event),
        "rule": Column("Rule", lambda one: one.rule),
        "runs": Column("Runs", lambda one: (one.type, one.runs)),
        "state": Column("State", lambda one: one.active),
        "from": Column("From", lambda one: (one.tier, one.place), "origin"),
    },
    parameter="hooks",
)
RUN_COLUMNS = Columns[RunRow](
    {
        "time": Column("Time", lambda one: one.time),
        "event": Column("Event", lambda one: one.event),
        "tool": Column("Tool", lambda one: one.tool),
        "outcome": Column("Outcome", lambda one: one.outcome),
        "code": Column("Exit code", lambda one: -1 if one.exit_code is None else one.exit_code, "number"),
        "duration": Column("Duration", lambda one: one.duration_ms, "number"),
        "hook": Column("Hook and output", lambda one: one.hook),
    },
    default="-time",
    parameter="runs",
)


async def halted(visit: Visit) -> HaltedSessions:
    found = visit.parts.gating.halted()
    rows = [
        HaltedRow(session, session_page(session), one.reason, one.root, round(one.at)) for session, one in found.items()
    ]
    return HaltedSessions(HALTED_COLUMNS.headings(visit, PATH), HALTED_COLUMNS.arranged(rows, visit))


async def hooks(visit: Visit) -> HookTable:
    asked = visit.query.get("root", "")
    links = project_links(visit, PATH, asked)
    if not asked:
        return HookTable(projects=links)
    one = known(visit, asked)
    found = visit.parts.claude.of(Path(one.root))
    if found is None or not found.has_hooks:
        return HookTable(projects=links, name=one.name)
    from serena_central.gates.listing import listed

    standing = visit.parts.trust.standing(Path(one.root))
    rows = [
        HookRow(
            event=hook.event,
            rule=hook.matcher or "*",
            condition=hook.condition,
            type=hook.type,
            runs=hook.runs,
            tier=hook.tier,
            place=hook.place,
            background=hook.background,
            active=hook.active,
        )
        for hook in listed(found, standing)
    ]
    return HookTable(
        projects=links,
        name=one.name,
        columns=HOOK_COLUMNS.headings(visit, PATH),
        rows=HOOK_COLUMNS.arranged(rows, visit),
        held_back=sum(not row.active for row in rows),
        trust=str(standing.state),
        trust_url=project_page(one.root),
    )


async def runs(visit: Visit) -> RunTable:
    asked = visit.query.get("root", "")
    if not asked:
        return RunTable("", [], [])
    one = known(visit, asked)
    from serena_central.gates import log

    lines = await anyio.to_thread.run_sync(log.newest, Path(one.root), MOST_RUNS)
    rows = [
        RunRow(
            time=line.time,
            event=line.event,
            tool=line.tool,
            file=line.file,
            outcome=line.outcome,
            exit_code=line.exit_code,
            duration_ms=line.duration_ms,
            hook=line.hook,
            text=line.text,
        )
        for line in lines
    ]
    return RunTable(one.name, RUN_COLUMNS.headings(visit, PATH), RUN_COLUMNS.arranged(rows, visit))


async def _resume(visit: Visit, form: Form) -> str:
    """Lifts the halt of a session."""
    session = one_value(form, "session")
    resumed = visit.parts.gating.resume(session, BY)
    return f"{quoted(session)} was resumed." if resumed else f"{quoted(session)} is not halted."


ACTIONS: dict[str, Action] = {f"{PATH}/resume": _resume}

PAGE = Page(
    path=PATH,
    title="Hooks",
    template="hooks.html",
    sections={
        "halted": Section("hooks/_halted.html", halted, (SessionHalted, SessionResumed), every_s=86_400),
        "hooks": Section("hooks/_hooks.html", hooks, (ProjectTrust,)),
        "runs": Section("hooks/_runs.html", runs, (CallFinished, SessionHalted)),
    },
)
