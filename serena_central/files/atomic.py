"""Writes a small file whole or not at all: a temporary file beside it, synced, renamed over it."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Makes `path` hold exactly `data`; readers see the old file or the new one. Folders on the way are made.

    Raises: OSError, and then `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _mode(path))
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The mode of the file that is there; else what this user's new files have."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
