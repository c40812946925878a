"""Errors of tasks: runs of sub-agents."""

from collections.abc import Iterable

from serena_central.core.errors.base import SerenaCentralError
from serena_central.core.quoting import quoted


class TaskError(SerenaCentralError):
    """A task can't be started, or is not there."""


class TaskRefused(TaskError):
    """A task is not accepted: its depth, its budget, or a name in it that is not known."""


class NoRunner(TaskError):
    """Nothing on this machine can carry a task out; how to get what can."""

    def __init__(self, reasons: Iterable[str]) -> None:
        super().__init__("No runner can carry this task out. " + " ".join(reasons))


class TaskNotFound(TaskError):
    def __init__(self, task: str) -> None:
        super().__init__(f"There is no task {quoted(task)}. `serena-central task list` lists them.")


class PlanRefused(TaskError):
    """A plan is not run, resumed or undone: what it brings is not allowed, or its state does not permit it."""


class PlanNotKept(PlanRefused):
    """The state of a plan can't be written. `done` says what was done anyway."""

    def __init__(self, folder: str, error: OSError, done: str = "") -> None:
        super().__init__(
            f"The plan's state can't be written to {folder}: {error.strerror or error}.{done and ' '}{done}"
        )
        self.folder, self.error = folder, error

    def after(self, done: str) -> "PlanNotKept":
        """The same where something was done before."""
        return PlanNotKept(self.folder, self.error, done)


class InvalidPlan(TaskError):
    """A plan has errors, each with its place."""

    several_lines = True

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(problems))


class PlanNotFound(TaskError):
    def __init__(self, plan: str) -> None:
        super().__init__(f"There is no plan {quoted(plan)}. `serena-central waves list` lists them.")
