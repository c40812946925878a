"""What is known of tasks while rows are read: what runs here, what ended meanwhile, what another server runs."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.agents.output import TaskOutput
from serena_central.agents.task_records import Task, TaskRecords
from serena_central.agents.tasks import Budget, TaskSpec, TaskState, TaskView, Transcript
from serena_central.core.events import EventBus
from serena_central.store.query_results import TaskFilter
from serena_central.store.rows import TaskRow
from serena_central.store.store import Store
from tests.support.postgresql import url_for

pytestmark = pytest.mark.anyio


async def _unchanged(place: dict[str, Any]) -> dict[str, Any]:
    return place


@asynccontextmanager
async def server(folder: Path, front: str = "") -> AsyncGenerator[tuple[TaskRecords, Store]]:
    """What a server knows of tasks; those with a name share their database."""
    bus = EventBus()
    store = Store(folder / "x.db", bus, url=url_for(folder / "x.db"), shared=bool(front))
    records = TaskRecords(bus=bus, store=store, folder=folder, position=lambda _: None, reclaim=_unchanged, front=front)
    async with anyio.create_task_group() as tasks:
        await tasks.start(store.run)
        yield records, store
        tasks.cancel_scope.cancel()


def running_task(folder: Path, session: str = "s-1") -> Task:
    spec = TaskSpec(
        id="t-1",
        instruction="x",
        root="/r",
        session=session,
        runner="scripted",
        budget=Budget(time_s=1),
        transcript=Transcript(session="t", root="/r"),
    )
    row = TaskRow(
        id="t-1",
        at=time.time(),
        state="running",
        instruction="x",
        runner="scripted",
        project_root="/r",
        session=session,
    )
    return Task(spec, row, TaskOutput(folder / "t-1.jsonl"))


def after_reading(store: Store, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]) -> None:
    """Has `then` done when the store has read something, before anybody gets it."""
    ask = store.ask

    async def held(query: Any) -> Any:
        answer = await ask(query)
        monkeypatch.setattr(store, "ask", ask)
        await then()
        return answer

    monkeypatch.setattr(store, "ask", held)


async def listed(records: TaskRecords) -> list[tuple[TaskState, str, str]]:
    def told(one: TaskView) -> tuple[TaskState, str, str]:
        return one.state, one.text, one.error

    return [told(one) for one in await records.listed(TaskFilter())]


async def test_a_task_that_ends_while_tasks_are_listed_is_what_it_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (records, store):
        task = running_task(tmp_path)
        await records.add(task)

        async def end() -> None:
            records.end(task, state=TaskState.DONE, text="result")

        after_reading(store, monkeypatch, end)
        assert await listed(records) == [("done", "result", "")]
        await store.writer.flush()
        kept = await store.ask(lambda queries: queries.task("t-1"))
        assert kept is not None
        assert (kept.state, kept.text) == ("done", "result")


async def test_what_an_earlier_run_left_open_is_recorded_as_failed(tmp_path: Path) -> None:
    async with server(tmp_path) as (earlier, _):
        await earlier.add(running_task(tmp_path))
    async with server(tmp_path) as (records, store):
        found = await records.find("t-1")
        assert (found.state, "while it was running" in found.error) == ("failed", True)
        failed = await store.ask(lambda queries: queries.tasks(TaskFilter(state="failed")))
        assert [one.ended_at for one in failed] == [found.ended_at]


async def test_an_end_that_is_recorded_while_a_task_is_taken_for_left_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(tmp_path) as (first, writes), server(tmp_path) as (second, reads):
        task = running_task(tmp_path)
        await first.add(task)

        async def end() -> None:
            first.end(task, state=TaskState.DONE, text="result")
            await writes.writer.flush()

        after_reading(reads, monkeypatch, end)
        assert await listed(second) == [("done", "result", "")]


async def test_what_another_server_with_the_same_database_runs_goes_on_running(tmp_path: Path) -> None:
    async with server(tmp_path, "f1") as (one, store), server(tmp_path, "f2") as (other, _):
        await one.add(running_task(tmp_path, "f1.s-1"))
        assert await listed(other) == [("running", "", "")]
        assert (await other.find("t-1")).state == "running"
        row = await store.ask(lambda queries: queries.task("t-1"))
        assert row is not None
        assert row.state == "running"
    async with server(tmp_path, "f1") as (one, _):
        assert (await one.find("t-1")).state == "failed"


async def test_what_a_server_left_open_before_it_shared_its_database_is_recorded_as_failed(tmp_path: Path) -> None:
    async with server(tmp_path) as (alone, _):
        await alone.add(running_task(tmp_path, "s-1"))
    async with server(tmp_path, "f1") as (named, _):
        assert (await named.find("t-1")).state == "failed"
