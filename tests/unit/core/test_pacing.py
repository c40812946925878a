"""Long loops give others a turn."""

import time
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from serena_central.core import pacing
from serena_central.core.pacing import Pace, paced

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of time is over at once."""
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)


async def turns_during(loop: Callable[[], Awaitable[None]]) -> int:
    """How often another task runs while `loop` does."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await anyio.lowlevel.checkpoint()
        turns = 0
        await loop()
        tasks.cancel_scope.cancel()
    return turns


async def test_others_run_between_two_items() -> None:
    seen: list[int] = []

    async def loop() -> None:
        seen.extend([item async for item in paced(range(10))])

    assert await turns_during(loop) >= 9
    assert seen == list(range(10))


async def test_a_pace_says_whether_others_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bool] = []

    async def loop() -> None:
        pace = Pace()
        said.append(await pace.turn())
        monkeypatch.setattr(pacing, "SLICE_S", 60.0)
        said.append(await pace.turn())

    assert await turns_during(loop) >= 1
    assert said == [True, False]


async def test_a_small_call_waits_for_a_slice_or_two_and_not_for_one_at_each_of_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items, during = 0, -1
    monkeypatch.setattr(pacing, "IDLE_S", 0.01)  # however busy the machine is

    async def long_loop() -> None:
        nonlocal items
        async for _ in paced(range(10_000)):
            items += 1
            if during >= 0:
                return

    async def small_call() -> None:
        nonlocal during
        before = items
        for _ in range(20):
            spin(0.02)
            await anyio.lowlevel.checkpoint()
        during = items - before

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(long_loop)
        tasks.start_soon(long_loop)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(small_call)
    assert during <= 4


async def test_a_long_loop_is_cancelled_while_it_lets_others_run() -> None:
    items = 0

    async def loop() -> None:
        nonlocal items
        async for _ in paced(range(10_000)):
            items += 1
            if items == 3:
                scope.cancel()

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await loop()
    assert scope.cancelled_caught
    assert items == 3


def spin(seconds: float) -> None:
    """Keeps the event loop's thread busy."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
