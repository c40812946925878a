"""Paces long loops on the event loop's thread, so that other tasks get a turn.

A small call takes a dozen turns of the event loop. Were a long loop to go on after each of them, that call would wait
for a dozen slices; so it goes on when the others have nothing more to do at the moment, or after `TURNS`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

SLICE_S = 0.002
"""How long one loop keeps all others waiting."""

TURNS = 50
"""At most given to others in a row: whoever has work all the time doesn't stop a long loop."""

IDLE_S = 0.00005
"""A turn of the event loop that takes no longer had nothing to do but to ask for input."""


class Pace:
    """For items that take microseconds or milliseconds each: a turn for others whenever a slice of time is over."""

    paced_s = 0.0
    """Spent by all long loops together: what one of them does is no reason for another one to wait."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def due(self) -> float:
        """When the slice is over, by time.perf_counter()."""
        return self._began + SLICE_S

    async def turn(self) -> bool:
        """Call it for each item. True if other tasks may have run meanwhile, so that earlier reads may be outdated."""
        now = time.perf_counter()
        if now < self.due:
            return False
        Pace.paced_s += now - self._began
        await _others_are_through()
        self._began = time.perf_counter()
        return True


async def _others_are_through() -> None:
    """Returns when other tasks have nothing to do at the moment, or have had `TURNS`.

    The event loop calls a function at each of its turns: were it the waiting task instead, that would take more time
    than many a turn.
    """
    through: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    _look_after_a_turn(through, TURNS - 1)
    await through


def _look_after_a_turn(through: "asyncio.Future[None]", turns_left: int) -> None:
    asyncio.get_running_loop().call_soon(_look, through, turns_left, time.perf_counter(), Pace.paced_s)


def _look(through: "asyncio.Future[None]", turns_left: int, before: float, paced_before: float) -> None:
    """Ends the wait, if the turn since `before` had nothing to do, or was the last."""
    if through.done():  # the task was cancelled
        return
    if not turns_left or time.perf_counter() - before - (Pace.paced_s - paced_before) < IDLE_S:
        through.set_result(None)
    else:
        _look_after_a_turn(through, turns_left - 1)


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """All items, with a turn for others between two of them now and then. Pass a copy of what may change meanwhile."""
    pace = Pace()
    due = pace.due
    for item in items:
        if time.perf_counter() >= due:
            await pace.turn()
            due = pace.due
        yield item
