"""Runs tasks: places, queue, budgets, cancelling. It knows sessions by their ids."""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
import psutil
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from serena_central.agents.day_budgets import DayBudgets
from serena_central.agents.output import TaskOutput, sweep
from serena_central.agents.slots import Slots
from serena_central.agents.task_records import Task, TaskRecords
from serena_central.agents.task_transcripts import TaskTranscripts
from serena_central.agents.tasks import (
    Budget,
    Compacts,
    Converses,
    Emission,
    Runner,
    TaskResult,
    TaskSpec,
    TaskState,
    TaskView,
    Usage,
)
from serena_central.config.policies import AgentPolicy
from serena_central.core.errors import NoRunner, SerenaCentralError, TaskRefused
from serena_central.core.event_kinds import TaskWrote
from serena_central.core.events import EventBus
from serena_central.core.periodic import contained, repeat
from serena_central.core.running_time import running_time
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

MAX_QUEUED = 2000

MIN_FREE_BYTES = 256_000_000
"""Of memory: with less, no further task starts beside those that run."""

SWEEP_S = 3600.0
"""How often the output of old tasks is deleted: a server may run for months."""

BUDGET_CHECK_S = 30.0
"""How often the day's budgets are asked while tasks run; at once when a task reports what it has cost."""


class Grants(Protocol):
    """What the sessions of tasks may call."""

    def give(self, spec: TaskSpec) -> None:
        """Raises TaskRefused: the task that starts it is over."""
        ...

    def end(self, session: str) -> None: ...


class Isolation(Protocol):
    """Folders of their own for tasks."""

    async def enter(self, spec: TaskSpec) -> tuple[TaskSpec, Any]:
        """The task in its folder, and what `leave` gets.

        Raises:
            SerenaCentralError: it can't have one.
        """
        ...

    def place(self, entered: Any) -> dict[str, Any]:
        """Where it is, for whoever looks for what a task left there."""
        ...

    async def leave(self, entered: Any, *, stopping: bool) -> dict[str, Any]:
        """What became of it. `stopping`: it is left as it is."""
        ...

    async def reclaim(self, place: dict[str, Any]) -> dict[str, Any]:
        """As `leave`, of one that a server made which was killed since; `place` is what that one said of it.

        Raises:
            SerenaCentralError
        """
        ...


class Verifier(Protocol):
    """What the server itself sees of a task's work."""

    async def before(self, spec: TaskSpec) -> Any: ...
    def ran(self, session: str, command: str, exit_code: int | None) -> None: ...
    async def after(self, spec: TaskSpec, seen: Any) -> dict[str, Any]: ...


class Hooks(Protocol):
    """Hooks of the settings around tasks."""

    async def started(self, spec: TaskSpec) -> str: ...
    async def stopping(self, spec: TaskSpec, text: str, *, again: bool) -> str | None: ...


class Scheduler:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        *,
        policy: AgentPolicy,
        runners: Mapping[str, Runner],
        bus: EventBus,
        store: Store,
        folder: Path,
        grants: Grants,
        begin: Callable[[TaskSpec], object],
        end: Callable[[TaskSpec], object],
        isolation: Isolation,
        budgets: DayBudgets,
        transcripts: TaskTranscripts,
        verifier: Verifier | None = None,
        hooks: Hooks | None = None,
        front: str = "",
    ) -> None:
        """`runners` by name, the preferred first; `folder` is for their output. `begin` is called before a task runs
        and makes its session; it raises SerenaCentralError. `end` is called when nothing more is asked about it.
        `front` is this server's name, where several share the database."""
        self.policy = policy
        self.runners = runners
        self._bus = bus
        self._folder = folder
        self._grants = grants
        self._begin = begin
        self._close = end
        self._isolation = isolation
        self._verifier = verifier
        self._hooks = hooks
        self._budgets = budgets
        self.transcripts = transcripts
        self._has_spent = anyio.Event()
        self._slots = Slots(policy.concurrent, self._has_memory)
        self.records = TaskRecords(
            bus=bus,
            store=store,
            folder=folder,
            position=self._slots.position,
            reclaim=self._reclaim,
            front=front,
        )
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the tasks until it is cancelled, and ends them then."""
        await self._sweep_output()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._watch_budgets)
            tasks.start_soon(partial(repeat, "the deletion of tasks' output", self._sweep_output, every_s=SWEEP_S))
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None
                for task in self.records.live():
                    task.cancelled_because = task.cancelled_because or "The server stopped."
                tasks.cancel_scope.cancel()

    # --- asking ----------------------------------------------------------------------------------------------------

    def runner_for(self, name: str) -> str:
        """The runner that a task gets: the one that is named, else that of the settings, else the first that is
        installed.

        Raises:
            NoRunner, TaskRefused
        """
        wanted = name or ("" if self.policy.runner == "auto" else self.policy.runner)
        if wanted:
            found = self.runners.get(wanted)
            if found is None:
                raise TaskRefused(f"There is no runner {wanted!r}. Runners: {', '.join(self.runners)}.")
            missing = found.missing()
            if missing:
                raise NoRunner([missing])
            return wanted
        # Only on request: it makes results up as its script says.
        offered = {key: one.missing() for key, one in self.runners.items() if key != "scripted"}
        for key, missing in offered.items():
            if missing is None:
                return key
        raise NoRunner([missing for missing in offered.values() if missing])

    def converses(self, runner: str) -> bool:
        """Whether a runner holds conversations itself, and can resume them."""
        return isinstance(self.runners[runner], Converses)

    @property
    def is_working(self) -> bool:
        """Whether any task runs, or waits for its turn."""
        return bool(self._slots.used or self._slots.queued)

    async def submit(self, spec: TaskSpec) -> Task:
        """Accepts a task; it runs when there is a place for it.

        Raises:
            TaskRefused: too deep, over the day's budget, too many are queued, or the task that starts it is over.
        """
        warnings = await self._budgets.admit(spec.root, self.records.rows())
        # No await from here to the start: what is found here still holds then.
        if self._tasks is None:
            raise TaskRefused("The server is stopping.")
        parent = self.records.get(spec.parent)
        if spec.parent and (parent is None or parent.scope.cancel_called):
            raise TaskRefused(f"Its parent {spec.parent} does not run any more.")
        if spec.depth > self.policy.max_depth:
            raise TaskRefused(
                f"Tasks may start tasks {self.policy.max_depth} deep (agents.max_depth). Do the work in this one."
            )
        if self._slots.queued >= MAX_QUEUED:
            raise TaskRefused(
                f"{self._slots.queued} tasks are queued, which is the maximum. Call again when some have ended, or "
                "cancel some."
            )
        self._grants.give(spec)
        row = TaskRow(
            id=spec.id,
            at=time.time(),
            state=TaskState.QUEUED,
            instruction=spec.instruction,
            agent=spec.agent,
            runner=spec.runner,
            model=spec.model,
            project_root=spec.root,
            parent=spec.parent,
            depth=spec.depth,
            session=spec.session,
            called_by=spec.called_by,
            resume_id=spec.transcript.session if self.converses(spec.runner) else None,
        )
        task = Task(spec, row, TaskOutput(self._folder / f"{spec.id}.jsonl"))
        for warning in warnings:
            task.output.add("note", warning)
        self._tasks.start_soon(contained, f"the end of task {spec.id}", partial(self._carry_out, task))
        try:
            await self.records.add(task)
        except BaseException:
            self.abandon(spec.id)  # whoever asked for it never learns its id
            raise
        return task

    async def _reclaim(self, place: dict[str, Any]) -> dict[str, Any]:
        return await self._isolation.reclaim(place)

    async def _sweep_output(self) -> None:
        await anyio.to_thread.run_sync(sweep, self._folder)

    async def _watch_budgets(self) -> None:
        """Ends tasks whose project has no money left today."""
        while True:
            with anyio.move_on_after(BUDGET_CHECK_S):
                await self._has_spent.wait()
            self._has_spent = anyio.Event()
            for root in {row.project_root for row in self.records.rows()}:
                try:
                    verdict = await self._budgets.verdict(root, self.records.rows())
                except SerenaCentralError as error:
                    logger.warning("budgets of %s are not checked: %s", root, error)
                    continue
                except Exception:
                    logger.exception("budgets of %s are not checked", root)
                    continue
                for task in (one for one in self.records.live() if one.row.project_root == root):
                    if verdict.state == "stop" and task.over_budget is None:
                        task.over_budget = " ".join(verdict.reasons)
                        task.scope.cancel()

    @asynccontextmanager
    async def waiting(self, session: str) -> AsyncGenerator[None]:
        """Around the wait of a session for its child: if the session is a task's own, its place is free meanwhile."""
        parent = self.records.of_session(session)
        if parent is None or parent.state is not TaskState.RUNNING:
            yield
            return
        parent.waits_for += 1
        self._slots.leave(parent.spec.id)  # or the line, if an earlier wait has just ended
        try:
            yield
        finally:
            parent.waits_for -= 1
            if not parent.waits_for and self.records.of_session(session) is parent:
                await self._slots.take_again(parent.spec.id)

    async def cancel(self, task_id: str, by: str) -> TaskView:
        """Cancels a task and all that it started, and waits until their processes are gone.

        Raises:
            TaskNotFound, StoreError
        """
        task = self.records.get(task_id)
        if task is not None:
            for one in self._cancel(task, f"Cancelled by {by}."):
                await one.over.wait()
        return await self.records.find(task_id)

    async def compact(self, task_id: str) -> TaskView:
        """Has the conversation of a running task compacted before its next request.

        Raises:
            TaskNotFound, StoreError
            TaskRefused: it does not run, or its runner compacts by itself.
        """
        found = await self.records.find(task_id)
        task = self.records.get(task_id)
        if task is None or task.state is not TaskState.RUNNING:
            raise TaskRefused(f"Task {task_id} is {found.state}; only a running one is compacted.")
        runner = self.runners[task.spec.runner]
        if not isinstance(runner, Compacts) or not runner.compact(task_id):
            raise TaskRefused(f"The runner {runner.name} compacts conversations by itself, and can't be asked to.")
        return found

    def abandon(self, task_id: str) -> None:
        """Whoever waited for a task is gone: it is cancelled if it still runs."""
        task = self.records.get(task_id)
        if task is not None:
            self._cancel(task, "The call that waited for it ended.")

    def _cancel(self, task: Task, why: str) -> list[Task]:
        """Returns all that are cancelled."""
        below = [
            one for child in self.records.children(task) for one in self._cancel(child, "Its parent was cancelled.")
        ]
        task.cancelled_because = task.cancelled_because or why
        task.scope.cancel()
        return [*below, task]

    # --- running ---------------------------------------------------------------------------------------------------

    async def _carry_out(self, task: Task) -> None:
        result: TaskResult | None = None
        seen: Any = None
        try:
            with task.scope:
                await self._slots.take(task.spec.id)
                found: dict[str, Any] = {"state": TaskState.RUNNING, "started_at": time.time()}
                if task.spec.isolation != "none":
                    task.spec, task.isolated = await self._isolation.enter(task.spec)
                    found["verified"] = {"worktree": self._isolation.place(task.isolated)}  # after a kill as well
                self._begin(task.spec)
                self.records.move(task, **found)
                if self._verifier is not None:
                    seen = await self._verifier.before(task.spec)
                with running_time.move_on_after(task.spec.budget.time_s) as time_left:
                    result = await self._run(task)
                if time_left.cancelled_caught:
                    task.over_budget = f"Its {task.spec.budget.time_s:g} s are over."
        except SerenaCentralError as error:
            result = TaskResult(status="error", error=str(error))
        except Exception as error:
            logger.exception("task %s failed", task.spec.id)
            result = TaskResult(status="error", error=f"Internal error: {type(error).__name__}. See the server's log.")
        finally:
            for child in self.records.children(task):
                self._cancel(child, "Its parent ended.")
            with anyio.CancelScope(shield=True):
                await self._end(task, result, seen)

    async def _run(self, task: Task) -> TaskResult:
        """A task between its hooks."""
        spec, runner, hooks = task.spec, self.runners[task.spec.runner], self._hooks
        if hooks is not None and (context := await hooks.started(spec)):
            spec = replace(spec, instruction=f"{spec.instruction}\n\n{context}")
        if not self.converses(spec.runner):
            self.transcripts.prompt(spec, spec.instruction, model=spec.model, first=True)
        if hooks is None:
            return await runner.run(spec, lambda one: self._take(task, one))
        asked = 0

        async def ending(text: str) -> str | None:
            nonlocal asked
            asked += 1
            reason = await hooks.stopping(spec, text, again=asked > 1)
            if reason is not None:
                task.output.add("note", f"A hook for SubagentStop blocked the end: {reason}")
            return reason if asked == 1 else None

        result = await runner.run(spec, lambda one: self._take(task, one), ending)
        if not asked and await ending(result.text) is not None:
            task.output.add("note", f"It has ended anyway: the runner {runner.name} can't be given more to do.")
        return result

    async def _end(self, task: Task, result: TaskResult | None, seen: Any) -> None:
        """Bounded by the verifier's own bounds."""
        self._grants.end(task.spec.session)
        self.records.end_session(task)
        self._slots.leave(task.spec.id)
        verified = await self._verified(task, seen)
        self._close(task.spec)
        if result is not None:
            # Some runners know only at their end what they took.
            task.over_budget = task.over_budget or _exceeded(task.spec.budget, result.usage, result.cost_usd)
        state, error = _outcome(task, result)
        changes: dict[str, Any] = {"state": state, "error": error, "ended_at": time.time(), "verified": verified}
        if result is not None:
            resume_id = result.resume_id or task.row.resume_id
            changes |= {"text": result.text, "resume_id": resume_id, "exit_code": result.exit_code}
            changes |= self._spent(task, result.usage, result.cost_usd)
            if result.cost_usd is not None:
                changes["cost_source"] = result.cost_source
        await self.transcripts.flush()
        self.records.end(task, **changes)

    async def _verified(self, task: Task, seen: Any) -> dict[str, Any]:
        """What the server saw of a task, and what became of its worktree."""
        verified: dict[str, Any] = {}
        if self._tasks is None:
            verified = {"notes": ["What it did is not determined: the server stopped."]}
        elif self._verifier is not None and task.row.started_at is not None:
            try:
                verified = await self._verifier.after(task.spec, seen)
            except Exception:
                logger.exception("what task %s did is not determined", task.spec.id)
                verified = {"notes": ["What it did is not determined: see the server's log."]}
        if task.isolated is None:
            return verified
        try:
            left = await self._isolation.leave(task.isolated, stopping=self._tasks is None)
        except SerenaCentralError as error:
            left = {**self._isolation.place(task.isolated), "note": str(error)}
        except Exception as error:
            logger.exception("what became of the worktree of task %s is not determined", task.spec.id)
            left = {
                **self._isolation.place(task.isolated),
                "note": f"Internal error: {type(error).__name__}. See the server's log.",
            }
        return {**verified, "worktree": left}

    def _take(self, task: Task, one: Emission) -> None:
        if one.command and self._verifier is not None:
            self._verifier.ran(task.spec.session, one.command, one.exit_code)
        if one.kind == "text" and not self.converses(task.spec.runner):
            self.transcripts.answer(task.spec, one.text)
        if one.text:
            task.output.add(one.kind, one.text)
            self._bus.publish(TaskWrote(task=task.spec.id, session=task.spec.session, keep=False))
        if one.usage is None and one.cost_usd is None:
            return
        spent = self._spent(task, one.usage, one.cost_usd)
        if one.estimated and one.cost_usd is not None:
            spent["cost_source"] = "estimated"
        task.row = replace(task.row, **spent)
        if one.cost_usd is not None:
            self._has_spent.set()
        task.over_budget = task.over_budget or _exceeded(task.spec.budget, one.usage, one.cost_usd)
        if task.over_budget:
            task.scope.cancel()

    def _spent(self, task: Task, usage: Usage | None, cost_usd: float | None) -> dict[str, Any]:
        spent: dict[str, Any] = {}
        if usage is not None:
            spent["usage"] = msgspec.structs.asdict(usage)
        if cost_usd is not None:
            spent |= {"cost_usd": cost_usd, "cost_source": task.row.cost_source or "runner"}
        return spent

    def _has_memory(self) -> bool:
        return psutil.virtual_memory().available >= MIN_FREE_BYTES


def _exceeded(budget: Budget, usage: Usage | None, cost_usd: float | None) -> str | None:
    """What of a budget was exceeded."""
    used = usage.total if usage else 0
    if budget.tokens is not None and used > budget.tokens:
        return f"It used {used} tokens of {budget.tokens}."
    if budget.cost_usd is not None and cost_usd is not None and cost_usd > budget.cost_usd:
        return f"It cost ${cost_usd:.2f} of ${budget.cost_usd:g}."
    return None


def _outcome(task: Task, result: TaskResult | None) -> tuple[TaskState, str]:
    if task.over_budget is not None:
        return TaskState.OVER_BUDGET, task.over_budget
    if result is None:
        return TaskState.CANCELLED, task.cancelled_because or "It was cancelled."
    if result.status == "ok":
        return TaskState.DONE, ""
    if result.status == "budget":
        return TaskState.OVER_BUDGET, result.error
    return TaskState.FAILED, result.error
