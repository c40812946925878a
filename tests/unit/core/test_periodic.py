"""What comes round again survives its own failures, and says so."""

import anyio
import pytest

from serena_central.core.events import EventBus
from serena_central.core.periodic import GRID_S, aligned, follow, repeat
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
    for after_s in (0.5, 1.0, 2.0, 15.0):
        delay = aligned(after_s)
        assert delay == pytest.approx(after_s, abs=GRID_S / 2 + 0.1)
        assert (now + delay) / GRID_S == pytest.approx(round((now + delay) / GRID_S), abs=0.1)
    assert aligned(0.05) == 0.05
