"""The pages of plans: all runs, and one with its waves, their tasks and checks, and what the server saw."""

import msgspec

from serena_central.agents.plans.run_state import PlanState, PlanView, TaskRun, WaveRun, WaveState
from serena_central.core.errors import PlanNotFound, StoreError
from serena_central.core.event_kinds import PlanMoved
from serena_central.store.query_results import TaskFilter
from serena_central.web.pages.actions import BY
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import project_page
from serena_central.web.pages.tasks import PATH as TASKS
from serena_central.web.pages.tasks import exit_words, findings
from serena_central.web.responses import NotFound

PATH = "/plans"

ROWS = 100
"""The newest ones; `serena-central waves list` has more."""

MOST_LISTED = 20
"""Edits of others that a wave names."""


class PlanLine(msgspec.Struct, frozen=True):
    """A run of a plan. `done` counts its waves that are done."""

    one: PlanView
    url: str
    done: int


class PlanList(msgspec.Struct, frozen=True):
    columns: list[Heading]
    lines: list[PlanLine]
    note: str


class TaskLine(msgspec.Struct, frozen=True):
    one: TaskRun
    url: str
    """"" before it is accepted."""
    state: str
    """Its name in style sheets."""
    can_undo: bool


class WaveLine(msgspec.Struct, frozen=True):
    """`findings` are kinds with places, `tests` commands with how they ended."""

    one: WaveRun
    number: int
    columns: list[Heading]
    tasks: list[TaskLine]
    files: list[str]
    changed_otherwise: list[str]
    edits_of_others: list[str]
    findings: list[tuple[str, list[str]]]
    tests: list[tuple[str, str]]
    undetermined: list[str]
    can_undo: bool


class PlanDetails(msgspec.Struct, frozen=True):
    """One plan. `can_resume` and `can_undo` are what its state permits."""

    one: PlanView
    project: str
    waves: list[WaveLine]
    waits: bool
    runs: bool
    can_resume: bool
    can_undo: bool


COLUMNS = Columns[PlanLine](
    {
        "plan": Column("Plan", lambda line: line.one.name.lower()),
        "state": Column("State", lambda line: line.one.state),
        "done": Column("Waves done", lambda line: line.done, "number"),
        "started": Column("Started", lambda line: -line.one.created_at),
        "cost": Column("Cost", lambda line: line.one.cost_usd, "number"),
    },
    default="started",
)


TASK_COLUMNS = Columns[TaskLine](
    {
        "task": Column("Task", lambda line: line.one.name.lower()),
        "state": Column("State", lambda line: line.state),
        "after": Column("Waits for", lambda line: sorted(line.one.after)),
        "cost": Column("Cost", lambda line: line.one.cost_usd or 0.0, "number"),
        "undo": Column("Undo", css="unseen"),
    },
)
"""Without an order in the query, tasks stand as the plan has them."""


async def listed(visit: Visit) -> PlanList:
    try:
        found = await (await visit.parts.tasks.plans()).listed(TaskFilter(limit=ROWS))
    except StoreError as error:
        return PlanList([], [], f"Plans are not available: {error}")
    lines = [
        PlanLine(one, link(f"{PATH}/{one.id}"), sum(wave.state is WaveState.DONE for wave in one.waves))
        for one in found
    ]
    return PlanList(COLUMNS.headings(visit, PATH), COLUMNS.arranged(lines, visit), "")


async def state(visit: Visit) -> PlanDetails:
    one = await _found(visit)
    runs = one.state in (PlanState.RUNNING, PlanState.WAITING)
    waves = [_wave(wave, number, visit, over=not runs) for number, wave in enumerate(one.waves, 1)]
    return PlanDetails(
        one=one,
        project=project_page(one.project_root),
        waves=waves,
        waits=one.state is PlanState.WAITING,
        runs=runs,
        can_resume=not runs and one.state is not PlanState.DONE,
        can_undo=any(wave.can_undo for wave in waves),
    )


def _wave(wave: WaveRun, number: int, visit: Visit, *, over: bool) -> WaveLine:
    seen = wave.verified
    tasks = [
        TaskLine(
            one,
            link(f"{TASKS}/{one.task}") if one.task else "",
            one.state.replace(" ", "_"),
            over and len(one.verified.get("edits", ())) > len(one.undone),
        )
        for one in wave.tasks
    ]
    return WaveLine(
        one=wave,
        number=number,
        columns=TASK_COLUMNS.headings(visit, f"{PATH}/{visit.path['plan']}", of=str(number)),
        tasks=TASK_COLUMNS.arranged(tasks, visit),
        files=seen.get("files", []),
        changed_otherwise=seen.get("changed_otherwise", []),
        edits_of_others=seen.get("edits_of_others", [])[:MOST_LISTED],
        findings=findings(seen),
        tests=[(one["command"], exit_words(one["exit_code"])) for one in seen.get("tests", [])],
        undetermined=seen.get("undetermined", []),
        can_undo=any(one.can_undo for one in tasks),
    )


async def _found(visit: Visit) -> PlanView:
    try:
        return await (await visit.parts.tasks.plans()).find(visit.path["plan"])
    except PlanNotFound as error:
        raise NotFound(str(error)) from error


async def _approve(visit: Visit, form: Form) -> str:
    return await _decide(visit, form, approved=True)


async def _decline(visit: Visit, form: Form) -> str:
    return await _decide(visit, form, approved=False)


async def _decide(visit: Visit, form: Form, *, approved: bool) -> str:
    found = await (await visit.parts.tasks.plans()).decide(one_value(form, "plan"), BY, approved=approved)
    return f"{found.id}: {'approved' if approved else 'declined'}."


async def _cancel(visit: Visit, form: Form) -> str:
    """With its tasks."""
    found = await (await visit.parts.tasks.plans()).cancel(one_value(form, "plan"), BY)
    return f"{found.id}: {found.state}."


async def _resume(visit: Visit, form: Form) -> str:
    found = await (await visit.parts.tasks.plans()).resume(one_value(form, "plan"))
    return f"{found.id}: {found.state}."


async def _undo(visit: Visit, form: Form) -> str:
    """Of the plan, of a wave, or of a task of it."""
    wave, task = one_value(form, "wave"), one_value(form, "task")
    done = await (await visit.parts.tasks.plans()).undo(one_value(form, "plan"), BY, wave=wave, task=task)
    refused = "".join(f" Not undone: {edit}: {why}" for edit, why in done.refused.items())
    return f"Undone: {', '.join(done.undone) or 'nothing'}.{refused}"


ACTIONS: dict[str, Action] = {
    f"{PATH}/approve": _approve,
    f"{PATH}/decline": _decline,
    f"{PATH}/cancel": _cancel,
    f"{PATH}/resume": _resume,
    f"{PATH}/undo": _undo,
}

PAGE = Page(
    path=PATH,
    title="Plans",
    template="plans.html",
    sections={"plans": Section("plans/_plans.html", listed, (PlanMoved,), recorded=True)},
)

ONE = Page(
    path=f"{PATH}/{{plan}}",
    title="Plan {plan}",
    template="plan.html",
    sections={"state": Section("plan/_state.html", state, (PlanMoved,))},
    in_navigation=False,
)
