"""What plans need of the rest of the server, which they do not know: tasks, projects, edits and memories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from serena_central.agents.plans.order import Reach
from serena_central.agents.plans.plan import PlannedTask
from serena_central.agents.plans.run_state import TaskRun
from serena_central.agents.tasks import TaskView


class Ended(NamedTuple):
    """How a command ended; None for the exit code: in time it did not."""

    exit_code: int | None
    output: str


class Undoing(NamedTuple):
    """Ids of edits that were undone, why others were not, and which of them are of each task."""

    undone: list[str]
    refused: dict[str, str]
    of_task: dict[str, list[str]]


class Standing(NamedTuple):
    """What became of tasks' edits, by task: ids of those in force, and of those that somebody else has undone."""

    in_force: dict[str, list[str]]
    undone: dict[str, list[str]]


class Ground(Protocol):
    async def reaches(self, root: Path, targets: Sequence[Sequence[str]]) -> tuple[list[Reach], list[str]]:
        """What each task's targets are, and what depends on them; and notes on what is not known."""
        ...

    async def check(self, task: PlannedTask, root: Path) -> None:
        """Raises SerenaCentralError: it can't be run: there is no such agent or runner."""
        ...

    async def submit(self, plan: str, task: PlannedTask, instruction: str, root: Path) -> tuple[str, str]:
        """Starts a task; its id and its session.

        Raises:
            SerenaCentralError
        """
        ...

    async def wait(self, task: str) -> TaskView:
        """A task when it is over.

        Raises:
            TaskNotFound
        """
        ...

    async def cancel(self, task: str, by: str) -> None: ...

    def hold(self, root: Path, task: str, session: str, places: Sequence[str]) -> None:
        """Others who edit these places are warned from now on."""
        ...

    def release(self, task: str) -> None: ...

    async def begin(self, plan: str, root: Path, file: Path, *, anew: bool) -> None:
        """Notes the errors of a project before a wave in `file`, or, unless `anew`, reads them from there."""
        ...

    async def verify(self, plan: str, root: Path, tasks: Sequence[TaskRun]) -> dict[str, Any]:
        """What the server saw of a wave's tasks, with those that they started: `files`, `changed_otherwise`, `tests`,
        `cost_usd`, errors as in a task's result, `undetermined`: why errors are not known, and `edits_of_others`: ids
        of edits that others made meanwhile."""
        ...

    async def unused(self, root: Path, files: Sequence[str]) -> tuple[list[str], str]:
        """Symbols in files that nothing uses, and why others are not known."""
        ...

    async def command(self, root: Path, line: str, timeout_s: float) -> Ended:
        """Runs a command line.

        Raises:
            SerenaCentralError
        """
        ...

    async def standing(self, tasks: Sequence[TaskRun]) -> Standing:
        """What became of their edits, with those of tasks that they started."""
        ...

    async def undo(self, tasks: Sequence[TaskRun], by: str) -> Undoing:
        """Undoes what tasks edited, with those that they started, the newest first."""
        ...

    async def share(self, plan: str, root: Path, where: str, name: str, number: int, text: str) -> None:
        """Writes what a wave came to where later agents read it.

        Raises:
            SerenaCentralError
        """
        ...

    def end(self, plan: str) -> None:
        """Nothing that was noted for a plan is needed any more."""
        ...
