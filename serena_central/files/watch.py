"""Hearing of changes in a root: what a watch has to offer, how a survey follows it, and why there may be none.

The watch itself is the operating system's: `inotify` on Linux, none elsewhere.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from serena_central.files.walk import Folder, FolderWatch, Survey

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

    def fileno(self) -> int:
        """Readable when something was heard."""
        ...

    def read(self) -> list[Heard] | None:
        """Everything heard until now, in order; None when some of it was lost and everything has to be looked at.
        Never waits."""
        ...

    def close(self) -> None: ...


def open_watch(root: Path) -> Watch:
    """A watch for a root that has none yet. Raises WatchUnavailable."""
    if sys.platform != "linux":
        raise WatchUnavailable("this system is not Linux")
    kind = _file_system(root)
    if kind in _REMOTE or kind.startswith("fuse"):
        raise WatchUnavailable(f"{root} is on a file system ({kind}) that does not tell what others change")
    from serena_central.files.inotify import Inotify  # late: there is no such module elsewhere

    return Inotify()


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
