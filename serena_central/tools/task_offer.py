"""The scheduler of tasks, made when the first one is asked for; and how what is asked becomes a task.

Until then nothing of `agents/` but data is imported.
"""

import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.errors import InvalidArguments, TaskRefused
from serena_central.core.quoting import quoted
from serena_central.sessions.session import new_session_id
from serena_central.tools.symbol_leases import SymbolLeases

if TYPE_CHECKING:
    from serena_central.agents.definitions import Definition
    from serena_central.agents.plans.plan_runs import PlanRuns
    from serena_central.agents.scheduler import Scheduler, Task
    from serena_central.projects.root_settings import ClaudeSettings
    from serena_central.projects.trust.trust_decisions import Trust
    from serena_central.tools.task_verification import TaskVerifier

MAX_INSTRUCTION = 200_000
"""Characters."""


TASK = "t-"


def new_task_id() -> str:
    """A task id; short enough to be typed, unique among the tasks that are kept."""
    return TASK + secrets.token_hex(6)


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for; empty or None: as the agent's definition or the settings have it."""

    instruction: str
    agent: str = ""
    runner: str = ""
    model: str = ""
    isolation: str = ""
    timeout_s: float | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    resume: str = ""
    """A session of this server's transcripts, or a task, whose conversation it goes on with."""
    new: bool = False
    """In a session of its own, which refers to that one."""
    no_cleanup: bool = False
    """Its transcript is kept whatever its age."""


class TaskOffer:
    """Belongs to the event loop's thread."""

    def __init__(self, claude: "ClaudeSettings", trust: "Trust") -> None:
        self._claude = claude
        self._trust = trust
        self.build: Callable[[], Scheduler] | None = None
        """Makes the scheduler; set by the composition root."""
        self.beside: Sequence[Callable[..., Coroutine[Any, Any, None]]] = ()
        """What runs with the scheduler; set when that is made."""
        self.verifier: TaskVerifier | None = None
        """Set with the scheduler."""
        self.build_plans: Callable[[Scheduler], PlanRuns] | None = None
        self.leases = SymbolLeases()
        self._wanted = anyio.Event()
        self._runs = anyio.Event()
        self.closing = anyio.Event()
        """Set when the server stops: whoever waits for a task gets its state."""
        self._scheduler: Scheduler | None = None
        self._plans: PlanRuns | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs the scheduler from the moment that it is needed, until it is cancelled."""
        task_status.started()
        await self._wanted.wait()
        assert self.build is not None
        self._scheduler = await anyio.to_thread.run_sync(self.build)
        async with anyio.create_task_group() as tasks:
            for run in self.beside:
                await tasks.start(run)
            await tasks.start(self._scheduler.run)
            assert self.build_plans is not None
            self._plans = self.build_plans(self._scheduler)
            await tasks.start(self._plans.run)
            self._runs.set()

    def learning(self, session: str) -> AbstractContextManager[None]:
        """Around a call that edits: a task's edits are compared with the state before them."""
        if self.verifier is None or not self.verifier.learns(session):
            return nullcontext()
        return self.verifier.learning(session)

    def ran(self, session: str, command: str, exit_code: int | None) -> None:
        """A command of a session has ended."""
        if self.verifier is not None:
            self.verifier.ran(session, command, exit_code)

    @property
    def running(self) -> "Scheduler | None":
        """The scheduler, if anybody has needed it yet."""
        return self._scheduler if self._runs.is_set() else None

    async def scheduler(self) -> "Scheduler":
        """The scheduler, which is made if there is none yet."""
        self._wanted.set()
        await self._runs.wait()
        assert self._scheduler is not None
        return self._scheduler

    async def plans(self) -> "PlanRuns":
        """Runs plans; made with the scheduler."""
        await self.scheduler()
        assert self._plans is not None
        return self._plans

    async def check(self, asked: TaskRequest, root: Path) -> None:
        """Whether a task could be accepted in the project at a real root.

        Raises:
            InvalidArguments, TaskRefused, NoRunner
        """
        await self._chosen(asked, root)

    async def _chosen(self, asked: TaskRequest, root: Path) -> tuple[str, "Definition | None"]:
        """The runner and the agent that a task gets.

        Raises:
            InvalidArguments, TaskRefused, NoRunner
        """
        _check(asked)
        scheduler = await self.scheduler()
        definition = await self._definition(asked.agent, root) if asked.agent else None
        return scheduler.runner_for(asked.runner or (definition.runner if definition else None) or ""), definition

    async def _definition(self, agent: str, root: Path) -> "Definition":
        """Raises TaskRefused."""
        from serena_central.agents.definitions import definitions_of

        trusted = self._trust.is_trusted(root)
        found = await anyio.to_thread.run_sync(lambda: definitions_of(root, self._claude.locations, trusted=trusted))
        definition = found.by_name.get(agent)
        if definition is not None:
            return definition
        if any(one.name == agent for one in found.held_back):
            raise TaskRefused(
                f"The agent {quoted(agent)} comes with a repository that is not trusted. The user can review it and "
                "run `serena-central trust`."
            )
        raise TaskRefused(f"There is no agent {quoted(agent)}. Agents: {', '.join(found.by_name) or 'none'}.")

    async def submit(self, asked: TaskRequest, root: Path, called_by: str, *, triggered: bool = False) -> "Task":
        """Accepts a task in the project at a real root. `called_by` is the session that asks. `triggered`: a trigger
        does.

        Raises:
            InvalidArguments, TaskRefused, NoRunner
        """
        from serena_central.agents.tasks import Budget, TaskSpec

        scheduler = await self.scheduler()
        runner, definition = await self._chosen(asked, root)
        resumes = await self._resumed(scheduler, asked.resume, runner) if asked.resume else ""
        transcript = await scheduler.transcripts.place(str(root), resumes, new=asked.new)
        if asked.no_cleanup:
            await scheduler.transcripts.keep(transcript.session)
        parent = scheduler.records.of_session(called_by)
        policy = scheduler.policy
        return await scheduler.submit(
            TaskSpec(
                id=new_task_id(),
                instruction=asked.instruction,
                root=str(root),
                session=new_session_id(scheduler.records.front),
                runner=runner,
                transcript=transcript,
                budget=Budget(
                    time_s=asked.timeout_s or policy.timeout_s,
                    tokens=asked.max_tokens or policy.max_tokens,
                    cost_usd=asked.max_usd or policy.max_usd,
                ),
                agent=definition.name if definition else None,
                model=asked.model or (definition.model if definition else None),
                system_prompt=definition.prompt if definition else "",
                tools=definition.tools if definition else None,
                disallowed_tools=definition.disallowed_tools if definition else (),
                max_turns=definition.max_turns if definition else None,
                parent=parent.spec.id if parent else None,
                depth=parent.spec.depth + 1 if parent else 1,
                called_by=called_by,
                triggered=triggered or (parent is not None and parent.spec.triggered),
                isolation="worktree"
                if "worktree" in (asked.isolation or (definition.isolation if definition else ""),)
                else "none",
            )
        )

    async def _resumed(self, scheduler: "Scheduler", resume: str, runner: str) -> str:
        """The session that is meant by its id or by that of a task in it."""
        if not scheduler.converses(runner):
            raise TaskRefused(
                f"The runner {runner} can't resume a conversation; messages can. What resumes one of a coding agent's "
                "own is shown by `serena-central transcripts resume SESSION`."
            )
        if not resume.startswith(TASK):
            return resume
        found = await scheduler.records.find(resume)
        if not found.state.is_over:
            raise TaskRefused(f"Task {resume} is {found.state}: its conversation goes on.")
        if found.resume_id is None or not scheduler.converses(found.runner):
            raise TaskRefused(f"The runner {found.runner} of task {resume} keeps its conversations itself.")
        return found.resume_id


def _check(asked: TaskRequest) -> None:
    if not asked.instruction.strip():
        raise InvalidArguments("A task needs an instruction.")
    if len(asked.instruction) > MAX_INSTRUCTION:
        raise InvalidArguments(f"An instruction has at most {MAX_INSTRUCTION} characters.")
    if asked.isolation not in ("", "none", "worktree"):
        raise InvalidArguments("isolation is none or worktree.")
    if asked.new and not asked.resume:
        raise InvalidArguments("new is for resume: without it every task has a session of its own.")
    for name in ("timeout_s", "max_tokens", "max_usd"):
        value = getattr(asked, name)
        if value is not None and not 0 < value < float("inf"):
            raise InvalidArguments(f"{name} must be a number above 0.")
