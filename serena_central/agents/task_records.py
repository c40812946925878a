"""What is known of tasks: those of this run of the server, and the rows of those before.

What an earlier run left running has ended with it, since its children can't outlive it, and is shown as failed.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from msgspec.structs import replace

from serena_central.agents.output import TaskOutput, newest_output, read_output
from serena_central.agents.tasks import OutputLine, TaskSpec, TaskState, TaskView, view
from serena_central.core.errors import TaskNotFound
from serena_central.core.event_kinds import TaskMoved
from serena_central.core.events import EventBus, Severity
from serena_central.store.query_results import TaskFilter
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store

OVER_KEPT = 200
"""Tasks that are over and still in memory."""

ACCEPTED_S = 2.0
"""How long one waits for the store to have an accepted task."""

INTERRUPTED = "The server ended while it was {}. What it changed until then is in the history of edits."


class Task:
    """A task of this run of the server. All changes of its state go through `TaskRecords.move`."""

    def __init__(self, spec: TaskSpec, row: TaskRow, output: TaskOutput) -> None:
        self.spec = spec
        self.row = row
        self.output = output
        self.over = anyio.Event()
        self.scope = anyio.CancelScope()
        self.cancelled_because: str | None = None
        self.over_budget: str | None = None
        self.has_slot = False
        self.isolated: Any = None
        """What `Isolation.enter` gave."""
        self.waits_for = 0
        """Calls of its session that wait for children."""

    @property
    def state(self) -> TaskState:
        return TaskState(self.row.state)


class TaskRecords:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        *,
        bus: EventBus,
        store: Store,
        folder: Path,
        position: Callable[[str], int | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`folder` is for the tasks' output; `position` is a task's place in the queue."""
        self._bus = bus
        self._store = store
        self._folder = folder
        self._position = position
        self._clock = clock
        self._live: dict[str, Task] = {}
        self._over: OrderedDict[str, Task] = OrderedDict()
        self._by_session: dict[str, Task] = {}

    # --- asking ------------------------------------------------------------------------------------------------------

    def live(self) -> list[Task]:
        """Those that are queued or run, the oldest first."""
        return list(self._live.values())

    def rows(self) -> list[TaskRow]:
        """Of those that are queued or run."""
        return [task.row for task in self._live.values()]

    def get(self, task_id: str | None) -> Task | None:
        """A task, if it is queued or runs."""
        return self._live.get(task_id) if task_id else None

    def of_session(self, session: str) -> Task | None:
        """The running task that a session belongs to."""
        return self._by_session.get(session)

    def children(self, task: Task) -> list[Task]:
        """Those that it started and that are not over."""
        return [one for one in self._live.values() if one.spec.parent == task.spec.id]

    async def find(self, task_id: str) -> TaskView:
        """Raises TaskNotFound, StoreError."""
        task = self._live.get(task_id) or self._over.get(task_id)
        if task is not None:
            return self._view(task)
        row = await self._store.ask(lambda queries: queries.task(task_id))
        if row is None:
            raise TaskNotFound(task_id)
        return view(self._true(row))

    async def listed(self, wanted: TaskFilter) -> list[TaskView]:
        """Raises StoreError."""
        await self._store.writer.flush()
        rows = await self._store.ask(lambda queries: queries.tasks(wanted))
        return [self._view(task) if (task := self._live.get(row.id)) else view(self._true(row)) for row in rows]

    async def wait(self, task_id: str, seconds: float | None = None) -> TaskView:
        """Waits until a task is over, or that long.

        Raises:
            TaskNotFound, StoreError
        """
        task = self._live.get(task_id)
        if task is not None:
            with anyio.move_on_after(seconds):
                await task.over.wait()
        return await self.find(task_id)

    async def output(self, task_id: str, after: int, limit: int) -> list[OutputLine]:
        """Lines of a task's output behind a number.

        Raises:
            TaskNotFound, StoreError
        """
        task = self._live.get(task_id)
        if task is not None and task.output.lines and task.output.lines[0].number <= after + 1:
            return [line for line in task.output.lines if line.number > after][:limit]
        await self.find(task_id)
        return await anyio.to_thread.run_sync(read_output, self._folder / f"{task_id}.jsonl", after, limit)

    async def newest_output(self, task_id: str, limit: int) -> list[OutputLine]:
        """The last lines of a task's output.

        Raises:
            TaskNotFound, StoreError
        """
        task = self._live.get(task_id)
        if task is not None:
            return list(task.output.lines)[-limit:]
        await self.find(task_id)
        return await anyio.to_thread.run_sync(newest_output, self._folder / f"{task_id}.jsonl", limit)

    # --- changing ----------------------------------------------------------------------------------------------------

    async def add(self, task: Task) -> None:
        """Records a new task: a kill of the server after this leaves it on record."""
        self._live[task.spec.id] = self._by_session[task.spec.session] = task
        self._publish(task)
        with anyio.move_on_after(ACCEPTED_S):
            await self._store.writer.flush()

    def end_session(self, task: Task) -> None:
        """Its session is no task's from now on."""
        self._by_session.pop(task.spec.session, None)

    def end(self, task: Task, **changes: Any) -> None:
        """Its last change; it stays in memory for a while."""
        self._live.pop(task.spec.id, None)
        self._over[task.spec.id] = task
        if len(self._over) > OVER_KEPT:
            self._over.popitem(last=False)
        self.move(task, **changes)
        task.output.lines.clear()
        task.over.set()

    def move(self, task: Task, **changes: Any) -> None:
        """The one place where a task's state changes."""
        assert not task.state.is_over, task.row
        task.row = replace(task.row, **changes)
        self._publish(task)

    def _publish(self, task: Task) -> None:
        row = task.row
        self._store.writer.put(row)
        failed = task.state in (TaskState.FAILED, TaskState.OVER_BUDGET)
        self._bus.publish(
            TaskMoved(
                task=row.id,
                state=row.state,
                agent=row.agent,
                runner=row.runner,
                parent=row.parent,
                session=row.session,
                project=Path(row.project_root).name,
                message=row.error,
                severity=Severity.WARNING if failed else Severity.INFO,
            )
        )

    def _view(self, task: Task) -> TaskView:
        return view(task.row, self._position(task.spec.id))

    def _true(self, row: TaskRow) -> TaskRow:
        """A row that an earlier run of the server left open is closed."""
        if TaskState(row.state).is_over or row.id in self._live:
            return row
        closed = replace(row, state=TaskState.FAILED, error=INTERRUPTED.format(row.state), ended_at=self._clock())
        self._store.writer.put(closed)
        return closed
