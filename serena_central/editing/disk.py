"""The few things that an edit does to the disk, one method each: the seam at which tests let them fail.

Blocks; called in worker threads. What is replaced keeps its mode, owner and extended attributes (access lists among
them). A file with several hard links is detached from them: the others keep the old text.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from serena_central.core.errors import PathRefused
from serena_central.island.private import share

NEW_FILE_MODE = 0o666
"""Of a file that is created, less what the user's umask takes away."""


class Disk:
    """The real one."""

    def write(self, path: Path, data: bytes, like: Path | None) -> None:
        """Makes a new file that survives a power cut, with the mode, owner and attributes of `like`.

        Raises:
            PathRefused: the owner can't be kept.
            OSError: anything else that fails.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, NEW_FILE_MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if like is not None:
                    _make_alike(file.fileno(), like)
                else:
                    share(file.fileno(), str(path.parent), NEW_FILE_MODE)
                self.sync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Makes renames in a folder survive a power cut, where the file system can."""
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """Puts a file in the place of another, in one step."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name; FileExistsError if that is taken."""
        target.hardlink_to(source)

    def remove(self, path: Path) -> None:
        path.unlink()


def check_writable(path: Path, status: os.stat_result) -> None:
    """Raises PathRefused for a file that its mode protects; replacing it would get round that."""
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        mode = stat.filemode(status.st_mode)
        raise PathRefused(f"{path} is read-only ({mode}); change its mode first if it is meant to be edited.")


def _make_alike(descriptor: int, like: Path) -> None:
    wanted, made = like.stat(), os.fstat(descriptor)
    if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
        try:
            os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
        except PermissionError as error:
            raise PathRefused(
                f"{like} belongs to another user or group, which this user can't keep when replacing it."
            ) from error
    os.fchmod(descriptor, stat.S_IMODE(wanted.st_mode))
    if hasattr(os, "listxattr"):
        for name in _attributes_of(like):
            with suppress(OSError):  # some are the system's own, and it sets them itself
                os.setxattr(descriptor, name, os.getxattr(like, name))


def _attributes_of(path: Path) -> list[str]:
    try:
        return os.listxattr(path)
    except OSError:  # a file system without any
        return []
