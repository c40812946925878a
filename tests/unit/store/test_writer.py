"""The writer never waits and never fails: it coalesces, bounds, retries, and tells what it lost."""

import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from serena_central.core.errors import StoreError
from serena_central.core.events import EventBus
from serena_central.store import writer as writer_module
from serena_central.store.rows import EventRow, ProjectRow, Removal, Row, SymbolViewRow
from serena_central.store.writer import BURST_ROWS, Writer

pytestmark = pytest.mark.anyio


class Disk:
    """Stands for the database, to be made to fail or hang; what real ones do is tested beside it."""

    def __init__(self) -> None:
        self.batches: list[list[Row | Removal]] = []
        self.failures = 0
        self.refuses = 0
        self.open = threading.Event()
        self.open.set()

    def write(self, rows: Sequence[Row | Removal]) -> int:
        assert self.open.wait(10)
        if self.failures:
            self.failures -= 1
            raise StoreError("no room")
        self.batches.append(list(rows))
        return self.refuses

    @property
    def rows(self) -> list[Row | Removal]:
        return [row for batch in self.batches for row in batch]


@asynccontextmanager
async def running(writer: Writer) -> AsyncGenerator[None]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(writer.run)
            yield
            tasks.cancel_scope.cancel()


def event(seq: int) -> EventRow:
    return EventRow(seq=seq, at=0.0, kind="a.b")


def project(root: str, name: str = "x") -> ProjectRow:
    return ProjectRow(root=root, name=name, added_at=0.0, last_used_at=0.0)


def view(name: str) -> SymbolViewRow:
    return SymbolViewRow(
        session="s", project_root="/a", relative_path="a.py", name_path=name, body_hash="", seen_at=0.0
    )


def kinds(bus: EventBus) -> list[str]:
    return [event.kind for event in bus.recent()]


async def test_rows_with_one_key_are_coalesced_and_the_last_wins() -> None:
    disk = Disk()
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        for number in range(1000):
            writer.put(project("/a", str(number)))
        writer.put(project("/b"))
        writer.remove(ProjectRow, "/b")
        await writer.flush()
        assert disk.rows == [project("/a", "999"), Removal(ProjectRow, ("/b",))]


async def test_a_late_row_is_made_once_and_as_it_is_when_it_is_written() -> None:
    disk, names = Disk(), ["first"]
    made: list[str] = []

    def make() -> ProjectRow:
        made.append(names[-1])
        return project("/a", names[-1])

    writer = Writer(disk.write, EventBus())
    async with running(writer):
        for number in range(1000):
            names.append(str(number))
            writer.put_late(ProjectRow, "/a", make=make)
        writer.put(project("/b", "old"))
        writer.put_late(ProjectRow, "/b", make=lambda: project("/b", "new"))
        writer.put_late(ProjectRow, "/c", make=lambda: project("/c"))
        writer.put(project("/c", "newer"))
        await writer.flush()
        assert disk.rows == [project("/a", "999"), project("/b", "new"), project("/c", "newer")]
        assert made == ["999"]
        disk.failures = 1
        writer.put_late(ProjectRow, "/a", make=make)
        await writer.flush()
        names.append("after the failure")
        await writer.flush()
    assert disk.rows[-1] == project("/a", "after the failure")


async def test_a_stop_loses_no_batch_that_was_just_taken() -> None:
    for turns in range(8):
        disk = Disk()
        writer = Writer(disk.write, EventBus(), first_after_s=0)
        async with running(writer):
            writer.put(event(1))
            for _ in range(turns):
                await checkpoint()
        assert disk.rows == [event(1)]


async def test_rows_without_a_key_are_all_written_in_order() -> None:
    disk = Disk()
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        for number in range(250):
            writer.put(event(number))
        await writer.flush()
    assert disk.rows == [event(number) for number in range(250)]


async def test_rows_are_written_soon_without_being_asked_to() -> None:
    disk = Disk()
    written = anyio.Event()

    def write(rows: Sequence[Row | Removal]) -> int:
        anyio.from_thread.run_sync(written.set)
        return disk.write(rows)

    writer = Writer(write, EventBus())
    async with running(writer):
        writer.put(event(1))
        await written.wait()


async def test_a_stop_writes_what_is_left() -> None:
    disk = Disk()
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        writer.put(event(1))
    assert disk.rows == [event(1)]
    assert writer.dropped.total() == 0


async def test_what_does_not_fit_is_dropped_counted_and_told_once() -> None:
    disk, bus = Disk(), EventBus()
    writer = Writer(disk.write, bus, queue_rows=10)
    writer.put(project("/a", "old"))
    for number in range(25):
        writer.put(event(number))
    writer.put(project("/a", "new"))  # a row that is waiting already is replaced, whatever the bound
    assert writer.dropped.total() == 16
    async with running(writer):
        await writer.flush()
        assert disk.rows == [project("/a", "new"), *(event(number) for number in range(9))]
        writer.count_lost("edit", 2)
        await writer.flush()
        (told,) = [event for event in bus.recent() if event.kind == "store.dropped"]
        assert told.data == {"rows": {"event": 16}}
    assert [event.data for event in bus.recent()][-1] == {"rows": {"edit": 2}}


async def test_in_a_full_queue_views_and_records_make_room_for_what_the_server_goes_by() -> None:
    disk, bus = Disk(), EventBus()
    writer = Writer(disk.write, bus, queue_rows=4)
    async with running(writer):
        for name in "abcde":
            writer.put(view(name))
        writer.put(event(1))
        writer.put(event(2))
        writer.put(project("/a"))
        writer.remove(ProjectRow, "/b")
        writer.put(project("/c"))
        writer.put(event(3))
        writer.put(view("f"))
        await writer.flush()
    assert disk.rows == [event(2), project("/a"), Removal(ProjectRow, ("/b",)), project("/c")]
    assert writer.dropped == {"symbol_view": 6, "event": 2}


async def test_what_is_kept_after_a_failure_is_dropped_by_rank() -> None:
    disk, bus = Disk(), EventBus()
    writer = Writer(disk.write, bus, queue_rows=3)
    async with running(writer):
        disk.failures = 1
        disk.open.clear()
        for name in "abc":
            writer.put(view(name))
        writer.hasten()
        await anyio.wait_all_tasks_blocked()
        writer.put(project("/a"))
        writer.put(event(1))
        disk.open.set()
        while not disk.rows:
            await writer.flush()
    assert disk.rows == [view("c"), project("/a"), event(1)]
    assert writer.dropped == {"symbol_view": 2}


async def test_losses_are_told_when_their_time_has_come_though_nothing_is_put() -> None:
    bus = EventBus()
    writer = Writer(Disk().write, bus, queue_rows=1, tell_every_s=0.05)
    with bus.subscribe() as news:
        async with running(writer):
            for _ in range(3):
                writer.put(event(1))
                writer.put(event(2))
                assert (await anext(news)).data == {"rows": {"event": 1}}
                await writer.flush()


async def test_a_failure_that_passes_loses_nothing_and_is_no_news() -> None:
    disk, bus = Disk(), EventBus()
    disk.failures = 2
    writer = Writer(disk.write, bus)
    async with running(writer):
        writer.put(project("/a", "old"))
        writer.put(event(1))
        await writer.flush()
        writer.put(project("/a", "new"))
        while not disk.batches:
            await writer.flush()
    assert disk.rows == [project("/a", "new"), event(1)]
    assert kinds(bus) == []


async def test_a_failure_that_lasts_is_told_once_and_so_is_its_end() -> None:
    disk, bus = Disk(), EventBus()
    disk.failures = 3
    writer = Writer(disk.write, bus, queue_rows=3)
    with bus.subscribe() as news:
        async with running(writer):
            for number in range(3):
                writer.put(event(number))
            assert (await anext(news)).kind == "store.failed"
            for number in range(3, 6):
                writer.put(event(number))
            assert [(await anext(news)).kind for _ in range(2)] == ["store.recovered", "store.dropped"]
    assert disk.rows == [event(0), event(1), event(2)]
    assert writer.dropped.total() == 3
    assert kinds(bus) == ["store.failed", "store.recovered", "store.dropped"]


async def test_putting_goes_on_while_the_database_hangs() -> None:
    disk = Disk()
    disk.open.clear()
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        for number in range(100):
            writer.put(event(number))
        await anyio.wait_all_tasks_blocked()
        writer.put(event(100))
        disk.open.set()
        await writer.flush()
        assert disk.rows == [event(number) for number in range(101)]


async def test_who_shows_what_is_written_waits_for_the_disk_however_slow_it_is() -> None:
    disk = Disk()
    disk.open.clear()
    writer = Writer(disk.write, EventBus())
    async with running(writer), anyio.create_task_group() as tasks:
        writer.put(event(1))
        seen: list[tuple[bool, list[Row | Removal]]] = []

        async def look() -> None:
            seen.append((await writer.caught_up(), disk.rows))

        tasks.start_soon(look)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        disk.open.set()
        tasks.start_soon(look)
    assert seen == [(True, [event(1)])] * 2


async def test_who_shows_what_is_written_waits_for_none_of_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FLOOD_ROWS_PER_S", 0.0)  # so that it lasts, however slow the machine is
    disk = Disk()
    disk.open.clear()
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        for number in range(BURST_ROWS + 1):
            writer.put(event(number))
        assert await writer.caught_up() is False
        assert disk.rows == []
        disk.open.set()
        await writer.flush()
        assert len(disk.rows) == BURST_ROWS + 1


async def test_who_shows_what_is_written_does_not_wait_while_nothing_can_be() -> None:
    disk = Disk()
    disk.failures = 1
    writer = Writer(disk.write, EventBus())
    async with running(writer):
        writer.put(event(1))
        assert await writer.caught_up() is False
        disk.open.clear()
        assert await writer.caught_up() is False
        disk.open.set()


async def test_rows_that_the_database_refuses_are_counted() -> None:
    disk, bus = Disk(), EventBus()
    disk.refuses = 2
    writer = Writer(disk.write, bus)
    async with running(writer):
        writer.put(event(1))
        await writer.flush()
    assert writer.dropped.total() == 2
    assert bus.recent()[0].data == {"rows": {"refused": 2}}


async def test_an_unforeseen_error_costs_its_batch_and_not_the_writer(caplog: pytest.LogCaptureFixture) -> None:
    disk, bus = Disk(), EventBus()
    errors = [RuntimeError("unforeseen")]

    def write(rows: Sequence[Row | Removal]) -> int:
        if errors:
            raise errors.pop()
        return disk.write(rows)

    writer = Writer(write, bus)
    async with running(writer):
        writer.put(event(1))
        await writer.flush()
        writer.put(event(2))
        await writer.flush()
    assert disk.rows == [event(2)]
    assert writer.dropped.total() == 1
    assert "unforeseen" in caplog.text


async def test_what_can_not_be_written_at_the_end_is_told() -> None:
    disk, bus = Disk(), EventBus()
    disk.failures = 1000
    writer = Writer(disk.write, bus)
    async with running(writer):
        writer.put(event(1))
    assert bus.recent()[-1].data == {"rows": {"event": 1}}
