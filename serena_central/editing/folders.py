"""The folders of one operation, held open from the first look at its files until nothing of it is left to do.

All that the operation does happens in the very folders in which its files were found, whatever becomes of their paths
meanwhile; what it put there is found and removed again. No symlink is followed on the way to them (core/nofollow.py).
Blocks; belongs to one thread.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from serena_central.core.errors import FileChanged, PathRefused
from serena_central.core.nofollow import OpenFolder, split
from serena_central.files.stamp import Stamp


class Place(NamedTuple):
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
            raise PathRefused(
                f"{self.path} is read-only ({stat.filemode(mode)}); change its mode first if it is meant to be edited."
            )


class Folders:
    """See the module."""

    def __init__(self) -> None:
        self._held: dict[str, OpenFolder] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def find(self, path: str) -> Place | None:
        """The place of a file; None if its folder is not there. Raises FileChanged: a symlink leads there now."""
        try:
            return self._held_for(path, OpenFolder.at)
        except FileNotFoundError:
            return None

    def place(self, path: str) -> Place:
        """As `find`; raises FileChanged also if the folder is not there."""
        found = self.find(path)
        if found is None:
            raise FileChanged(path)
        return found

    def make(self, path: str, made: list[str]) -> Place:
        """The place of a file whose folder may have to be made; adds the paths of folders that were to `made`."""
        return self._held_for(path, lambda folder: OpenFolder.made(folder, made))

    def _held_for(self, path: str, opened: Callable[[str], OpenFolder]) -> Place:
        folder, name = split(path)
        if folder not in self._held:
            try:
                self._held[folder] = self._stack.enter_context(opened(folder))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise FileChanged(path) from error
                raise
        return Place(self._held[folder], name)
