"""Temporary folders for children (their TMPDIR): private, one each, gone when they are.

A folder is locked while it is in use: the supervisor and what it starts inherit the lock's descriptor. So whatever
process was killed, an unlocked folder is unused, and `sweep` never removes one that is in use.
"""

import logging
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from serena_central.processes.supervisor import remove_tree
from serena_central.standalone.lock import lock_at_once
from serena_central.standalone.private import OTHERS

logger = logging.getLogger(__name__)

PREFIX = "t-"

MAX_PATH_BYTES = 64
"""Of a folder in which sockets may be made: their paths end at 108 bytes, and .NET's names alone have 44."""

_NAME_BYTES = len(PREFIX) + 9  # what mkdtemp adds, and the slash

VARIABLES = ("TMPDIR", "TMP", "TEMP")


class Scratch(NamedTuple):
    """A folder, and the descriptor that locks it."""

    folder: Path
    lock: int

    @property
    def environment(self) -> dict[str, str]:
        return dict.fromkeys(VARIABLES, str(self.folder))

    def unlock(self) -> None:
        os.close(self.lock)

    def remove(self) -> None:
        """Whatever can be removed; what can't be is for the next sweep. Blocks."""
        if self.folder.exists():
            remove_tree(str(self.folder))


def make(base: Path) -> Scratch | None:
    """A new folder below `base`, or where paths are shorter if that is needed; None where none can be had."""
    for place in _places(base):
        with suppress(OSError):
            _make_private(place)
            return _locked_folder(place)
    logger.warning("no private temporary folder can be made in %s; what runs uses the shared one", base)
    return None


@contextmanager
def borrowed(base: Path) -> Generator[Path]:
    """An empty folder while the block runs.

    Raises:
        OSError
    """
    scratch = make(base)
    if scratch is None:
        raise OSError(f"no temporary folder can be made in {base}")
    try:
        yield scratch.folder
    finally:
        scratch.remove()
        scratch.unlock()


def sweep(base: Path) -> int:
    """Removes unused folders and returns their number. Blocks for as long as the removal takes."""
    swept = 0
    for place in dict.fromkeys(_places(base)):
        with suppress(OSError):
            if place.lstat().st_uid == os.geteuid():
                swept += sum(map(_take, place.glob(f"{PREFIX}*")))
    return swept


def _places(base: Path) -> Iterator[Path]:
    if os.name != "posix":
        return
    if len(os.fsencode(base)) + _NAME_BYTES <= MAX_PATH_BYTES:
        yield base
    yield Path(tempfile.gettempdir()) / f"serena-central-{os.geteuid()}"
    yield base


def _make_private(place: Path) -> None:
    """Raises: OSError when it is not ours alone; anybody may have made one of its name in the shared folder."""
    place.mkdir(mode=0o700, exist_ok=True)  # no parents: whoever looks at a machine makes no home on it
    status = place.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & OTHERS or not place.is_dir() or place.is_symlink():
        raise PermissionError(f"{place} is not this user's alone")


def _locked_folder(place: Path) -> Scratch:
    """Raises: OSError, also where the file system knows no such locks."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # a sweep was quicker than the lock
        try:
            if lock_at_once(lock) and folder.exists():
                return Scratch(folder, lock)
        except OSError:
            os.close(lock)
            folder.rmdir()
            raise
        os.close(lock)


def _take(folder: Path) -> bool:
    """Removes a folder unless it is locked."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not lock_at_once(lock):
            return False
        remove_tree(str(folder))
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
