"""Paces long loops on the event loop's thread, so that other tasks get a turn."""

import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import anyio.lowlevel

T = TypeVar("T")

SLICE_S = 0.005
"""How long one loop keeps all others waiting."""


class Pace:
    """For items that take microseconds or milliseconds each: a turn for others whenever a slice of time is over."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_S

    async def turn(self) -> bool:
        """Call it for each item. True if other tasks ran meanwhile, so that earlier reads may be outdated."""
        if time.perf_counter() < self._until:
            return False
        await anyio.lowlevel.checkpoint()
        self._until = time.perf_counter() + SLICE_S
        return True


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """All items, with a turn for others between two of them now and then. Pass a copy of what may change meanwhile."""
    until = time.perf_counter() + SLICE_S
    for item in items:
        if time.perf_counter() >= until:
            await anyio.lowlevel.checkpoint()
            until = time.perf_counter() + SLICE_S
        yield item
