"""A process rests when nothing has happened for a while, and stirs at once when something does."""

import anyio
import pytest

from serena_central.core import events, periodic
from serena_central.core.periodic import repeat
from serena_central.core.rest import RESTING_S, RESTS_AFTER_S, Rest
from tests.support.events import Happened


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def resting(clock: Clock) -> Rest:
    """That of a process in which nothing has happened for a while."""
    rest = Rest(clock)
    assert not rest.is_resting, "it has just begun"
    clock.now += RESTS_AFTER_S
    assert rest.is_resting
    return rest


def test_what_happens_ends_the_rest_for_a_while(resting: Rest, clock: Clock) -> None:
    resting.stir()
    clock.now += 5
    assert not resting.is_resting
    clock.now += RESTS_AFTER_S - 1
    assert not resting.is_resting
    clock.now += 1
    assert resting.is_resting


def test_it_does_not_rest_while_a_call_runs_however_long(resting: Rest, clock: Clock) -> None:
    resting.is_busy = lambda: True
    for _ in range(3):
        clock.now += 2 * RESTS_AFTER_S
        assert not resting.is_resting
    resting.is_busy = lambda: False
    clock.now += RESTS_AFTER_S
    assert resting.is_resting


def test_who_waits_is_woken_once_by_whatever_comes(resting: Rest, clock: Clock) -> None:
    woken: list[str] = []
    with resting.waking(lambda: woken.append("first")), resting.waking(lambda: woken.append("second")):
        for _ in range(3):
            resting.stir()
    assert woken == ["first", "second"]
    assert not resting.is_resting
    resting.stir()
    assert woken == ["first", "second"], "nobody waits any more"


@pytest.mark.anyio
async def test_frequent_work_waits_while_the_process_rests_and_comes_when_something_happens(
    resting: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periodic, "rest", resting)
    monkeypatch.setattr(events, "rest", resting)
    monkeypatch.setattr(periodic, "aligned", lambda after_s: 3600 if after_s == RESTING_S else 0.0)
    done = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: repeat("looking", done.set, every_s=1.0))
        await anyio.wait_all_tasks_blocked()
        assert not done.is_set()
        events.EventBus().publish(Happened())
        with anyio.fail_after(60):
            await done.wait()
        tasks.cancel_scope.cancel()
