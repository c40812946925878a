"""One file of an operation: what is to become of it, what has, and the way there and back.

Blocks; called in worker threads. Which steps belong together, and in what order they go, is `apply`'s business.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from serena_central.core.errors import FileChanged, PathNotFound, PathRefused
from serena_central.editing.disk import Disk, check_writable
from serena_central.editing.journal import Step
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, digest_of, read_bytes

_NO_SECOND_NAMES = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""


def check(step: Step) -> Stamp | None:
    """The stamp of the file as it is now, None for one that is to be made.

    Raises FileChanged if it is not what was planned on, PathError if it can't be replaced.
    """
    path = Path(step.path)
    if os.path.realpath(path) != step.path:
        raise FileChanged(step.path)  # a folder or the file became a symlink meanwhile
    if step.old is None:
        if os.path.lexists(path):
            raise FileChanged(step.path)
        return None
    try:
        data, stamp = read_bytes(path)
    except PathNotFound as error:
        raise FileChanged(step.path) from error
    if digest_of(data) != step.old:
        raise FileChanged(step.path)
    check_writable(path, path.stat())
    return stamp


def check_unchanged(step: Step, stamp: Stamp | None) -> None:
    """The last look before a rename. Its ctime may differ: the second name changed that."""
    now = stamp_of(Path(step.path))
    if (now and replace(now, ctime_ns=0)) != (stamp and replace(stamp, ctime_ns=0)):
        raise FileChanged(step.path)


def stamp_of(path: Path) -> Stamp | None:
    """What lies at a path now; None if nothing does."""
    try:
        return Stamp.of(path.lstat())
    except FileNotFoundError:
        return None


def commit(disk: Disk, step: Step) -> None:
    path = Path(step.path)
    if step.fresh is None:
        disk.remove(path)
    elif step.old is not None:
        disk.replace(Path(step.fresh), path)
    else:
        _make(disk, Path(step.fresh), path)


def _make(disk: Disk, fresh: Path, path: Path) -> None:
    """Gives a new file its name, and never the name of one that somebody made meanwhile."""
    try:
        disk.link(fresh, path)
    except FileExistsError as error:
        raise FileChanged(str(path)) from error
    except OSError as error:
        if error.errno not in _NO_SECOND_NAMES:
            raise
        disk.replace(fresh, path)  # a file system without second names
    else:
        disk.remove(fresh)


def keep(disk: Disk, path: Path, kept: Path) -> None:
    try:
        disk.link(path, kept)
    except OSError as error:
        if error.errno not in _NO_SECOND_NAMES:
            raise
        disk.write(kept, path.read_bytes(), path)


def is_waiting(step: Step) -> bool:
    """Whether a step was not made yet, as far as what lies there tells: its new text still stands beside the file."""
    if step.fresh is None:
        return os.path.lexists(step.path)
    return os.path.lexists(step.fresh) and state_of(step) != "new"


def may_be_done(step: Step) -> bool:
    """Whether a step whose file somebody has changed since may have been made before that: what shows that it was not
    is the new text that still stands beside the file that it was to replace."""
    return step.fresh is None or step.old is None or not os.path.lexists(step.fresh)


def can_go_on(step: Step) -> bool:
    """Whether a waiting step can be made: nobody changed its file, and its new text is whole."""
    return state_of(step) == "old" and (step.fresh is None or _digest(Path(step.fresh)) == step.new)


def take_back(disk: Disk, step: Step) -> None:
    """Undoes a step that is done."""
    path = Path(step.path)
    if step.old is None:
        disk.remove(path)
    elif step.kept is not None:
        disk.replace(Path(step.kept), path)


def state_of(step: Step) -> Literal["old", "new", "other"]:
    """`old`, `new`, or `other` when somebody has changed the file since."""
    found = _digest(Path(step.path))
    return "new" if found == step.new else "old" if found == step.old else "other"


def _digest(path: Path) -> str | None:
    try:
        return digest_of(read_bytes(path, max_bytes=2 * MAX_BYTES)[0])
    except PathNotFound:
        return None
    except PathRefused:
        return ""


def sweep(steps: Iterable[Step]) -> None:
    """Removes what stood beside the files."""
    for step in steps:
        for name in (step.fresh, step.kept):
            if name is not None:
                Path(name).unlink(missing_ok=True)
