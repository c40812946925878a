"""Runs a tool on several projects of one call: read in all of them at once, each for itself; edited in all or none."""

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from serena_central.core.errors import InvalidArguments, JointEditRefused, SerenaCentralError
from serena_central.core.groups import reported_failure
from serena_central.core.locks import KeyedLocks
from serena_central.core.progress import waiting_for
from serena_central.core.quoting import escaped, quoted
from serena_central.projects.editing.joint_edits import PartFailed, jointly
from serena_central.projects.project import Project
from serena_central.projects.scope import Scope
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import ToolCall
from serena_central.tools.project_call import on_project, timeout_of, until

logger = logging.getLogger(__name__)

PART_S = 25.0
"""How long one of several projects may take; afterwards the others' answers are sent, and its entry says so."""

NAMED = 3
"""Maximum of projects that a progress message names as pending."""

PROJECTS_AT_ONCE = 8
"""Projects of one call that are queried concurrently: enough to hide a slow one, few enough for other calls."""

Work = Callable[[str, Project], Awaitable[Any]]
"""One project's part of the call: takes its label and the project."""


async def on_projects(
    tool: Tool, call: ToolCall, scope: Scope, labels: Mapping[Path, str], parsed: dict[str, Any]
) -> dict[str, Any]:
    """Results by label: one project's failure stands in its group and spoils no other, but of an edit, which is made in
    all or none. `labels`: of all projects of the scope, also of those that could not be opened."""
    most_s = math.inf if tool.edits else PART_S
    if tool.together is not None:
        with until(call, min(timeout_of(tool, call.services.settings), most_s), tool.name):
            call.together = await tool.together(call, scope.projects, parsed)
    scope = _continued_group(call, scope, labels)
    results: dict[str, Any] = {labels[project.root]: None for project in scope.projects}
    calls = {label: call.part(label) for label in results}
    failures = {labels[one.root]: one.error for one in scope.failures}
    if tool.journaled and not parsed.get("dry_run"):
        parts = list(zip(calls, scope.projects, strict=True))
        done = await edit_all(
            parts,
            failures,
            lambda label, one: on_project(tool, calls[label], one, parsed, in_group=True),
            call.services.history.planned,
        )
        _gather_notes(call, calls)
        return {label: _failure(one) if isinstance(one, SerenaCentralError) else one for label, one in done.items()}
    places = anyio.CapacityLimiter(PROJECTS_AT_ONCE)

    answered: set[str] = set()

    def how_far() -> tuple[str, float | None]:
        waiting = ", ".join(quoted(label) for label in [label for label in calls if label not in answered][:NAMED])
        return f"{len(answered)} of {len(calls)} projects answered, not yet {waiting}", len(answered) / len(calls)

    async def one(label: str, project: Project) -> None:
        async with places:
            try:
                results[label] = await on_project(tool, calls[label], project, parsed, most_s=most_s, in_group=True)
            except SerenaCentralError as error:
                results[label] = _failure(error)
            except Exception:
                logger.exception("%s: %s failed on %s", call.id, tool.name, project.root)
                results[label] = {"error": internal_error(call.id)}
            answered.add(label)

    with waiting_for(how_far):
        async with anyio.create_task_group() as tasks:
            for label, project in zip(calls, scope.projects, strict=True):
                tasks.start_soon(one, label, project)
    _gather_notes(call, calls)
    return results | {name: _failure(error) for name, error in failures.items()}


def internal_error(call: str) -> str:
    """What an answer says in place of a result, of a failure that says nothing to the caller."""
    return f"Internal error. See the server's log, call {call}."


async def edit_all(
    projects: Sequence[tuple[str, Project]],
    unopened: Mapping[str, SerenaCentralError],
    work: Work,
    locks: KeyedLocks,
) -> dict[str, Any]:
    """Results by label. An error among them came after that project was edited, like the others. `locks` as in
    `jointly`.

    Raises:
        JointEditRefused: one of them can't be edited, or opened (`unopened`: why), so that none was edited.
        SerenaCentralError: the operation could not be written; nothing was changed.
    """
    labels = {project.root: label for label, project in projects}
    for label, error in unopened.items():
        raise JointEditRefused(label, error, [*labels.values()])

    def part(label: str, project: Project) -> Callable[[], Awaitable[Any]]:
        return lambda: work(label, project)

    works: dict[Path, Callable[[], Awaitable[Any]]] = {
        project.root: part(label, project) for label, project in projects
    }
    try:
        done = await jointly(works, locks)
    except PartFailed as failed:
        raise JointEditRefused(labels[failed.root], failed.error, [*labels.values()]) from failed.error
    except BaseExceptionGroup as group:
        raise reported_failure(group) from group
    return {label: done[project.root] for label, project in projects}


def check_cursor(tool: Tool, call: ToolCall, scope: Scope, labels: Mapping[Path, str]) -> None:
    """Raises InvalidArguments where a cursor is not one of an answer about these projects."""
    page = call.page
    if not page.group:
        if scope.grouped and page.start:
            raise InvalidArguments("This cursor belongs to the answer of one project. Name that project in `project`.")
        return
    # Alone, a project is asked the same as among others, but for what they declare.
    is_known = any(_is_of(page.group, one, labels) for one in scope.projects)
    if not is_known or (tool.together is not None and not scope.grouped):
        raise InvalidArguments(
            f"This cursor continues the list of {quoted(page.group)} in an answer for several projects. Pass it with "
            "the same `project` as before."
        )


def _is_of(group: str, project: Project, labels: Mapping[Path, str]) -> bool:
    """Whether a cursor's group is a project's, by its label or its root, which an answer of several hosts has."""
    return group in (escaped(labels[project.root]), escaped(str(project.root)))


def _continued_group(call: ToolCall, scope: Scope, labels: Mapping[Path, str]) -> Scope:
    """The project alone whose list is continued, if one is."""
    group = call.page.group
    if not group:
        return scope
    return scope._replace(projects=[one for one in scope.projects if _is_of(group, one, labels)], failures=())


def _gather_notes(call: ToolCall, parts: Mapping[str, ToolCall]) -> None:
    for label, part in parts.items():
        for note in part.notes:
            call.note(f"{quoted(label)}: {note}")
        call.if_empty += [partial(_labelled, label, help_) for help_ in part.if_empty]


async def _labelled(label: str, help_: Callable[[], Awaitable[str]]) -> str:
    note = await help_()
    return f"{quoted(label)}: {note}" if note else ""


def _failure(error: SerenaCentralError) -> dict[str, str]:
    return {"error": str(error)}
