"""Hands out watches on roots, and says why a root may have none.

The watches themselves are the operating system's: `inotify` on Linux, none elsewhere. All watches of a process share
one of its queues, because a user has only 128 of them for everything that runs, and a super-repo alone may have that
many modules.
"""

import sys
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from serena_central.files.mounts import remote_file_system
from serena_central.files.notification import Queue, Watch, WatchUnavailable

STEP_S = 0.05
"""How long changes are collected before they are published, in seconds; a call reads them at once. The kernel's queue
holds 16,384 events, which a checkout takes longer to fill; and a file that is written to all the time costs 20 looks
per second."""


class Watches:
    """All watches of this process. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._queue: Queue | None = None
        self._opened = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Wakes the watches that have something to read, until cancelled. There must be one who does."""
        task_status.started()
        try:
            await self._opened.wait()
            while self._queue is not None:
                await anyio.wait_readable(self._queue.fileno())
                self._queue.hand_out()
                await anyio.sleep(STEP_S)
        finally:
            if self._queue is not None:
                self._queue.close()

    def open(self, root: Path) -> Watch:
        """A watch for a root that has none yet.

        Raises:
            WatchUnavailable
        """
        if sys.platform != "linux":
            raise WatchUnavailable("this system is not Linux")
        kind = remote_file_system([str(root)])
        if kind is not None:
            raise WatchUnavailable(
                f"{root} is on a file system ({kind}) that does not report changes by other machines"
            )
        from serena_central.files.inotify import Inotify  # late: there is no such module elsewhere

        if self._queue is None:
            self._queue = Inotify()
            self._opened.set()
        return self._queue.watch()
