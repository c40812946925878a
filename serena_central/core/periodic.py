"""Periodic work and event-driven work: failures are logged, and the next round runs.

Both run as tasks of their own: one that ended would end the whole server, or leave it without its part.
"""

import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TypeVar

import anyio

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def repeat(what: str, work: Callable[[], Awaitable[None] | None], *, every_s: float) -> None:
    """Does `work` for ever: first after `every_s`, then that long after it was done. The log says `what` failed."""
    while True:
        await anyio.sleep(every_s)
        try:
            doing = work()
            if doing is not None:
                await doing
        except Exception:
            logger.exception("%s failed; retrying in %g s", what, every_s)


async def follow(what: str, news: AsyncIterable[T], take: Callable[[T], None]) -> None:
    """Gives each piece of news to `take`, until there are no more."""
    async for item in news:
        try:
            take(item)
        except Exception:
            logger.exception("%s failed on %.200r", what, item)
