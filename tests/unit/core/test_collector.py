"""A full collection waits until no call runs, but not for ever."""

import gc
import weakref
from collections.abc import Generator

import anyio
import pytest

from serena_central.core.collector import DUE, OVERDUE, Collector

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def own_collector() -> Generator[None]:
    """Python's garbage collector as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.enable()


class Cycle:
    def __init__(self) -> None:
        self.own = self


def old_garbage(collections: int) -> "weakref.ref[Cycle]":
    """Garbage that only a full collection finds, after so many of the middle generation."""
    cycle = Cycle()
    for _ in range(max(collections, 2)):
        gc.collect(1)
    return weakref.ref(cycle)


async def test_what_is_due_is_collected_once_no_call_runs() -> None:
    busy = True
    collector = Collector(lambda: busy)
    collector.begin()
    gc.collect()
    garbage = old_garbage(DUE)
    collector.collect()
    assert garbage() is not None
    busy = False
    collector.call_ended()
    assert garbage() is not None  # the answer goes out first
    with anyio.fail_after(10):
        while garbage() is not None:
            await anyio.sleep(0.001)


async def test_nothing_is_collected_that_is_not_due() -> None:
    collector = Collector(lambda: False)
    collector.begin()
    gc.collect()
    garbage = old_garbage(DUE - 1)
    collector.collect()
    assert garbage() is not None


async def test_what_is_overdue_is_collected_beside_calls() -> None:
    collector = Collector(lambda: True)
    collector.begin()
    gc.collect()
    garbage = old_garbage(OVERDUE)
    collector.collect()
    assert garbage() is None


async def test_what_is_left_alone_is_collected_when_much_of_it_has_ended_and_no_call_runs() -> None:
    busy = True
    collector = Collector(lambda: busy)
    cycle = Cycle()
    collector.begin()
    garbage = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert garbage() is not None
    collector.much_ended()
    collector.collect()
    assert garbage() is not None
    busy = False
    collector.collect()
    assert garbage() is None
    assert gc.get_freeze_count(), "the rest is left alone again"
