"""Git worktrees in which tasks work; each is a project of its own while the task runs."""

from pathlib import Path
from typing import Any

import anyio.to_thread
from msgspec.structs import replace

from serena_central.agents.task_records import UNDETERMINED
from serena_central.agents.tasks import TaskSpec
from serena_central.agents.worktrees import Worktree, end_worktree, left_worktree, make_worktree
from serena_central.projects.registry import ProjectRegistry


class TaskWorktrees:
    """See `scheduler.Isolation`."""

    def __init__(self, projects: ProjectRegistry, folder: Path) -> None:
        """`folder` is where they are made."""
        self._projects = projects
        self._folder = folder

    async def enter(self, spec: TaskSpec) -> tuple[TaskSpec, Worktree]:
        tree = await anyio.to_thread.run_sync(make_worktree, Path(spec.root), self._folder, spec.id)
        return replace(spec, root=str(tree.root)), tree

    def place(self, entered: Worktree) -> dict[str, Any]:
        return {"path": str(entered.top), "branch": entered.branch, "base": entered.base, "kept": True}

    async def leave(self, entered: Worktree, *, stopping: bool) -> dict[str, Any]:
        """`diff` is against `base`, with what was committed; without changes the worktree is removed. A server that
        stops has no time for that: who reads the task's record next does it."""
        found = self.place(entered)
        if stopping:
            return {**found, UNDETERMINED: True}
        self._projects.forget(entered.root)
        return found | await anyio.to_thread.run_sync(_ended, entered)

    async def reclaim(self, place: dict[str, Any]) -> dict[str, Any]:
        def end() -> dict[str, Any]:
            return _ended(left_worktree(Path(place["path"]), place["branch"], place["base"]))

        return place | await anyio.to_thread.run_sync(end)


def _ended(tree: Worktree) -> dict[str, Any]:
    """What was changed there.

    Raises:
        TaskRefused
    """
    changes = end_worktree(tree)
    found: dict[str, Any] = {"kept": changes.kept, "files": changes.files, "diff": changes.diff}
    return {**found, "note": "The diff is cut; the worktree has all."} if changes.cut else found
