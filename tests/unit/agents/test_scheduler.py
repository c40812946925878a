"""Tasks that start, wait, end and are cancelled while others do."""

import os
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.abc import TaskGroup

from serena_central.agents import scheduler
from serena_central.agents.day_budgets import DayBudgets
from serena_central.agents.scheduler import Isolation, Scheduler
from serena_central.agents.task_records import Task
from serena_central.agents.task_transcripts import TaskTranscripts
from serena_central.agents.tasks import Budget, Emit, Ending, TaskResult, TaskSpec, Transcript, ends
from serena_central.config.policies import AgentPolicy
from serena_central.core.errors import TaskRefused
from serena_central.core.events import EventBus
from serena_central.store.store import Store
from serena_central.tools.task_grants import TaskGrants
from tests.support.child import PATIENCE_S

pytestmark = pytest.mark.anyio


class Held:
    """A runner whose tasks end when the test says so."""

    name = "held"

    def __init__(self) -> None:
        self.started: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
        self.ends: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    def missing(self) -> None:
        return None

    async def run(self, spec: TaskSpec, emit: Emit, ending: Ending = ends) -> TaskResult:
        self.started[spec.id].set()
        await self.ends[spec.id].wait()
        return TaskResult(status="ok", text="done")


class Box:
    """A scheduler on real parts. `flushes` is awaited whenever a task has ended but for its record, `reads` before
    every query of the store."""

    def __init__(self, folder: Path, concurrent: int) -> None:
        bus = EventBus()
        self.store = Store(folder / "db", bus)
        self.runner = Held()
        self.flushes, self.reads = Gate(), Gate()
        ask = self.store.ask

        async def asked(query: Any) -> Any:
            await self.reads.passed()
            return await ask(query)

        self.store.ask = asked
        self.scheduler = Scheduler(
            policy=AgentPolicy(concurrent=concurrent),
            runners={"held": self.runner},
            bus=bus,
            store=self.store,
            folder=folder / "tasks",
            grants=TaskGrants(),
            begin=lambda _: None,
            end=lambda _: None,
            isolation=cast("Isolation", None),
            budgets=DayBudgets(self.store, daily_usd=1000),
            transcripts=TaskTranscripts(lambda _: None, self.flushes.passed, folder),
        )

    async def start(self, name: str, parent: str | None = None, called_by: str = "") -> None:
        await self.scheduler.submit(
            TaskSpec(
                id=name,
                instruction="x",
                root="/shop",
                session=f"session of {name}",
                runner="held",
                budget=Budget(time_s=1000),
                transcript=Transcript(session="x", root="/shop"),
                parent=parent,
                depth=2 if parent else 1,
                called_by=called_by,
            )
        )

    async def runs(self, name: str) -> None:
        await self.runner.started[name].wait()

    async def position(self, name: str) -> int | None:
        return (await self.scheduler.records.find(name)).position

    async def end(self, name: str) -> None:
        self.runner.ends[name].set()
        await self.scheduler.records.wait(name)


class Gate:
    """Open until `hold`; `reached` tells that somebody stands before it."""

    def __init__(self) -> None:
        self.opened = anyio.Event()
        self.opened.set()
        self.reached = anyio.Event()

    def hold(self) -> None:
        self.opened = anyio.Event()

    async def passed(self) -> None:
        if not self.opened.is_set():
            self.reached.set()
            await self.opened.wait()


@asynccontextmanager
async def running(folder: Path, concurrent: int = 10) -> AsyncGenerator[tuple[Box, TaskGroup]]:
    box = Box(folder, concurrent)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            await tasks.start(box.store.run)
            await tasks.start(box.scheduler.run)
            try:
                yield box, tasks
            finally:
                box.flushes.opened.set()  # ending is shielded
                tasks.cancel_scope.cancel()


async def test_a_task_whose_caller_goes_before_it_has_the_id_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as (box, _):
        flush = Gate()
        add = box.scheduler.records.add

        async def held(task: Task) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(box.store.writer, "flush", flush.passed)
                await add(task)

        monkeypatch.setattr(box.scheduler.records, "add", held)
        flush.hold()
        async with anyio.create_task_group() as calls:
            calls.start_soon(box.start, "orphan")
            await flush.reached.wait()
            await box.runs("orphan")
            calls.cancel_scope.cancel()
        flush.opened.set()
        assert (await box.scheduler.records.wait("orphan")).state == "cancelled"


async def test_a_task_that_is_accepted_while_its_parent_is_cancelled_does_not_start(tmp_path: Path) -> None:
    async with running(tmp_path) as (box, _):
        await box.start("parent")
        await box.runs("parent")
        box.reads.hold()  # the day's costs

        async def start_child() -> None:
            with pytest.raises(TaskRefused, match="parent does not run any more"):
                await box.start("child", "parent")

        async with anyio.create_task_group() as starting:
            starting.start_soon(start_child)
            await box.reads.reached.wait()
            starting.start_soon(box.scheduler.cancel, "parent", "me")
            await anyio.wait_all_tasks_blocked()
            box.reads.opened.set()
        assert [one.spec.id for one in box.scheduler.records.live()] == []
        assert not box.runner.started["child"].is_set()


async def test_the_session_of_a_task_starts_no_task_while_that_ends_or_afterwards(tmp_path: Path) -> None:
    async with running(tmp_path) as (box, tasks):
        await box.start("parent")
        await box.runs("parent")
        box.flushes.hold()
        tasks.start_soon(box.end, "parent")
        await box.flushes.reached.wait()  # what it might call is ended, its record is not
        for parent in ("parent", None):
            with pytest.raises(TaskRefused, match="is over"):
                await box.start("child", parent, called_by="session of parent")
        box.flushes.opened.set()
        await box.scheduler.records.wait("parent")
        with pytest.raises(TaskRefused, match="is over"):
            await box.start("child", called_by="session of parent")
        await box.start("other", called_by="session of a client")


async def wait(box: Box, ends: anyio.Event) -> None:
    """A call of the parent's session that waits for a child."""
    async with box.scheduler.waiting("session of parent"):
        await ends.wait()


async def test_a_parent_that_waits_again_while_it_comes_back_leaves_its_place_to_its_child(tmp_path: Path) -> None:
    async with running(tmp_path, concurrent=1) as (box, tasks):
        first, second = anyio.Event(), anyio.Event()
        await box.start("parent")
        await box.runs("parent")
        tasks.start_soon(wait, box, first)
        await box.start("other")
        await box.runs("other")  # in the parent's place
        first.set()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(wait, box, second)
        await box.start("child", "parent")
        await box.end("other")
        await box.runs("child")
        await box.end("child")
        second.set()
        await anyio.wait_all_tasks_blocked()
        await box.start("next")
        await anyio.wait_all_tasks_blocked()
        assert await box.position("next") == 1  # the parent is back in its place
        await box.end("parent")
        await box.runs("next")


async def test_calls_that_come_back_together_take_one_place(tmp_path: Path) -> None:
    async with running(tmp_path, concurrent=1) as (box, tasks):
        await box.start("parent")
        await box.runs("parent")
        calls = [anyio.Event(), anyio.Event()]
        tasks.start_soon(wait, box, calls[0])
        await box.start("other")
        await box.runs("other")
        calls[0].set()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(wait, box, calls[1])
        calls[1].set()
        await anyio.wait_all_tasks_blocked()
        await box.end("other")
        box.flushes.hold()
        tasks.start_soon(box.end, "parent")
        await box.flushes.reached.wait()
        await anyio.wait_all_tasks_blocked()
        box.flushes.opened.set()
        await box.scheduler.records.wait("parent")
        assert not box.scheduler.is_working
        await box.start("next")
        await box.runs("next")


async def test_a_call_that_is_cancelled_while_it_comes_back_loses_no_place(tmp_path: Path) -> None:
    async with running(tmp_path, concurrent=1) as (box, _):
        await box.start("parent")
        await box.runs("parent")
        first = anyio.Event()
        async with anyio.create_task_group() as call:
            call.start_soon(wait, box, first)
            await anyio.wait_all_tasks_blocked()
            await box.start("other")
            await box.runs("other")
            first.set()
            await anyio.wait_all_tasks_blocked()
            call.cancel_scope.cancel()
        await box.end("other")
        await box.start("next")
        await anyio.wait_all_tasks_blocked()
        assert await box.position("next") == 1
        await box.end("parent")
        await box.runs("next")


async def test_budgets_that_could_not_be_checked_are_checked_again_and_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A table of prices can't be read for a moment while its package is replaced."""
    monkeypatch.setattr(scheduler, "BUDGET_CHECK_S", 0.01)
    async with running(tmp_path) as (box, _):
        await box.start("a")
        await box.runs("a")
        checks, enough = 0, anyio.Event()
        verdict = DayBudgets.verdict

        async def failing(self: DayBudgets, root: str, rows: Any) -> Any:
            nonlocal checks
            checks += 1
            if checks == 1:
                raise FileNotFoundError("genai_prices/data.py")
            if checks == 3:
                enough.set()
            return await verdict(self, root, rows)

        monkeypatch.setattr(DayBudgets, "verdict", failing)
        await enough.wait()
        await box.end("a")
        assert (await box.scheduler.records.find("a")).state == "done"
    assert "budgets of /shop are not checked" in caplog.text


async def test_output_of_old_tasks_is_deleted_while_the_server_runs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.agents.scheduler.SWEEP_S", 0.01)
    monkeypatch.setattr("serena_central.agents.output.FILES_KEPT", 2)
    async with running(tmp_path):
        folder = tmp_path / "tasks"
        folder.mkdir(exist_ok=True)
        for number in range(5):
            (folder / f"t-{number}.jsonl").write_bytes(b"{}")
            os.utime(folder / f"t-{number}.jsonl", (number, number))
        while len(list(folder.iterdir())) > 2:
            await anyio.sleep(0.01)
        assert {one.name for one in folder.iterdir()} == {"t-3.jsonl", "t-4.jsonl"}


async def test_a_place_that_cannot_hold_output_ends_no_server(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_bytes(b"")
    async with running(tmp_path) as (box, _):
        await box.start("a")
        await box.runs("a")
        await box.end("a")
