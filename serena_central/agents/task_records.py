"""What is known of tasks: those of this run of the server, and the rows of those before.

What an earlier run left running has ended with it, since its children can't outlive it, and is recorded as failed. What
another server with the same database runs is shown as that one records it.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from msgspec.structs import replace

from serena_central.agents.output import TaskOutput, newest_output, read_output
from serena_central.agents.tasks import OutputLine, TaskSpec, TaskState, TaskView, view
from serena_central.core.errors import SerenaCentralError, StoreError, TaskNotFound
from serena_central.core.event_kinds import TaskMoved
from serena_central.core.events import EventBus, Severity
from serena_central.store.query_results import TaskFilter
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store

if TYPE_CHECKING:
    from serena_central.store.queries import Queries

OVER_KEPT = 200
"""Tasks that are over and still in memory."""

ACCEPTED_S = 2.0
"""How long one waits for the store to have an accepted task."""

OPEN = [state.value for state in TaskState if not state.is_over]
"""States of tasks that are not over."""

OVER = [state.value for state in TaskState if state.is_over]

UNDETERMINED = "undetermined"
"""In the record of a task's worktree: what became of it is not known yet, since the server stopped."""

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
        reclaim: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]],
        front: str = "",
    ) -> None:
        """`folder` is for the tasks' output; `position` is a task's place in the queue; `reclaim` says what became
        of the worktree of one whose server ended, and removes one without changes; `front` this server's name
        where several share the database: the sessions of its tasks begin with it."""
        self._bus = bus
        self._store = store
        self._folder = folder
        self._position = position
        self._reclaim = reclaim
        self._closing = anyio.Lock()
        """Held by whoever closes tasks that were left open: a worktree is reclaimed once."""
        self.front = front
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
        if (task := self._known(task_id)) is not None:
            return self._view(task)
        rows = await self._rows(lambda queries: [row] if (row := queries.task(task_id)) else [])
        if not rows:
            raise TaskNotFound(task_id)
        return self._shown(rows[0])

    async def listed(self, wanted: TaskFilter) -> list[TaskView]:
        """Raises StoreError."""
        await self._store.writer.flush()
        return [self._shown(row) for row in await self._rows(lambda queries: queries.tasks(wanted))]

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

    def _known(self, task_id: str) -> Task | None:
        return self._live.get(task_id) or self._over.get(task_id)

    def _shown(self, row: TaskRow) -> TaskView:
        """A task whose row was read: what is in memory is newer, also where the task has ended meanwhile."""
        task = self._known(row.id)
        return view(row) if task is None else self._view(task)

    async def _rows(self, query: "Callable[[Queries], list[TaskRow]]") -> list[TaskRow]:
        """What a query finds when those that an earlier run of this server left open are closed.

        Raises:
            StoreError
        """
        rows = await self._store.ask(query)
        if any(map(self._is_left, rows)):
            async with self._closing:
                rows = await self._store.ask(query)  # another one has closed them meanwhile
                left = [(row, await self._closed(row)) for row in rows if self._is_left(row)]
                with suppress(StoreError):  # the next who reads them tries again
                    for states in (OPEN, OVER):
                        changes = {row.id: changed for row, changed in left if row.state in states}
                        await self._store.ask(partial(_change, changes=changes, states=states))
            rows = await self._store.ask(query)
        return rows

    async def _closed(self, row: TaskRow) -> dict[str, Any]:
        """What changes of a task that was left open, or whose worktree was."""
        ended: dict[str, Any] = {}
        if not TaskState(row.state).is_over:
            ended = {
                "state": TaskState.FAILED.value,
                "ended_at": time.time(),
                "error": INTERRUPTED.format(row.state),
            }
        place = {name: value for name, value in row.verified.get("worktree", {}).items() if name != UNDETERMINED}
        if place:
            try:
                place = await self._reclaim(place)
            except SerenaCentralError as error:
                place = {**place, "note": str(error)}
            ended["verified"] = {**row.verified, "worktree": place}
        return ended

    def _is_left(self, row: TaskRow) -> bool:
        """Whether nobody runs an open task any more, or its server stopped without a look at its worktree. Those of
        other servers are theirs to close; those without a server's name are of one that had none, and so shared the
        database with nobody."""
        front, named, _ = row.session.partition(".")
        own = not self._store.shared or not named or front == self.front
        is_left = not TaskState(row.state).is_over or UNDETERMINED in row.verified.get("worktree", {})
        return is_left and own and self._known(row.id) is None


def _change(queries: "Queries", changes: dict[str, dict[str, Any]], states: list[str]) -> None:
    queries.change_tasks(changes, states)
