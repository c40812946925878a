"""What comes round again survives its own failures, and says so."""

import anyio
import anyio.lowlevel
import pytest

from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import aligned, contained, follow, repeat
from tests.support.events import Happened

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "async"])
async def test_work_that_failed_is_done_again(waits: bool, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    enough = anyio.Event()

    def work() -> None:
        done.append(len(done))
        if len(done) == 1:
            raise ZeroDivisionError("a bug")
        enough.set()

    async def waiting() -> None:
        work()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: repeat("counting", waiting if waits else work, every_s=0))
        with anyio.fail_after(60):
            await enough.wait()
        tasks.cancel_scope.cancel()
    assert "counting failed" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


async def test_the_interval_may_change_each_time() -> None:
    intervals, done = iter((0.0, 0.0, 3600.0)), anyio.Event()
    left = [1, 2]

    def work() -> None:
        left.pop()
        if not left:
            done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: repeat("counting", work, every_s=lambda: next(intervals)))
        with anyio.fail_after(60):
            await done.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert next(intervals, None) is None


async def test_news_after_one_that_could_not_be_taken_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()
    taken: list[str] = []
    with bus.subscribe() as news:
        for number in range(3):
            bus.publish(Happened(number=number))
        news.close()
        with anyio.fail_after(60):
            await follow("noting", news, lambda event: taken.append({0: "a", 2: "c"}[event.data["number"]]))
    assert taken == ["a", "c"]
    assert "noting failed on Happened(" in caplog.text


async def test_periodic_work_comes_on_a_grid_for_one_wakeup_of_all() -> None:
    now = anyio.current_time()
    for after_s, grid_s in ((0.5, 0.5), (1.0, 0.5), (2.0, 0.5), (5.0, 5.0), (15.0, 5.0), (60.0, 60.0)):
        delay = aligned(after_s)
        assert delay == pytest.approx(after_s, abs=grid_s / 2 + 0.1)
        assert (now + delay) / grid_s == pytest.approx(round((now + delay) / grid_s), abs=0.1)
    assert aligned(0.05) == 0.05


async def test_news_that_take_a_while_are_taken_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()
    taken: list[int] = []

    async def take(event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        taken.append(1 // (1 - event.data["number"]))

    with bus.subscribe(Happened) as news:
        for number in (0, 1, 2):
            bus.publish(Happened(number=number))
        news.close()
        with anyio.fail_after(60):
            await follow("noting", news, take)
    assert taken == [1, -1]
    assert "noting failed on Happened(" in caplog.text


async def test_work_that_fails_beside_other_work_ends_none_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ZeroDivisionError("a bug")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(contained, "counting", work)
        await anyio.lowlevel.checkpoint()
    assert "counting failed" in caplog.text
