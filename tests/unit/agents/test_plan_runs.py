"""What is done with one plan at the same time, and its state on disk."""

import threading
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import replace

from serena_central.agents.plans import plan_runs
from serena_central.agents.plans.ground import Ground, Standing, Undoing
from serena_central.agents.plans.order import Reach
from serena_central.agents.plans.plan import PlannedTask, parse_plan
from serena_central.agents.plans.plan_run import PlanRun
from serena_central.agents.plans.plan_runs import PlanRuns
from serena_central.agents.plans.results import Stored, load, store
from serena_central.agents.plans.run_state import PlanState, PlanView, TaskRun
from serena_central.agents.tasks import TaskState, TaskView, view
from serena_central.core.errors import PlanRefused
from serena_central.core.events import EventBus
from serena_central.store.query_results import TaskFilter
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store
from serena_central.store.writer import Writer
from tests.support.child import PATIENCE_S
from tests.support.postgresql import url_for
from tests.support.tasks import past_plan

pytestmark = pytest.mark.anyio

ONE = "name: x\nwaves:\n- tasks:\n  - instruction: go\n"
MORE: list[dict[str, object]] = [{"tasks": [{"instruction": "more"}]}]


class Tasks(Ground):
    """Tasks that end as soon as `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()
        self.state = TaskState.DONE
        self.submitted = 0
        self.submits = anyio.Event()
        self.submits.set()
        self.ends: dict[str, anyio.Event] = {}
        """Of tasks that end before all."""
        self.cancelled: list[str] = []
        self.waited_for: list[str] = []

    async def reaches(self, root: Path, targets: Sequence[Sequence[str]]) -> tuple[list[Reach], list[str]]:
        return [Reach(frozenset()) for _ in targets], []

    async def submit(self, plan: str, task: PlannedTask, instruction: str, root: Path) -> tuple[str, str]:
        self.submitted += 1
        number = self.submitted
        await self.submits.wait()
        return f"t-{number}", f"s-{number}"

    async def wait(self, task: str) -> TaskView:
        self.waited_for.append(task)
        if task not in self.cancelled:
            await self.ends.get(task, self.go_on).wait()
        return view(
            TaskRow(id=task, at=0, state=self.state, instruction="x", runner="x", project_root="/r", session="s")
        )

    async def cancel(self, task: str, by: str) -> None:
        self.cancelled.append(task)

    async def standing(self, tasks: Sequence[TaskRun]) -> Standing:
        return Standing({}, {})

    async def verify(self, plan: str, root: Path, tasks: Sequence[TaskRun]) -> dict[str, Any]:
        return {}

    async def undo(self, tasks: Sequence[TaskRun], by: str) -> Undoing:
        return Undoing([], {}, {})


@asynccontextmanager
async def server(folder: Path, *, shared: bool = False) -> AsyncGenerator[tuple[PlanRuns, Tasks]]:
    """Runs plans until the block is left; one with the same folder is that server after a restart."""
    bus, tasks = EventBus(), Tasks()
    rows = Store(folder / "x.db", bus, url=url_for(folder / "x.db"), shared=shared)
    runs = PlanRuns(ground=tasks, bus=bus, store=rows, folder=folder / "plans")
    async with anyio.create_task_group() as serving:
        await serving.start(rows.run)
        async with anyio.create_task_group() as running:
            await running.start(runs.run)
            yield runs, tasks
            running.cancel_scope.cancel()
        serving.cancel_scope.cancel()


async def ended(runs: PlanRuns, text: str = ONE) -> PlanView:
    """A plan that is over, or waits."""
    begun = await runs.start(parse_plan(text, "x"), Path("/r"), "", "me")
    return await runs.wait(begun.id, PATIENCE_S)


async def beside(monkeypatch: pytest.MonkeyPatch, first: Awaitable[object], second: Awaitable[object]) -> list[object]:
    """Both, the second while the first has read the plan's file; what they return, or why they are refused."""
    reading, go_on = threading.Event(), threading.Event()

    def held(folder: Path) -> Stored | None:
        found = load(folder)
        if not reading.is_set():
            reading.set()
            go_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(plan_runs, "load", held)
    came_to: list[object] = [None, None]

    async def take(place: int, work: Awaitable[object]) -> None:
        try:
            came_to[place] = await work
        except PlanRefused as error:
            came_to[place] = str(error)

    async with anyio.create_task_group() as both:
        both.start_soon(take, 0, first)
        await anyio.to_thread.run_sync(reading.wait, PATIENCE_S)
        both.start_soon(take, 1, second)
        await anyio.wait_all_tasks_blocked()
        go_on.set()
    return came_to


def state_on_disk(plan: PlanView) -> PlanState | None:
    found = load(Path(plan.folder))
    return found and found.view.state


async def test_folders_of_plans_are_kept_as_long_as_their_rows(tmp_path: Path) -> None:
    """They stayed for ever."""
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        old, new = await ended(runs), await ended(runs)
        waiting = await ended(runs, ONE + "  checks:\n  - approval: Go on?\n")
        for plan in (old, waiting):
            stored = load(Path(plan.folder))
            assert stored is not None
            stored.view.created_at -= 8 * 86400
            store(Path(plan.folder), stored)
        await runs.sweep()
        assert [Path(plan.folder).exists() for plan in (old, new, waiting)] == [False, True, True]
    async with server(tmp_path) as (runs, _):  # where it still waits
        await runs.sweep()
        assert Path(waiting.folder).exists()


async def test_of_two_who_resume_a_plan_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        tasks.state = TaskState.FAILED
        plan = await ended(runs)
        tasks.state, tasks.go_on = TaskState.DONE, anyio.Event()
        _, refused = await beside(monkeypatch, runs.resume(plan.id), runs.resume(plan.id))
        assert refused == f"{plan.id} is running already."
        tasks.go_on.set()
        found = await runs.wait(plan.id, PATIENCE_S)
        assert (found.state, tasks.submitted) == (PlanState.DONE, 2)


async def test_waves_are_added_by_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        plan = await ended(runs)
        tasks.go_on = anyio.Event()
        _, refused = await beside(monkeypatch, runs.extend(plan.id, MORE), runs.extend(plan.id, MORE))
        assert refused == f"{plan.id} is running: waves are added to a plan that is done."


async def test_who_undoes_does_not_replace_what_was_resumed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        tasks.state = TaskState.FAILED
        plan = await ended(runs)
        tasks.go_on = anyio.Event()
        await beside(monkeypatch, runs.undo(plan.id, "me"), runs.resume(plan.id))
        assert state_on_disk(plan) is PlanState.RUNNING


async def test_a_plan_that_is_cancelled_while_it_is_resumed_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (runs, _):
        plan = await runs.start(parse_plan(ONE, "x"), Path("/r"), "", "me")
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        assert (await runs.find(plan.id)).state is PlanState.INTERRUPTED
        tasks.go_on = anyio.Event()
        _, found = await beside(monkeypatch, runs.resume(plan.id), runs.cancel(plan.id, "me"))
        assert isinstance(found, PlanView)
        assert (found.state, state_on_disk(plan)) == (PlanState.CANCELLED, PlanState.CANCELLED)


async def test_of_two_who_decide_after_a_restart_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        plan = await ended(runs, f"{ONE}  checks:\n  - approval: Good?\n")
        assert plan.state is PlanState.WAITING
    async with server(tmp_path) as (runs, _):
        first, second = runs.decide(plan.id, "me", approved=True), runs.decide(plan.id, "you", approved=False)
        _, refused = await beside(monkeypatch, first, second)
        assert str(refused).startswith(f"{plan.id} waits for no approval")
        assert (await runs.wait(plan.id, PATIENCE_S)).state is PlanState.DONE


async def test_a_plan_whose_beginning_was_cancelled_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        tasks.state = TaskState.FAILED
        plan = await ended(runs)
        tasks.state = TaskState.DONE
        with anyio.CancelScope() as scope, monkeypatch.context() as patched:

            async def cancelled(_writer: Writer) -> bool:
                scope.cancel()
                await anyio.sleep_forever()
                return True

            patched.setattr(Writer, "survives_a_kill", cancelled)
            await runs.resume(plan.id)
        assert (await runs.find(plan.id)).state is PlanState.INTERRUPTED
        await runs.resume(plan.id)
        assert (await runs.wait(plan.id, PATIENCE_S)).state is PlanState.DONE


async def test_a_plan_that_ends_while_plans_are_listed_is_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (runs, tasks):
        plan = await runs.start(parse_plan(ONE, "x"), Path("/r"), "", "me")
        ask = Store.ask

        async def held(rows: Store, query: Any) -> Any:
            answer = await ask(rows, query)
            monkeypatch.undo()
            tasks.go_on.set()
            await runs.wait(plan.id, PATIENCE_S)
            return answer

        monkeypatch.setattr(Store, "ask", held)
        found = await runs.listed(TaskFilter())
        assert [one.state for one in found] == [PlanState.DONE]


@pytest.mark.parametrize(("shared", "state"), [(False, PlanState.INTERRUPTED), (True, PlanState.RUNNING)])
async def test_a_plan_whose_folder_another_server_has_is_not_interrupted(
    tmp_path: Path, shared: bool, state: PlanState
) -> None:
    async with server(tmp_path, shared=shared) as (runs, _):
        row = replace(past_plan(tmp_path / "elsewhere"), state="running", waves=[])
        runs._store.writer.put(row)
        assert (await runs.find(row.id)).state is state
        with pytest.raises(PlanRefused):
            await runs.cancel(row.id, "me")


async def test_an_older_state_never_replaces_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        plan = await ended(runs)
        stored = load(Path(plan.folder))
        assert stored is not None
        run, newer, writing = PlanRun(stored.plan, stored.view), threading.Event(), threading.Event()

        def held(folder: Path, state: Stored) -> None:
            if not writing.is_set():
                writing.set()
                newer.wait(0.5)  # as far as that comes while this one is written
            store(folder, state)
            newer.set()

        monkeypatch.setattr(plan_runs, "store", held)
        async with anyio.create_task_group() as saving:
            saving.start_soon(runs.save, run)
            await anyio.to_thread.run_sync(writing.wait, PATIENCE_S)
            run.view.says = "newer"
            await runs.save(run)
        kept = load(Path(plan.folder))
        assert kept is not None
        assert (kept.view.says, run.kept.says) == ("newer", "newer")


@contextmanager
def not_writable(plan: PlanView) -> Generator[None]:
    """As on a full disk: nothing can be written to the plan's folder."""
    folder = Path(plan.folder)
    away = folder.rename(f"{folder}-away")
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        away.rename(folder)


async def until_waited_for(tasks: Tasks, count: int) -> None:
    """Until so many tasks run, as the plan's state on disk says, too."""
    with anyio.fail_after(PATIENCE_S):
        while len(tasks.waited_for) < count:
            await anyio.sleep(0.01)


async def test_a_plan_whose_state_cannot_be_written_stops_and_says_so_and_can_be_resumed(tmp_path: Path) -> None:
    async with server(tmp_path) as (runs, tasks):
        plan = await runs.start(parse_plan(ONE, "x"), tmp_path, "", "x")
        await until_waited_for(tasks, 1)
        with not_writable(plan):
            tasks.go_on.set()
            found = await over(runs, plan.id)
            assert (found.state, found.waves[0].tasks[0].state) == (PlanState.STOPPED, "done")
            assert "can't be written" in found.says
        await runs.resume(plan.id)
        assert (await over(runs, plan.id)).state is PlanState.DONE
        assert tasks.submitted == 1
        assert list(Path(plan.folder).glob(".plan.json.*")) == []


async def test_a_decision_that_cannot_be_written_counts_and_says_so(tmp_path: Path) -> None:
    """`waves approve` ended with an internal error, and the plan went on."""
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        text = "name: x\nwaves:\n- tasks:\n  - instruction: go\n  checks:\n  - approval: Go on?\n"
        plan = await ended(runs, text)
        assert plan.state is PlanState.WAITING
        with not_writable(plan):
            with pytest.raises(PlanRefused, match=r"can't be written.*The decision counts"):
                await runs.decide(plan.id, "me", approved=True)
            with anyio.fail_after(PATIENCE_S):  # what is on record is that it waits, as long as it runs
                while (found := await runs.find(plan.id)).state is PlanState.WAITING:
                    await anyio.sleep(0.01)
            assert (found.state, "can't be written" in found.says) == (PlanState.STOPPED, True)


async def test_an_undo_that_cannot_be_written_says_what_was_undone(tmp_path: Path) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.go_on.set()
        plan = await ended(runs)
        written = plan_runs.store

        def full(folder: Path, stored: Stored) -> None:
            raise OSError(28, "No space left on device")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(plan_runs, "store", full)
            with pytest.raises(PlanRefused, match=r"No space left on device\. 0 edits undone before that"):
                await runs.undo(plan.id, "me")
        assert plan_runs.store is written


async def test_a_file_of_the_project_that_cannot_be_read_is_not_called_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (runs, tasks):

        async def unreadable(root: Path, targets: Sequence[Sequence[str]]) -> tuple[list[Reach], list[str]]:
            raise PermissionError(13, "Permission denied", "/r/secret.py")

        monkeypatch.setattr(tasks, "reaches", unreadable)
        found = await ended(runs)
        assert (found.state, found.says) == (
            PlanState.STOPPED,
            "A file can't be read or written: Permission denied (/r/secret.py).",
        )


async def test_tasks_of_a_plan_are_not_left_alone_while_its_state_cannot_be_written(tmp_path: Path) -> None:
    async with server(tmp_path) as (runs, tasks):
        ends_first = anyio.Event()
        tasks.ends["t-1"] = ends_first
        two = "name: x\nwaves:\n- tasks:\n  - instruction: go\n  - instruction: go\n"
        plan = await runs.start(parse_plan(two, "x"), tmp_path, "", "x")
        await until_waited_for(tasks, 2)
        with not_writable(plan):
            ends_first.set()
            await runs.wait(plan.id, 0.1)
            assert (await runs.find(plan.id)).state is PlanState.RUNNING
        tasks.go_on.set()
        assert (await over(runs, plan.id)).state is PlanState.DONE


async def test_no_task_goes_on_of_which_a_resumed_plan_would_not_know(tmp_path: Path) -> None:
    async with server(tmp_path) as (runs, tasks):
        tasks.submits = anyio.Event()
        plan = await runs.start(parse_plan(ONE, "x"), tmp_path, "", "x")
        with anyio.fail_after(PATIENCE_S):
            while not tasks.submitted:
                await anyio.sleep(0.01)
        with not_writable(plan):
            tasks.submits.set()
            found = await over(runs, plan.id)
        assert (found.state, tasks.cancelled) == (PlanState.STOPPED, ["t-1"])


async def over(runs: PlanRuns, plan_id: str) -> PlanView:
    with anyio.fail_after(PATIENCE_S):
        while (found := await runs.wait(plan_id, PATIENCE_S)).state is PlanState.RUNNING:
            pass
        return found
