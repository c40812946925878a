"""The pages of tasks: all of them as a tree, and one with its result, what the server saw of it, and its output."""

from collections.abc import Iterable
from typing import Any

import msgspec

from serena_central.agents.tasks import OutputLine, TaskView
from serena_central.core.errors import StoreError, TaskNotFound
from serena_central.core.event_kinds import TaskMoved, TaskWrote
from serena_central.store.query_results import TaskFilter
from serena_central.web.pages.actions import BY
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.references import project_page
from serena_central.web.responses import NotFound

PATH = "/tasks"

ROWS = 100
"""The newest ones; `serena-central task list` has more."""

LINES = 200
"""Of the end of the output."""

INSTRUCTION_CHARS = 120

COLUMNS = Columns[TaskView](
    {
        "task": Column("Task", lambda one: one.instruction.lower()),
        "state": Column("State", lambda one: one.state),
        "agent": Column("Agent", lambda one: one.agent or "", "minor"),
        "runner": Column("Runner", lambda one: one.runner, "minor"),
        "started": Column("Started", lambda one: -(one.started_at or one.created_at)),
        "cost": Column("Cost", lambda one: one.cost_usd or 0.0, "number"),
        "cancel": Column("Cancel", css="unseen"),
    },
    default="started",
)


FINDINGS = {
    "new_errors": "New errors",
    "broken_references": "Broken references",
    "fixed_errors": "Fixed errors",
    "undated": "Errors that may be older",
}
"""What a verified result calls them → how they are shown."""


class TaskLine(msgspec.Struct, frozen=True):
    """A task in the tree. `level` is 0 for one that no task in the list started."""

    one: TaskView
    url: str
    level: int
    words: str
    """How its instruction begins."""
    state: str
    """Its name in style sheets."""
    is_over: bool


class TaskTree(msgspec.Struct, frozen=True):
    """The newest tasks, each followed by those that it started; what stands beside each other is sorted. `cost_usd` is
    of all of them."""

    columns: list[Heading]
    lines: list[TaskLine]
    note: str
    cost_usd: float


class TaskState(msgspec.Struct, frozen=True):
    """`tokens` and `calls` are pairs of a name and a number."""

    line: TaskLine
    project: str
    parent_url: str
    tokens: list[tuple[str, int]]
    calls: list[tuple[str, int]]
    edits: list[tuple[str, str]]
    """Ids of edits, and their pages."""
    files: list[str]
    changed_otherwise: list[str]
    findings: list[tuple[str, list[str]]]
    """What its work did to errors, by kind; each as a place and a message."""
    tests: list[tuple[str, str]]
    """Commands that ran tests, and how they ended."""
    notes: list[str]


class TaskOutput(msgspec.Struct, frozen=True):
    lines: list[OutputLine]


async def tree(visit: Visit) -> TaskTree:
    scheduler = await visit.parts.tasks.scheduler()
    try:
        found = await scheduler.records.listed(TaskFilter(limit=ROWS))
    except StoreError as error:
        return TaskTree([], [], f"Tasks are not available: {error}", 0.0)
    lines = list(_lines(COLUMNS.arranged(found, visit)))
    return TaskTree(COLUMNS.headings(visit, PATH), lines, "", sum(one.cost_usd or 0.0 for one in found))


def _lines(found: list[TaskView]) -> Iterable[TaskLine]:
    known = {one.id for one in found}
    below: dict[str, list[TaskView]] = {}
    for one in found:
        below.setdefault(one.parent if one.parent in known else "", []).append(one)
    waiting = [(one, 0) for one in reversed(below.get("", []))]
    while waiting:
        one, level = waiting.pop()
        yield _line(one, level)
        waiting += [(child, level + 1) for child in reversed(below.get(one.id, []))]


def _line(one: TaskView, level: int) -> TaskLine:
    words = " ".join(one.instruction.split())
    return TaskLine(
        one,
        link(f"{PATH}/{one.id}"),
        level,
        words if len(words) <= INSTRUCTION_CHARS else f"{words[:INSTRUCTION_CHARS]}…",
        one.state.replace(" ", "_"),
        one.state.is_over,
    )


async def state(visit: Visit) -> TaskState:
    one = await _found(visit)
    seen = one.verified
    return TaskState(
        line=_line(one, 0),
        project=project_page(one.project_root),
        parent_url=link(f"{PATH}/{one.parent}") if one.parent else "",
        tokens=[(name.replace("_", " "), count) for name, count in one.usage.items() if count],
        calls=sorted(seen.get("calls", {}).items()),
        edits=[(edit, link(f"/edits/{edit}")) for edit in seen.get("edits", [])],
        files=seen.get("files", []),
        changed_otherwise=seen.get("changed_otherwise", []),
        findings=findings(seen),
        tests=[(one["command"], exit_words(one["exit_code"])) for one in seen.get("tests", [])],
        notes=seen.get("notes", []),
    )


def findings(seen: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What a verified result says of errors, by kind."""
    return [(title, list(map(_place, seen[name]))) for name, title in FINDINGS.items() if seen.get(name)]


def _place(error: dict[str, Any]) -> str:
    return f"{error['path']}:{error['line']}: {error['message']}"


def exit_words(code: int | None) -> str:
    return "exit code not known" if code is None else f"exit code {code}"


async def output(visit: Visit) -> TaskOutput:
    one = await _found(visit)
    scheduler = await visit.parts.tasks.scheduler()
    return TaskOutput(await scheduler.records.newest_output(one.id, LINES))


async def _found(visit: Visit) -> TaskView:
    try:
        return await (await visit.parts.tasks.scheduler()).records.find(visit.path["task"])
    except TaskNotFound as error:
        raise NotFound(str(error)) from error


async def _cancel(visit: Visit, form: Form) -> str:
    """With all that it started."""
    scheduler = await visit.parts.tasks.scheduler()
    ended = await scheduler.cancel(one_value(form, "task"), BY)
    return f"{ended.id}: {ended.state}."


ACTIONS: dict[str, Action] = {f"{PATH}/cancel": _cancel}

PAGE = Page(
    path=PATH,
    title="Tasks",
    template="tasks.html",
    sections={"tree": Section("tasks/_tree.html", tree, (TaskMoved,), recorded=True)},
)

ONE = Page(
    path=f"{PATH}/{{task}}",
    title="Task {task}",
    template="task.html",
    sections={
        "state": Section("task/_state.html", state, (TaskMoved,)),
        "output": Section("task/_output.html", output, (TaskWrote, TaskMoved)),
    },
    in_navigation=False,
)
