"""One file of an operation: what is to become of it, what has, and the way there and back.

Blocks; called in worker threads. Which steps belong together, and in what order they go, is `apply`'s business; their
folders are held open by whoever calls.
"""

import errno
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from serena_central.core.errors import FileChanged, PathNotFound, PathRefused
from serena_central.editing.disk import Disk
from serena_central.editing.folders import Folders, Place
from serena_central.editing.journal import Step
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, digest_of, read_bytes

_NO_SECOND_NAMES = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""


def check(folders: Folders, step: Step) -> Stamp | None:
    """The stamp of the file as it is now, None for one that is to be made.

    Raises FileChanged if it is not what was planned on, PathError if it can't be replaced.
    """
    place = folders.find(step.path)
    status = place.status() if place is not None else None
    if step.old is None and status is None:
        return None
    if place is None or status is None or step.old is None or stat.S_ISLNK(status.st_mode):
        raise FileChanged(step.path)
    try:
        data, stamp = read_bytes(step.path, opener=place.open)
    except PathNotFound as error:
        raise FileChanged(step.path) from error
    if digest_of(data) != step.old:
        raise FileChanged(step.path)
    place.check_writable()
    return stamp


def check_unchanged(folders: Folders, step: Step, stamp: Stamp | None) -> None:
    """The last look before a rename: the same file, in the same folder, at the same path. Its ctime may differ: the
    second name changed that."""
    place = folders.place(step.path)
    now = place.stamp()
    same = (now and replace(now, ctime_ns=0)) == (stamp and replace(stamp, ctime_ns=0))
    if not same or not place.folder.is_at_its_path():
        raise FileChanged(step.path)


def commit(disk: Disk, folders: Folders, step: Step) -> None:
    place = folders.place(step.path)
    if step.fresh is None:
        disk.remove(place)
    elif step.old is not None:
        disk.replace(folders.place(step.fresh), place)
    else:
        _make(disk, folders.place(step.fresh), place)


def _make(disk: Disk, fresh: Place, place: Place) -> None:
    """Gives a new file its name, and never the name of one that somebody made meanwhile."""
    try:
        disk.link(fresh, place)
    except FileExistsError as error:
        raise FileChanged(place.path) from error
    except OSError as error:
        if error.errno not in _NO_SECOND_NAMES:
            raise
        disk.replace(fresh, place)  # a file system without second names
    else:
        disk.remove(fresh)


def keep(disk: Disk, place: Place, kept: Place) -> None:
    try:
        disk.link(place, kept)
    except OSError as error:
        if error.errno not in _NO_SECOND_NAMES:
            raise
        disk.write(kept, read_bytes(place.path, max_bytes=2 * MAX_BYTES, opener=place.open)[0], place)


def is_waiting(folders: Folders, step: Step) -> bool:
    """Whether a step was not made yet, as far as what lies there tells: its new text still stands beside the file."""
    if step.fresh is None:
        return exists(folders, step.path)
    return exists(folders, step.fresh) and state_of(folders, step) != "new"


def may_be_done(folders: Folders, step: Step) -> bool:
    """Whether a step whose file somebody has changed since may have been made before that: what shows that it was not
    is the new text that still stands beside the file that it was to replace."""
    return step.fresh is None or step.old is None or not exists(folders, step.fresh)


def can_go_on(folders: Folders, step: Step) -> bool:
    """Whether a waiting step can be made: nobody changed its file, and its new text is whole."""
    return state_of(folders, step) == "old" and (step.fresh is None or _digest(folders, step.fresh) == step.new)


def take_back(disk: Disk, folders: Folders, step: Step) -> None:
    """Undoes a step that is done."""
    place = folders.place(step.path)
    if step.old is None:
        disk.remove(place)
    elif step.kept is not None:
        disk.replace(folders.place(step.kept), place)


def state_of(folders: Folders, step: Step) -> Literal["old", "new", "other"]:
    """`old`, `new`, or `other` when somebody has changed the file since."""
    found = _digest(folders, step.path)
    return "new" if found == step.new else "old" if found == step.old else "other"


def _digest(folders: Folders, path: str) -> str | None:
    place = folders.find(path)
    if place is None:
        return None
    try:
        return digest_of(read_bytes(path, max_bytes=2 * MAX_BYTES, opener=place.open)[0])
    except PathNotFound:
        return None
    except PathRefused:
        return ""


def exists(folders: Folders, path: str) -> bool:
    place = folders.find(path)
    return place is not None and place.status() is not None


def sweep(folders: Folders, steps: Iterable[Step]) -> None:
    """Removes what stood beside the files."""
    for step in steps:
        for path in (step.fresh, step.kept):
            place = folders.find(path) if path is not None else None
            if place is not None:
                with suppress(FileNotFoundError):
                    place.folder.unlink(place.name)
