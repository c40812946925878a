"""A task as data: what is asked, what it came to, and its states.

    queued → running → done | failed | cancelled | over budget

A queued task may be cancelled; what is over stays as it is.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from serena_central.store.rows import TaskRow


class TaskState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    OVER_BUDGET = "over budget"

    @property
    def is_over(self) -> bool:
        return self not in (TaskState.QUEUED, TaskState.RUNNING)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens. `input` does not count those that were written to or read from a cache."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_write + self.cache_read

    def plus(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_write=self.cache_write + other.cache_write,
            cache_read=self.cache_read + other.cache_read,
        )


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What one task may take; None: no bound."""

    time_s: float
    tokens: int | None = None
    cost_usd: float | None = None


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task is written: the UUID of the session, in the transcripts of the project at `root`. `resumes` is the
    session whose conversation it goes on with, `attachments` what refers to it."""

    session: str
    root: str
    resumes: str = ""
    attachments: tuple[Mapping[str, Any], ...] = ()


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner is asked to do. `root` is the real root of the project it works in, `session` the id of the task's
    own session of this server. `tools` are names or rules of what it may call, None for all."""

    id: str
    instruction: str
    root: str
    session: str
    runner: str
    budget: Budget
    transcript: Transcript
    agent: str | None = None
    model: str | None = None
    system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    max_turns: int | None = None
    parent: str | None = None
    depth: int = 1
    called_by: str = ""
    isolation: Literal["none", "worktree"] = "none"
    """worktree: `root` is that of a git worktree of the project from the task's start on."""
    triggered: bool = False
    """Whether a trigger started it, or a task above it: its calls trigger nothing."""


CostSource = Literal["runner", "estimated", ""]


class Emission(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a running task wrote or did. `usage` and `cost_usd` are totals so far, where they are known;
    `estimated`: the cost is by the rates of models.
    `command` is a command line that has ended, by the runner's own means, with `exit_code` (None: not known)."""

    kind: Literal["text", "tool", "note", "usage"]
    text: str = ""
    command: str = ""
    exit_code: int | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    estimated: bool = False


Emit = Callable[[Emission], None]


Ending = Callable[[str], Awaitable[str | None]]
"""Asked by a runner with the final text before it ends: why the agent has to go on, None where it may end."""


async def ends(text: str) -> None:
    """An `Ending` that lets every agent end."""


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner reports. `text` is the agent's final text, `error` why there is none; `resume_id` is by what the
    runner can continue the conversation."""

    status: Literal["ok", "error", "budget"]
    text: str = ""
    error: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    cost_source: CostSource = ""
    resume_id: str | None = None
    exit_code: int | None = None


class Runner(Protocol):
    """Carries tasks out. A cancelled `run` leaves no process behind."""

    name: str

    def missing(self) -> str | None:
        """Why it can't be used on this machine and how to get it; None where it can."""
        ...

    async def run(self, spec: TaskSpec, emit: Emit, ending: Ending = ends) -> TaskResult:
        """Runs a task to its end. `emit` takes what it does on the way, and never waits. A runner that can't give its
        agent more to do asks no `ending`."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A runner that can be asked to compact a conversation."""

    def compact(self, task: str) -> bool:
        """Before its next request; whether it runs this task."""
        ...


@runtime_checkable
class Converses(Protocol):
    """A runner that holds the conversation itself: it writes the transcript, and can resume one."""

    transcripts: Any


class OutputLine(msgspec.Struct, frozen=True):
    """One line of a task's output. `number` counts from 1."""

    number: int
    at: float
    kind: str
    text: str


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task as /api, pages and the command line show it. Times are Unix seconds; `position` is its place in the queue,
    counted from 1. `verified` is what the server itself saw of what the task did."""

    id: str
    state: TaskState
    position: int | None
    instruction: str
    agent: str | None
    runner: str
    model: str | None
    project_root: str
    parent: str | None
    depth: int
    session: str
    called_by: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    text: str
    error: str
    usage: dict[str, int]
    cost_usd: float | None
    cost_source: str
    resume_id: str | None
    exit_code: int | None
    verified: dict[str, Any]


def view(row: TaskRow, position: int | None = None) -> TaskView:
    return TaskView(
        state=TaskState(row.state),
        position=position,
        created_at=row.at,
        **{
            name: getattr(row, name)
            for name in TaskView.__struct_fields__
            if name not in ("state", "position", "created_at")
        },
    )
