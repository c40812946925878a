"""The end of a start: when no call has run for a while, and at the latest after a bound."""

import anyio
import pytest

from serena_central.core import start_up
from serena_central.core.start_up import StartUp

pytestmark = pytest.mark.anyio


async def test_it_is_over_when_no_call_runs_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "QUIET_S", 0.02)
    monkeypatch.setattr(start_up, "LOOK_EVERY_S", 0.001)
    start, looks = StartUp(), 0

    def busy() -> bool:
        nonlocal looks
        looks += 1
        return looks < 10

    start.is_busy = busy
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            await tasks.start(start.run)
            await start.over()
    assert looks >= 10


async def test_calls_that_never_end_delay_it_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "LONGEST_S", 0.05)
    monkeypatch.setattr(start_up, "LOOK_EVERY_S", 0.001)
    start = StartUp()
    start.is_busy = lambda: True
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            await tasks.start(start.run)
            await start.over()
