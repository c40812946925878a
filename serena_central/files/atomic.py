"""Writes a small file whole or not at all: a temporary file beside it, synced, renamed over it."""

import os
import tempfile
from pathlib import Path

from serena_central.island.private import share, user_umask


def write_whole(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Makes `path` hold exactly `data`; readers see the old file or the new one. Folders on the way are made.

    The file is the user's alone, unless it is `shared`: then it keeps its mode, and a new one has the user's usual one.

    Raises: OSError, and then `path` is as it was.
    """
    if shared:
        make_folders(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if shared:
                os.fchmod(file.fileno(), _mode(path))
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def make_folders(folder: Path, made: list[Path] | None = None) -> None:
    """Makes a folder and those on the way as the user would make them; each new one is put into `made` at once."""
    for one in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        try:
            one.mkdir()
        except FileExistsError:
            if one.is_dir():
                continue  # somebody was quicker, and it is theirs
            raise
        if made is not None:
            made.append(one)
        share(str(one), str(one.parent), 0o777)


def _mode(path: Path) -> int:
    """The mode of the file that is there; else what this user's new files have."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o666 & ~user_umask()
