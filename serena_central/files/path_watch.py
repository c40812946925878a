"""Keeps what was made of some files until one of them may have changed: a flag instead of a stat for each.

Settings lie in many places, most of which are empty: their stats would be most of what a cheap call costs. On Linux the
folders on the way to each file are watched, by name. The kernel queues an event before the writer's system call
returns, so that a queue which was read until it is empty has told of everything before (see `inotify`). Elsewhere, and
where a watch does not hear everything (other machines' file systems, hard links, no watches left), nothing is kept.
"""

import logging
import os
import select
import stat
import struct
import sys
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskStatus

from serena_central.core.lru import Lru
from serena_central.files.mounts import REMOTE, remote_file_system

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_KEPT = 4000
"""Values; a root has three."""

MOST_FOLDERS = 10_000
"""Watched at a time; then all are given up and watched again as they are asked for."""

MOST_LINKS = 40
"""Symlinks on the way to one file, as for the kernel."""

READ_BYTES = 65_536
"""Of the queue at a time. Where more waits, such as after hours in a busy folder, all of it counts as a change."""

ANY_NAME = ""

_EVENT = struct.Struct("iIII")
_APPEARS, _CHANGES = 0x2C0 | 0x100, 0x2 | 0x4
"""IN_MOVED_FROM, IN_MOVED_TO, IN_DELETE and IN_CREATE; IN_MODIFY and IN_ATTRIB (inotify(7))."""
_MASK_ADD, _ONLYDIR, _OVERFLOW, _IGNORED = 0x2000_0000, 0x0100_0000, 0x4000, 0x8000


class _Kept:
    """A value, or one that is being made. `stale`: a file may have changed since its making began."""

    __slots__ = ("made", "stale", "value")

    def __init__(self) -> None:
        self.made = self.stale = False
        self.value: Any = None


class PathWatch:
    """Of one thread at a time."""

    def __init__(self, *, watches: bool = sys.platform == "linux") -> None:
        """Without `watches` nothing is kept."""
        self._watches = watches
        self._queue: Any = None  # inotify_simple has no types of its own
        self._descriptor = -1
        self._poll: Callable[[int], list[tuple[int, int]]] = lambda _timeout: []
        """Tells of events in the queue; called with the milliseconds to wait for one."""
        self._kept: Lru[Hashable, _Kept] = Lru(MOST_KEPT)
        self._interested: dict[int, dict[str, set[Hashable]]] = {}
        """The kernel's number of a folder → name in it, or any → keys of values."""

    def get(self, key: Hashable, paths: Callable[[], Iterable[str]], make: Callable[[], T]) -> T:
        """The value of a key: what `make` returned, as long as nothing has happened to the files at `paths` (absolute;
        they need not be there; one that ends in `/` means all that lies right in a folder)."""
        if not self._watches:
            return make()
        self._hear()
        kept = self._kept.get(key)
        if kept is not None and kept.made and not kept.stale:
            return kept.value
        kept = _Kept()
        # Before it is made: a change in between is heard of.
        if not self._follow(key, paths()):
            self._kept.discard(key)
            return make()
        self._kept[key] = kept
        kept.value = make()
        kept.made = True
        return kept.value

    def kept(self, key: Hashable) -> Any:
        """What `get` would return without making it; None where it would have to. Looks at no file."""
        self._hear()
        kept = self._kept.get(key)
        return kept.value if kept is not None and kept.made and not kept.stale else None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Holds the queue until it is cancelled; nothing is kept after that."""
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            self.close()

    def close(self) -> None:
        self._watches = False
        self._give_up()

    # --- hearing -------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Reads the queue until it is empty."""
        if self._descriptor < 0 or not self._poll(0):  # a third of the time of a read that finds nothing
            return
        try:
            events = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if len(events) > READ_BYTES // 2:
            self._give_up()
            return
        at = 0
        while at < len(events):
            folder, mask, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            name = events[at : at + length].rstrip(b"\0")
            at += length
            if mask & _OVERFLOW:
                self._give_up()
                return
            names = self._interested.get(folder, {})
            if mask & _IGNORED:
                for keys in self._interested.pop(folder, {}).values():
                    self._mark(keys)
                continue
            self._mark(names.get(os.fsdecode(name), ()))
            self._mark(names.get(ANY_NAME, ()))

    def _mark(self, keys: Iterable[Hashable]) -> None:
        for key in keys:
            kept = self._kept.get(key)
            if kept is not None:
                kept.stale = True

    def _give_up(self) -> None:
        """Everything may have changed, also what is being made."""
        self._kept = Lru(MOST_KEPT)
        self._interested.clear()
        if self._queue is not None:
            self._queue.close()
            self._queue, self._descriptor = None, -1

    # --- following -----------------------------------------------------------------------------------------------

    def _follow(self, key: Hashable, paths: Iterable[str]) -> bool:
        """Watches every folder on the way to some files; whether all that happens to them is heard of."""
        try:
            self._open()
            way = _Way(self._add, key)
            return all(way.follow(path) for path in paths) and remote_file_system(way.folders) is None
        except OSError as error:
            logger.info("settings are looked at by stat: %s", error)
            return False

    def _open(self) -> None:
        if len(self._interested) > MOST_FOLDERS:
            self._give_up()
        if self._queue is None:
            from inotify_simple import INotify  # late: there is no such module elsewhere

            self._queue = INotify(nonblocking=True)
            self._descriptor = self._queue.fileno()
            if sys.platform == "linux":
                poll = select.poll()
                poll.register(self._descriptor, select.POLLIN)
                self._poll = poll.poll

    def _add(self, folder: str, name: str, key: Hashable, *, last: bool) -> None:
        """Hears of a name in a folder: that it comes or goes and, if it is a path's `last` one, that it changes."""
        mask = _APPEARS | _ONLYDIR | _MASK_ADD | (_CHANGES if last else 0)
        number = self._queue.add_watch(folder, mask)
        self._interested.setdefault(number, {}).setdefault(name, set()).add(key)


class _Way:
    """The folders on the way to files, watched once for each name."""

    def __init__(self, add: Callable[..., None], key: Hashable) -> None:
        self._add = add
        self._key = key
        self._seen: set[tuple[str, str, bool]] = set()
        self.folders: set[str] = set()

    def follow(self, path: str) -> bool:
        """False for a file whose changes may not be heard of.

        Raises:
            OSError: where nothing can be watched.
        """
        parts, folder, links = _parts(path), "/", 0
        while parts:
            name = parts.pop(0)
            if name == "..":
                folder = os.path.dirname(folder)  # noqa: PTH120 - strings
                continue
            self._hear_of(folder, name, last=not parts)
            inside = f"{folder.rstrip('/')}/{name}"
            if inside in REMOTE.points():
                return False
            try:
                status = os.lstat(inside)
            except OSError as error:
                return not isinstance(error, PermissionError)  # to be allowed again is no change of a name
            if not stat.S_ISLNK(status.st_mode):
                if not parts:
                    return self._arrive(inside, status, whole=path.endswith("/"))
                folder = inside
            elif links < MOST_LINKS:
                links += 1
                target = os.readlink(inside)  # noqa: PTH115 - strings
                parts = _parts(target) + parts
                folder = "/" if target.startswith("/") else folder
            else:
                return True  # it can't be opened either
        return True

    def _arrive(self, path: str, status: os.stat_result, *, whole: bool) -> bool:
        """At what is there: a file, or a folder of which the `whole` content is meant."""
        if whole and stat.S_ISDIR(status.st_mode):
            self._hear_of(path, ANY_NAME, last=True)
        return stat.S_ISDIR(status.st_mode) or status.st_nlink == 1

    def _hear_of(self, folder: str, name: str, *, last: bool) -> None:
        if (folder, name, last) not in self._seen:
            try:
                self._add(folder, name, self._key, last=last)
            except (FileNotFoundError, NotADirectoryError):  # gone since, or a file: its folder is watched
                return
            except PermissionError:
                if last or os.access(folder, os.W_OK):
                    raise
                return  # such as /home: this user can't rename what lies in it
            self._seen.add((folder, name, last))
            self.folders.add(folder)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
