"""Runs a call that edits several projects as one operation: all of them, or none."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serena_central.core.errors import JointEditRefused, SerenaCentralError
from serena_central.core.groups import told_by
from serena_central.projects.editing.joint_edits import PartFailed, jointly
from serena_central.projects.project import Project

Work = Callable[[str, Project], Awaitable[Any]]
"""One project's part of the call: takes its label and the project."""


async def edit_all(
    projects: Sequence[tuple[str, Project]], unopened: Mapping[str, SerenaCentralError], work: Work
) -> dict[str, Any]:
    """Results by label. An error among them came after that project was edited, like the others.

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
        done = await jointly(works)
    except PartFailed as failed:
        raise JointEditRefused(labels[failed.root], failed.error, [*labels.values()]) from failed.error
    except BaseExceptionGroup as group:
        raise told_by(group) from group
    return {label: done[project.root] for label, project in projects}
