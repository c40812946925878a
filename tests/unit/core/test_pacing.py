"""Long loops give others a turn."""

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
        said.extend([await pace.turn(), await pace.turn()])

    assert await turns_during(loop) >= 1
    assert said == [True, True, False]
