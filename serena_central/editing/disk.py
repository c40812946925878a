"""The files of an edit on the disk: places in folders that are held open, what is done to one file, and the way of one
step of an operation, there and back.

All that an operation does happens in the very folders in which its files were found, whatever becomes of their paths
meanwhile; what it put there is found and removed again. No symlink is followed on the way to them (core/nofollow.py).
Blocks; called in worker threads. Which steps belong together, and in what order they go, is the transaction's.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Literal, NamedTuple, Self

from msgspec.structs import replace

from serena_central.core.errors import FileChanged, PathNotFound, PathRefused
from serena_central.core.nofollow import NEW, OpenFolder, split
from serena_central.editing.journal import Step
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, digest_of, read_bytes
from serena_central.standalone.private import share

NEW_FILE_MODE = 0o666
"""Of a file that is created, less what the user's umask takes away."""

_NO_SECOND_NAMES = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""


class HeldName(NamedTuple):
    """A name in a folder that is held open."""

    folder: OpenFolder
    name: str

    @property
    def path(self) -> str:
        return f"{self.folder.path.rstrip('/')}/{self.name}"

    def open(self, _path: str = "") -> int:
        """An opener (core/nofollow.py) of this one file."""
        return self.folder.open(self.name)

    def status(self) -> os.stat_result | None:
        """What lies there, itself where that is a symlink; None if nothing does."""
        try:
            return self.folder.status(self.name)
        except FileNotFoundError:
            return None

    def stamp(self) -> Stamp | None:
        status = self.status()
        return None if status is None else Stamp.of(status)

    def check_writable(self) -> None:
        """Raises PathRefused for a file that its mode protects; replacing it would get round that."""
        mode = self.folder.status(self.name).st_mode
        protected = not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
        if protected or not os.access(self.name, os.W_OK, dir_fd=self.folder.descriptor):
            raise PathRefused(f"{self.path} is read-only ({stat.filemode(mode)}); change its mode first to edit it.")


class Folders:
    """The folders of one operation, held open from its first look at files to its end. Belongs to one thread."""

    def __init__(self) -> None:
        self._held: dict[str, OpenFolder] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def find(self, path: str) -> HeldName | None:
        """The place of a file; None if its folder is not there.

        Raises:
            FileChanged: a symlink leads there now.
        """
        try:
            return self._held_for(path, OpenFolder.at)
        except FileNotFoundError:
            return None

    def place(self, path: str) -> HeldName:
        """As `find`; raises FileChanged also if the folder is not there."""
        found = self.find(path)
        if found is None:
            raise FileChanged(path)
        return found

    def make(self, path: str) -> HeldName:
        """The place of a file whose folder may have to be made."""
        return self._held_for(path, OpenFolder.made)

    def _held_for(self, path: str, opened: Callable[[str], OpenFolder]) -> HeldName:
        folder, name = split(path)
        if folder not in self._held:
            try:
                self._held[folder] = self._stack.enter_context(opened(folder))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise FileChanged(path) from error
                raise
        return HeldName(self._held[folder], name)


class Disk:
    """The few things that an edit does to a file, one method each: the seam at which tests let them fail.

    What is replaced keeps its mode, owner and extended attributes (access lists among them). A file with several hard
    links is detached from them: the others keep the old text.
    """

    def write(self, place: HeldName, data: bytes, like: HeldName | None) -> None:
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

    def replace(self, source: HeldName, target: HeldName) -> None:
        """Puts a file in the place of another, in one step."""
        source.folder.rename(source.name, target.folder, target.name)

    def link(self, source: HeldName, target: HeldName) -> None:
        """Gives a file a second name; FileExistsError if that is taken."""
        source.folder.link(source.name, target.folder, target.name)

    def remove(self, place: HeldName) -> None:
        place.folder.unlink(place.name)


def _make_alike(descriptor: int, like: HeldName) -> None:
    model = like.open()
    try:
        wanted, made = os.fstat(model), os.fstat(descriptor)
        if (wanted.st_uid, wanted.st_gid) != (made.st_uid, made.st_gid):
            try:
                os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
            except PermissionError as error:
                raise PathRefused(
                    f"{like.path} belongs to another user or group, and replacing it would change that. "
                    "A person can edit it, or change its owner (chown)."
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


class StepFiles:
    """What lies at the paths of an operation's steps, and the way of each step there and back."""

    def __init__(self, disk: Disk, folders: Folders) -> None:
        self._disk = disk
        self._folders = folders
        self.other_names: dict[str, int] = {}
        """Of the files that were checked and have several (hard links): how many beside the path."""

    def check(self, step: Step) -> Stamp | None:
        """The stamp of the file as it is now, None for one that is to be made.

        Raises:
            FileChanged: it is not what was planned on.
            PathError: it can't be replaced.
        """
        place = self._folders.find(step.path)
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
        if status.st_nlink > 1:
            self.other_names[step.path] = status.st_nlink - 1
        return stamp

    def check_unchanged(self, step: Step, stamp: Stamp | None) -> None:
        """The last look before a rename: the same file, in the same folder, at the same path. Its ctime may differ: the
        second name changed that."""
        place = self._folders.place(step.path)
        now = place.stamp()
        same = (now and replace(now, ctime_ns=0)) == (stamp and replace(stamp, ctime_ns=0))
        if not same or not place.folder.is_at_its_path():
            raise FileChanged(step.path)

    def commit(self, step: Step) -> None:
        place = self._folders.place(step.path)
        if step.fresh is None:
            self._disk.remove(place)
        elif step.old is not None:
            self._disk.replace(self._folders.place(step.fresh), place)
        else:
            self._make(self._folders.place(step.fresh), place)

    def _make(self, fresh: HeldName, place: HeldName) -> None:
        """Gives a new file its name, and never the name of one that somebody made meanwhile."""
        try:
            self._disk.link(fresh, place)
        except FileExistsError as error:
            raise FileChanged(place.path) from error
        except OSError as error:
            if error.errno not in _NO_SECOND_NAMES:
                raise
            self._disk.replace(fresh, place)  # a file system without second names
        else:
            self._disk.remove(fresh)

    def keep(self, place: HeldName, kept: HeldName) -> None:
        try:
            self._disk.link(place, kept)
        except OSError as error:
            if error.errno not in _NO_SECOND_NAMES:
                raise
            self._disk.write(kept, read_bytes(place.path, max_bytes=2 * MAX_BYTES, opener=place.open)[0], place)

    def roll_back(self, step: Step) -> None:
        """Undoes a step that is done."""
        place = self._folders.place(step.path)
        if step.old is None:
            self._disk.remove(place)
        elif step.kept is not None:
            self._disk.replace(self._folders.place(step.kept), place)

    def state_of(self, step: Step) -> Literal["old", "new", "other"]:
        """`old`, `new`, or `other` when somebody has changed the file since."""
        found = self._digest(step.path)
        return "new" if found == step.new else "old" if found == step.old else "other"

    def exists(self, path: str) -> bool:
        place = self._folders.find(path)
        return place is not None and place.status() is not None

    def is_waiting(self, step: Step) -> bool:
        """Whether a step was not made yet, as far as files show: its new text still stands beside the file."""
        if step.fresh is None:
            return self.exists(step.path)
        return self.exists(step.fresh) and self.state_of(step) != "new"

    def may_be_done(self, step: Step) -> bool:
        """Whether a step whose file somebody has changed since may have been made before that: what shows that it was
        not is the new text that still stands beside the file that it was to replace."""
        return step.fresh is None or step.old is None or not self.exists(step.fresh)

    def can_go_on(self, step: Step) -> bool:
        """Whether a pending step can be made: its file is unchanged, and its new text is complete."""
        return self.state_of(step) == "old" and (step.fresh is None or self._digest(step.fresh) == step.new)

    def sweep(self, steps: Iterable[Step]) -> None:
        """Removes what stood beside the files."""
        for step in steps:
            for path in (step.fresh, step.kept):
                place = self._folders.find(path) if path is not None else None
                if place is not None:
                    with suppress(FileNotFoundError):
                        place.folder.unlink(place.name)

    def remove_folders_left(self, steps: Iterable[Step], *, applied: bool) -> None:
        """Removes the folders that files have left empty: that were moved or deleted, or were not made in the end."""
        for step in steps:
            if step.below is None or (step.new if applied else step.old) is not None:
                continue
            folder, _ = split(step.path)
            with suppress(OSError, FileChanged):  # one that is not empty stays, and all above it
                while folder != step.below:
                    place = self._folders.find(folder)
                    if place is not None and place.status() is not None:
                        place.folder.rmdir(place.name)
                    folder, _ = split(folder)

    def _digest(self, path: str) -> str | None:
        place = self._folders.find(path)
        if place is None:
            return None
        try:
            return digest_of(read_bytes(path, max_bytes=2 * MAX_BYTES, opener=place.open)[0])
        except PathNotFound:
            return None
        except PathRefused:
            return ""


def standing_folder(path: str) -> str:
    """The innermost folder around a path that is there."""
    folder, _ = split(path)
    while not os.path.lexists(folder):
        folder, _ = split(folder)
    return folder
