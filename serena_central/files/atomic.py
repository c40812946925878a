"""Writes a small file whole or not at all: a temporary file beside it, synced, renamed over it."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from serena_central.core.nofollow import NEW, OpenFolder


def write_whole(path: Path, data: bytes) -> None:
    """Makes `path` hold exactly `data`; readers see the old file or the new one. Folders on the way are made, and may
    be symlinks: this is for files of our own.

    Raises: OSError, and then `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with OpenFolder.at(os.path.realpath(path.parent)) as folder:
        write_in(folder, path.name, data)


def write_in(folder: OpenFolder, name: str, data: bytes) -> None:
    """As `write_whole`, in a folder that is held open."""
    fresh = f".{name[:40]}.{secrets.token_hex(4)}.tmp"
    descriptor = folder.open(fresh, NEW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _mode(folder, name))
        folder.rename(fresh, folder, name)
    except BaseException:
        with suppress(FileNotFoundError):
            folder.unlink(fresh)
        raise


def _mode(folder: OpenFolder, name: str) -> int:
    """The mode of the file that is there; else what this user's new files have."""
    with suppress(FileNotFoundError):
        mode = folder.status(name).st_mode
        if stat.S_ISREG(mode):
            return mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
