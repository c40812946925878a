"""The lifespan of the server: starts its parts from the bottom up and stops them from the top down.

Each part finds its dependencies running, and events published during shutdown are still recorded.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from serena_central.core.groups import only_cause

logger = logging.getLogger(__name__)

Run = Callable[..., Coroutine[Any, Any, None]]
"""A part's `run`: takes `task_status`, and runs until it is cancelled."""


@asynccontextmanager
async def running_all(failed: Callable[[BaseException], None], runs: Iterable[Run]) -> AsyncGenerator[None]:
    """Starts each part when the one before it has reported that it runs, and ends them in reverse order.

    A part that fails ends them all, since a server that answers without one of its parts would answer wrongly;
    `failed` is called with the cause.
    """
    try:
        async with AsyncExitStack() as stack:
            for run in runs:
                await stack.enter_async_context(_running(run))
            yield
    except Exception as error:
        # Each part wraps what failed in a group of its own, too deep for Python to print what is inside.
        cause = only_cause(error)
        logger.error("A part of the server failed, and so the server stops", exc_info=cause)
        failed(cause)
        raise


@asynccontextmanager
async def _running(run: Run) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        yield
        tasks.cancel_scope.cancel()
