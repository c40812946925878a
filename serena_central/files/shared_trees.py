"""File trees that several users share: one per folder, as long as anybody follows it.

It owns the tasks of the trees. What the files mean to those who follow is theirs to know.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from serena_central.files.left_out import IsRead
from serena_central.files.path_watch import PathWatch
from serena_central.files.tree import FileTree, Listener
from serena_central.files.watch import Watches

logger = logging.getLogger(__name__)


class _Shared:
    """A tree while it is followed. `scanned` is set when its files are known, or can't be."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.scanned = anyio.Event()
        self.scope = anyio.CancelScope()
        self.followers = 0


class Following:
    """One follower's hold on a folder. `tree` is None where its files can't be read."""

    def __init__(self, tree: FileTree | None, end: Callable[[], None]) -> None:
        self.tree = tree
        self.end = end


class SharedTrees:
    """Belongs to the event loop's thread."""

    def __init__(self, watches: Watches, path_watch: PathWatch | None = None, is_read: IsRead | None = None) -> None:
        """`path_watch` and `is_read` as for `FileTree`."""
        self._is_read = is_read
        self._watches = watches
        self._path_watch = path_watch
        self._shared: dict[Path, _Shared] = {}
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the trees until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    async def follow(self, folder: Path, listener: Listener) -> Following:
        """Returns when the folder's files are known; `listener` is called for every later change, of files too that are
        left out."""
        assert self._tasks is not None, "it runs before anybody follows"
        shared = self._shared.get(folder)
        if shared is None:
            # No await between get and set: single flight.
            shared = self._shared[folder] = _Shared(
                FileTree(folder, self._watches, path_watch=self._path_watch, is_read=self._is_read)
            )
            self._tasks.start_soon(self._hold, folder, shared)
        shared.followers += 1
        unsubscribe = [shared.tree.subscribe(listener), shared.tree.subscribe(listener, for_servers=True)]
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                for one in unsubscribe:
                    one()
                self._leave(folder, shared)

        try:
            await shared.scanned.wait()
        except BaseException:
            end()
            raise
        return Following(shared.tree if self._shared.get(folder) is shared else None, end)

    def _leave(self, folder: Path, shared: _Shared) -> None:
        shared.followers -= 1
        if not shared.followers:
            if self._shared.get(folder) is shared:
                del self._shared[folder]
            shared.scope.cancel()

    async def _hold(self, folder: Path, shared: _Shared) -> None:
        try:
            with shared.scope:
                async with anyio.create_task_group() as tasks:
                    await tasks.start(shared.tree.run)
                    shared.scanned.set()
        except Exception:
            logger.exception("%s is no longer watched", folder)
        finally:
            if self._shared.get(folder) is shared:
                del self._shared[folder]
            shared.scanned.set()
