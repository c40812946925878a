"""The few things that an edit does to the disk, one method each: the seam at which tests let them fail.

Blocks; called in worker threads. Files are named by places: names in folders that are held open. What is replaced keeps
its mode, owner and extended attributes (access lists among them). A file with several hard links is detached from them:
the others keep the old text.
"""

import os
import stat
import sys
from contextlib import suppress

from serena_central.core.errors import PathRefused
from serena_central.core.nofollow import NEW, OpenFolder
from serena_central.editing.folders import Place
from serena_central.island.private import share

NEW_FILE_MODE = 0o666
"""Of a file that is created, less what the user's umask takes away."""


class Disk:
    """The real one."""

    def write(self, place: Place, data: bytes, like: Place | None) -> None:
        """Makes a new file that survives a power cut, with the mode, owner and attributes of `like`.

        Raises:
            PathRefused: the owner can't be kept.
            OSError: anything else that fails.
        """
        descriptor = place.folder.open(place.name, NEW, NEW_FILE_MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if like is not None:
                    _make_alike(file.fileno(), like)
                else:
                    share(file.fileno(), place.folder.descriptor, NEW_FILE_MODE)
                self.sync(file.fileno())
        except BaseException:
            with suppress(OSError):
                place.folder.unlink(place.name)
            raise

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def sync_folder(self, folder: OpenFolder) -> None:
        """Makes renames in a folder survive a power cut, where the file system can."""
        with suppress(OSError):
            os.fsync(folder.descriptor)

    def replace(self, source: Place, target: Place) -> None:
        """Puts a file in the place of another, in one step."""
        source.folder.rename(source.name, target.folder, target.name)

    def link(self, source: Place, target: Place) -> None:
        """Gives a file a second name; FileExistsError if that is taken."""
        source.folder.link(source.name, target.folder, target.name)

    def remove(self, place: Place) -> None:
        place.folder.unlink(place.name)


def _make_alike(descriptor: int, like: Place) -> None:
    model = like.open()
    try:
        wanted, made = os.fstat(model), os.fstat(descriptor)
        if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
            try:
                os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
            except PermissionError as error:
                raise PathRefused(
                    f"{like.path} belongs to another user or group, which this user can't keep when replacing it."
                ) from error
        os.fchmod(descriptor, stat.S_IMODE(wanted.st_mode))
        if sys.platform == "linux":
            for name in _attributes_of(model):
                with suppress(OSError):  # some are the system's own, and it sets them itself
                    os.setxattr(descriptor, name, os.getxattr(model, name))
    finally:
        os.close(model)


def _attributes_of(descriptor: int) -> list[str]:
    if sys.platform != "linux":
        return []
    try:
        return os.listxattr(descriptor)
    except OSError:  # a file system without any
        return []
