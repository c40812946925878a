"""Watching folders on Linux, by inotify.

The kernel queues an event before the system call that caused it returns. So reading the queue
until it is empty returns everything that other processes did before; a barrier needs no cookie file. Not reported:
writes through a hard link elsewhere, and those through a memory map before it is closed. Can be imported on Linux only;
knows neither rules nor files.

An instance knows a folder by one number, also when several roots that lie in each other watch it.
"""

import errno
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, cast

import anyio
from inotify_simple import INotify, flags

from serena_central.files.notification import Heard, WatchUnavailable
from serena_central.files.walk import Folder

_MASK = (
    flags.CREATE
    | flags.MODIFY  # not only CLOSE_WRITE: a program may write and keep the file open
    | flags.CLOSE_WRITE  # also of a memory map, through which it wrote after all
    | flags.ATTRIB  # stamps hold ctime and mtime
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.DELETE
    | flags.ONLYDIR
    | flags.DONT_FOLLOW
    | flags.EXCL_UNLINK
)
_ROOT_MASK = _MASK & ~flags.DONT_FOLLOW
_LEFT_OUT_MASK = _MASK & ~(flags.MODIFY | flags.ATTRIB)
"""Builds write much there, and close it."""

_OUT_OF_RESOURCES = {
    errno.ENOSPC: "the limit of inotify watches is reached, see fs.inotify.max_user_watches",
    errno.EMFILE: "the limit of inotify instances is reached, see fs.inotify.max_user_instances",
    errno.ENFILE: "the system is out of file descriptors",
    errno.ENOMEM: "the kernel is out of memory for watches",
    errno.ENOSYS: "the kernel does not support inotify",
}


class _Event(Protocol):
    """An event of inotify_simple, which has no types of its own."""

    wd: int
    mask: int
    name: str


class _Instance(Protocol):
    """What is used of `inotify_simple.INotify`."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...
    def add_watch(self, path: str, mask: int) -> int: ...
    def rm_watch(self, wd: int) -> None: ...
    def read(self, timeout: int) -> Sequence[_Event]: ...


MOST_UNREAD = 65_536
"""Events that are kept for a watch; of more only that they were is known, and its root is looked at as a whole."""


class Inotify:
    """A `Queue`: one inotify instance. Folders come and go in any thread, events are handed out in the event loop's."""

    def __init__(self) -> None:
        """Raises WatchUnavailable."""
        try:
            self._instance = cast("_Instance", INotify(nonblocking=True))
        except OSError as error:
            raise _unavailable(error) from error
        self._watches: set[InotifyWatch] = set()
        self._watching: dict[int, list[InotifyWatch]] = {}
        self._lock = threading.Lock()
        """A folder's number is known to the kernel before it is known here."""
        self._closed = False

    def fileno(self) -> int:
        return self._instance.fileno()

    def watch(self) -> "InotifyWatch":
        watch = InotifyWatch(self)
        with self._lock:
            self._watches.add(watch)
        return watch

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._watching.clear()
            self._watches.clear()
            self._instance.close()

    def hand_out(self) -> None:
        with self._lock:
            if self._closed:
                return
            for event in self._instance.read(timeout=0):
                if event.mask & flags.Q_OVERFLOW:
                    for watch in self._watches:
                        watch.lose()
                elif event.mask & flags.IGNORED:
                    for watch in self._watching.pop(event.wd, ()):
                        watch.folders.pop(event.wd).watch_id = -1
                elif event.name:
                    is_folder = bool(event.mask & flags.ISDIR)
                    moved_away = is_folder and bool(event.mask & (flags.MOVED_FROM | flags.DELETE))
                    for watch in self._watching.get(event.wd, ()):
                        folder = watch.folders[event.wd]
                        if is_folder or folder.heeds is None or folder.heeds(event.name):
                            watch.hear(Heard(folder, event.name, is_folder, moved_away))

    def add(self, watch: "InotifyWatch", folder: Folder, path: str) -> str | None:
        with self._lock:
            if self._closed:
                return None
            try:
                mask = _LEFT_OUT_MASK if folder.left_out else _MASK if folder.path else _ROOT_MASK
                number = self._instance.add_watch(path, mask | flags.MASK_ADD)  # others may watch it, too
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    raise _unavailable(error) from error
                raise
            known = watch.folders.get(number)
            if known is None:
                self._remove(watch, folder)
                self._watching.setdefault(number, []).append(watch)
                watch.folders[number] = folder
                folder.watch_id = number
            return known.path if known is not None and known is not folder else None

    def remove(self, watch: "InotifyWatch", folder: Folder) -> None:
        with self._lock:
            self._remove(watch, folder)

    def end(self, watch: "InotifyWatch") -> None:
        with self._lock:
            self._watches.discard(watch)
            folders = list(watch.folders.values())
        for folder in folders:
            self.remove(watch, folder)  # in turns with others: there may be many

    def _remove(self, watch: "InotifyWatch", folder: Folder) -> None:
        number, folder.watch_id = folder.watch_id, -1
        if watch.folders.pop(number, None) is None:
            return
        watching = self._watching.get(number, [])
        if watch in watching:
            watching.remove(watch)
            if not watching:
                del self._watching[number]
                with suppress(OSError):  # the kernel was quicker: the folder is gone
                    self._instance.rm_watch(number)


class InotifyWatch:
    """A `Watch`: the folders of one root by the instance's numbers, and what was heard of them and not read yet."""

    def __init__(self, inotify: Inotify) -> None:
        self.folders: dict[int, Folder] = {}
        self._inotify = inotify
        self._unread: list[Heard] | None = []
        self._news = anyio.Event()

    def add(self, folder: Folder, path: str) -> str | None:
        return self._inotify.add(self, folder, path)

    def remove(self, folder: Folder) -> None:
        self._inotify.remove(self, folder)

    def close(self) -> None:
        self._inotify.end(self)

    async def heard(self) -> None:
        await self._news.wait()

    def is_read(self) -> bool:
        self._inotify.hand_out()
        return self._unread is not None and not self._unread

    def read(self) -> list[Heard] | None:
        self._inotify.hand_out()
        unread, self._unread = self._unread, []
        if self._news.is_set():
            self._news = anyio.Event()
        return unread

    def hear(self, event: Heard) -> None:
        if self._unread is not None and len(self._unread) < MOST_UNREAD:
            self._unread.append(event)
            self._news.set()
        else:
            self.lose()

    def lose(self) -> None:
        """Events were lost, or there were too many."""
        self._unread = None
        self._news.set()


def _unavailable(error: OSError) -> WatchUnavailable:
    return WatchUnavailable(_OUT_OF_RESOURCES.get(error.errno or 0, str(error)))
