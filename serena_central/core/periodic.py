"""Periodic work, event-driven work and work in the background: failures are logged, and the next round runs.

All run as tasks of their own: one that failed would end the whole server, or leave it without its part.
"""

import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TypeVar

import anyio

from serena_central.core.rest import RESTING_S, rest

logger = logging.getLogger(__name__)

T = TypeVar("T")

GRIDS_S = (RESTING_S, 5.0, 0.5)
"""Periodic work comes at multiples of the first of these that is no longer than its interval, by the event loop's
clock: an idle server wakes up once for all that is due then, which costs more than most of the work."""


def aligned(after_s: float, now: float | None = None) -> float:
    """The delay in seconds, nearest to `after_s`, that ends on the grid; `after_s` itself where that is shorter. `now`
    is the event loop's time: anyio does not know it in a callback of a loop that it did not start."""
    for grid_s in GRIDS_S:
        if after_s >= grid_s:
            now = anyio.current_time() if now is None else now
            return round((now + after_s) / grid_s) * grid_s - now
    return after_s


async def repeat(
    what: str, work: Callable[[], Awaitable[None] | None], *, every_s: float | Callable[[], float]
) -> None:
    """Does `work` for ever: first after `every_s`, which a function may tell each time, then that long after it was
    done, on the grid; less often while the process rests. The log says `what` failed."""
    while True:
        after_s = every_s() if callable(every_s) else every_s
        await _sleep(after_s)
        try:
            doing = work()
            if doing is not None:
                await doing
        except Exception:
            logger.exception("%s failed; retrying in %g s", what, after_s)


async def _sleep(after_s: float) -> None:
    """On the grid; while the process rests until RESTING_S are over, or soon after something happens: it is due."""
    if after_s < RESTING_S and rest.is_resting:
        stirred = anyio.Event()
        with rest.waking(stirred.set), anyio.move_on_after(aligned(RESTING_S)):
            await stirred.wait()
        if not stirred.is_set():
            return
        after_s = min(after_s, GRIDS_S[-1])
    await anyio.sleep(aligned(after_s))


async def follow(what: str, news: AsyncIterable[T], take: Callable[[T], Awaitable[None] | None]) -> None:
    """Gives each piece of news to `take`, until there are no more."""
    async for item in news:
        try:
            taking = take(item)
            if taking is not None:
                await taking
        except Exception:
            logger.exception("%s failed on %.200r", what, item)


async def contained(what: str, work: Callable[[], Awaitable[object]]) -> None:
    """Does `work` once, in a task of a group that outlives it: its failure is logged, and ends nothing beside it."""
    try:
        await work()
    except Exception:
        logger.exception("%s failed", what)
