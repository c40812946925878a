"""When a new server has time for what its first answers do not need, such as the import of large libraries.

Whoever needs one of those earlier does not wait for this.
"""

from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

QUIET_S = 0.5
"""A start is over when no call has run for this long: clients make their first calls right after each other."""

LONGEST_S = 5.0
"""It is over after this, whatever runs: what waits for it is written to the disk then, at the latest."""

LOOK_EVERY_S = 0.05


class StartUp:
    """Belongs to the event loop's thread. `is_busy` tells whether calls are running; it is set before `run`."""

    def __init__(self) -> None:
        self.is_busy: Callable[[], bool] = _never
        self._over = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Waits for the end of the start, and ends."""
        task_status.started()
        quiet_since = anyio.current_time()
        with anyio.move_on_after(LONGEST_S):
            while anyio.current_time() - quiet_since < QUIET_S:
                await anyio.sleep(LOOK_EVERY_S)
                if self.is_busy():
                    quiet_since = anyio.current_time()
        self._over.set()

    async def over(self) -> None:
        """Returns when the start is over."""
        await self._over.wait()


def _never() -> bool:
    return False
