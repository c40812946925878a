"""Writes a small file whole or not at all: a temporary file beside it, synced, renamed over it."""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from serena_central.core.nofollow import NEW, OpenFolder
from serena_central.standalone.private import share, user_umask


def _nothing() -> None: ...


def write_whole(path: Path, data: bytes, *, shared: bool = False, check: Callable[[], None] = _nothing) -> None:
    """Makes `path` hold exactly `data`; readers see the old file or the new one. Folders on the way are made, and may
    be symlinks: this is for files of our own.

    The file is the user's alone, unless it is `shared`: then it keeps its mode, and a new one has the user's usual one.
    `check` is called last; where it raises, nothing is changed.

    Raises:
        OSError: `path` is as it was.
    """
    if shared:
        make_folders(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    with OpenFolder.at(os.path.realpath(path.parent)) as folder:
        write_in(folder, path.name, data, shared=shared, check=check)


def write_in(
    folder: OpenFolder, name: str, data: bytes, *, shared: bool = False, check: Callable[[], None] = _nothing
) -> None:
    """As `write_whole`, in a folder that is held open."""
    fresh = f".{name[:40]}.{secrets.token_hex(4)}.tmp"
    descriptor = folder.open(fresh, NEW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if shared:
                os.fchmod(file.fileno(), _mode(folder, name))
        check()
        folder.rename(fresh, folder, name)
    except BaseException:
        with suppress(FileNotFoundError):
            folder.unlink(fresh)
        raise


def make_folders(folder: Path) -> None:
    """Makes a folder and those on the way as the user would make them."""
    for one in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        try:
            one.mkdir()
        except FileExistsError:
            if one.is_dir():
                continue  # somebody was quicker, and it is theirs
            raise
        share(str(one), str(one.parent), 0o777)


def _mode(folder: OpenFolder, name: str) -> int:
    """The mode of the file that is there; else what this user's new files have."""
    with suppress(FileNotFoundError):
        mode = folder.status(name).st_mode
        if stat.S_ISREG(mode):
            return mode & 0o777
    return 0o666 & ~user_umask()
