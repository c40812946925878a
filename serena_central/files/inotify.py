"""Watching folders on Linux, by inotify.

The kernel queues an event before the system call that caused it returns. So whoever has read the queue until it is
empty has heard of everything that other processes did before; a barrier needs no cookie file. Not heard of: writes
through a memory map or a hard link elsewhere. Can be imported on Linux only; knows neither rules nor files.
"""

import errno
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, cast

from inotify_simple import INotify, flags

from serena_central.files.walk import Folder
from serena_central.files.watch import Heard, WatchUnavailable

_MASK = (
    flags.CREATE
    | flags.MODIFY  # not only CLOSE_WRITE: a program may write and keep the file open
    | flags.ATTRIB  # stamps hold ctime and mtime
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.DELETE
    | flags.ONLYDIR
    | flags.DONT_FOLLOW
    | flags.EXCL_UNLINK
)
_ROOT_MASK = _MASK & ~flags.DONT_FOLLOW

_OUT_OF_RESOURCES = {
    errno.ENOSPC: "the limit of inotify watches is reached, see fs.inotify.max_user_watches",
    errno.EMFILE: "the limit of inotify instances is reached, see fs.inotify.max_user_instances",
    errno.ENFILE: "the system has no file descriptors left",
    errno.ENOMEM: "the kernel has no memory left for watches",
    errno.ENOSYS: "the kernel offers no inotify",
}


class _Event(Protocol):
    """An event of inotify_simple, which has no types of its own."""

    wd: int
    mask: int
    name: str


class _Queue(Protocol):
    """What is used of `inotify_simple.INotify`."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...
    def add_watch(self, path: str, mask: int) -> int: ...
    def rm_watch(self, wd: int) -> None: ...
    def read(self, timeout: int) -> Sequence[_Event]: ...


class Inotify:
    """A `Watch`: one inotify instance, and the folders it watches."""

    def __init__(self) -> None:
        """Raises WatchUnavailable."""
        try:
            self._queue = cast("_Queue", INotify(nonblocking=True))
        except OSError as error:
            raise _unavailable(error) from error
        self._folders: dict[int, Folder] = {}

    def fileno(self) -> int:
        return self._queue.fileno()

    def close(self) -> None:
        self._queue.close()

    def add(self, folder: Folder, path: str) -> str | None:
        try:
            watch_id = self._queue.add_watch(path, _MASK if folder.path else _ROOT_MASK)
        except OSError as error:
            if error.errno in _OUT_OF_RESOURCES:
                raise _unavailable(error) from error
            raise
        watched = self._folders.get(watch_id)
        if watched is not None and watched is not folder:
            return watched.path
        if folder.watch_id != watch_id:
            self.remove(folder)
            self._folders[watch_id] = folder
            folder.watch_id = watch_id
        return None

    def remove(self, folder: Folder) -> None:
        if self._folders.pop(folder.watch_id, None) is not None:
            with suppress(OSError):  # the kernel was quicker: the folder is gone
                self._queue.rm_watch(folder.watch_id)
        folder.watch_id = -1

    def read(self) -> list[Heard] | None:
        heard: list[Heard] = []
        for event in self._queue.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                return None
            folder = self._folders.get(event.wd)
            if folder is None:
                continue
            if event.mask & flags.IGNORED:
                self._folders.pop(event.wd).watch_id = -1
            elif event.name:
                is_folder = bool(event.mask & flags.ISDIR)
                moved_away = is_folder and bool(event.mask & (flags.MOVED_FROM | flags.DELETE))
                heard.append(Heard(folder, event.name, is_folder, moved_away))
        return heard


def _unavailable(error: OSError) -> WatchUnavailable:
    return WatchUnavailable(_OUT_OF_RESOURCES.get(error.errno or 0, str(error)))
