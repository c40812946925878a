"""Hearing of changes in a root: what a watch has to offer, how a survey follows it, and why there may be none.

The watches themselves are the operating system's: `inotify` on Linux, none elsewhere. All watches of a process share
one of its queues, because a user has only 128 of them for everything that runs, and a super-repo alone may have that
many modules.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
from anyio.abc import TaskStatus

from serena_central.files.walk import Folder, FolderWatch, Survey

STEP_S = 0.05
"""How long changes are collected before anybody hears of them who does not ask. The kernel's queue holds 16,384 events,
which a checkout takes longer to fill; and a file that is written to all the time costs 20 looks per second."""

_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "afs", "ceph", "glusterfs", "lustre")
"""File systems that others change behind this kernel's back; those in user space (`fuse…`) may, too."""


class WatchUnavailable(Exception):
    """Nothing, or nothing more, can be watched; the message is the reason, for a remark."""


class Heard(NamedTuple):
    """One event: a name in a known folder. `moved_away`: a folder of this name is no longer there as it was."""

    folder: Folder
    name: str
    is_folder: bool
    moved_away: bool


class Watch(FolderWatch, Protocol):
    """`add` raises WatchUnavailable when nothing more can be watched, OSError when the folder is gone or unreadable."""

    async def heard(self) -> None:
        """Returns when there is something to read, some time after it happened."""
        ...

    def read(self) -> list[Heard] | None:
        """Everything that happened before the call, in order; None when some of it was lost and everything has to be
        looked at. Never waits."""
        ...

    def close(self) -> None:
        """Takes some microseconds per folder; may be called in any thread."""
        ...


class Queue(Protocol):
    """Where the system puts what happens in the folders of all watches."""

    def fileno(self) -> int:
        """Readable when something happened."""
        ...

    def watch(self) -> Watch: ...

    def hand_out(self) -> None:
        """Gives every watch its share of what happened until now."""
        ...

    def close(self) -> None:
        """Its watches hear nothing from now on."""
        ...


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
        """A watch for a root that has none yet. Raises WatchUnavailable."""
        if sys.platform != "linux":
            raise WatchUnavailable("this system is not Linux")
        kind = _file_system(root)
        if kind in _REMOTE or kind.startswith("fuse"):
            raise WatchUnavailable(f"{root} is on a file system ({kind}) that does not tell what others change")
        from serena_central.files.inotify import Inotify  # late: there is no such module elsewhere

        if self._queue is None:
            self._queue = Inotify()
            self._opened.set()
        return self._queue.watch()


def follow(survey: Survey, heard: Iterable[Heard]) -> None:
    """Makes the survey look wherever something was heard of, once per entry, at what is there now."""
    entries: dict[tuple[str, str], None] = {}
    for folder, name, _, moved_away in heard:
        if moved_away:
            survey.forget(f"{folder.path}{name}/")
        entries[folder.path, name] = None
    for path, name in entries:
        folder = survey.folders.get(path)
        if folder is not None:
            survey.examine(folder, name)


def _file_system(path: Path) -> str:
    """The type of the file system that holds `path`, empty if that can't be known."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for mount in mounts:
        _, point, found, *_ = mount.split(" ")
        point = point.replace("\\040", " ")
        if (path == Path(point) or Path(point) in path.parents) and len(point) >= len(best):
            best, kind = point, found
    return kind
