"""Bounds waits for child processes by what they do, so that none fails because the machine is slow."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import psutil

IDLE_S = 60.0
"""Who has hardly computed for so long will not answer any more."""

LEAST_SHARE = 0.01
"""Of that time; a server that only waits uses less."""


@asynccontextmanager
async def while_children_work(idle_s: float = IDLE_S) -> AsyncGenerator[None]:
    """Runs the block for as long as the processes below this one use CPU time.

    Raises:
        TimeoutError: they have used hardly any for `idle_s`, and the block has not ended.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_idle, idle_s, tasks.cancel_scope)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below: a task group would wrap it
            failure = error
        else:
            failure = _Ended()
        tasks.cancel_scope.cancel()
    if failure is None:
        raise TimeoutError(f"the processes below this one have computed next to nothing for {idle_s:.0f} s")
    if not isinstance(failure, _Ended):
        raise failure


class _Ended(Exception):
    """The block came to its end."""


async def _until_idle(idle_s: float, scope: anyio.CancelScope) -> None:
    used = _cpu_s()
    while True:
        await anyio.sleep(idle_s)
        before, used = used, _cpu_s()
        if abs(used - before) < idle_s * LEAST_SHARE:
            scope.cancel()


def _cpu_s() -> float:
    """CPU seconds of all processes below this one, those that have ended included."""
    own = psutil.Process()
    total = own.cpu_times().children_user + own.cpu_times().children_system
    for child in own.children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            total += times.user + times.system
    return total
