"""Long loops in the event loop's thread: whoever waits for something else gets a turn now and then."""

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import anyio.lowlevel

T = TypeVar("T")


async def paced(items: Iterable[T], at_once: int) -> AsyncIterator[T]:
    """All items, with a turn for others after so many. Pass a copy of what may change meanwhile."""
    for number, item in enumerate(items, 1):
        if number % at_once == 0:
            await anyio.lowlevel.checkpoint()
        yield item
