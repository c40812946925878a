"""What holds tasks back: memory, and a provider that has refused."""

import anyio
import pytest

from serena_central.agents import slots
from serena_central.agents.provider_limits import ProviderLimits
from serena_central.agents.slots import Slots
from tests.support.child import PATIENCE_S

pytestmark = pytest.mark.anyio


async def test_without_memory_one_task_runs_and_the_next_waits_until_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "RETRY_S", 0.01)
    memory = [False]
    places = Slots(10, lambda: memory[0])
    await places.take("first")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(places.take, "second")
        await anyio.wait_all_tasks_blocked()
        assert (places.used, places.position("second")) == (1, 1)
        memory[0] = True
        with anyio.fail_after(PATIENCE_S):
            while places.queued:
                await anyio.sleep(0.01)
    assert places.used == 2


async def test_a_refusal_holds_all_tasks_back_and_later_ones_add_nothing_to_its_pause() -> None:
    limits = ProviderLimits(first_s=1000)
    limits.refused(None)
    first = limits.pause_s
    for _ in range(9):
        limits.refused(None)  # of requests that were on their way
    assert 0 < limits.pause_s <= first
    passed: list[int] = []

    async def ask(number: int) -> None:
        await limits.ready()
        passed.append(number)

    with anyio.move_on_after(0.05):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(ask, number)
    assert passed == []


async def test_pauses_grow_until_the_provider_answers() -> None:
    limits = ProviderLimits(first_s=0.001)
    pauses: list[float] = []
    for _ in range(3):
        limits.refused(None)
        pauses.append(limits.pause_s)
        await limits.ready()
    assert pauses == sorted(pauses)
    limits.refused(50)
    assert limits.pause_s > 40  # as long as the provider says
