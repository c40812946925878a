"""Lists one folder, or all below it, as it is on disk now; the caller says whether ignored paths are left out."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serena_central.files.boundary import in_git
from serena_central.files.walk import TEMPORARY

MAX_ENTRIES = 100_000
"""Entries listed at the most: a node_modules holds as many, and nobody reads more."""

ALWAYS_HIDDEN = frozenset({".hg", ".svn"})
"""Repositories' own stores beside git's: no work for anybody who lists a project."""


class Listing(NamedTuple):
    """Root-relative POSIX paths, sorted. Symlinks count as what they lead to, and are not followed into."""

    folders: list[str]
    files: list[str]
    truncated: bool


def list_folder(root: Path, folder: str, *, recursive: bool, ignored: Callable[[str], bool] | None = None) -> Listing:
    """Lists `folder` (root-relative; `""` for the root). `ignored` takes a path, with a `/` at the end for a folder.

    Blocks for the disk; folders that can't be read are listed as empty.
    """
    folders: list[str] = []
    files: list[str] = []
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        for entry in _entries(root / inside):
            path = f"{inside}/{entry.name}" if inside else entry.name
            is_folder = entry.is_dir()
            if (
                entry.name in ALWAYS_HIDDEN
                or in_git(entry.name)
                or entry.name.startswith(TEMPORARY)
                or (ignored is not None and ignored(path + "/" if is_folder else path))
            ):
                continue
            if len(folders) + len(files) >= MAX_ENTRIES:
                return Listing(sorted(folders), sorted(files), truncated=True)
            (folders if is_folder else files).append(path)
            if recursive and is_folder and not entry.is_symlink():
                waiting.append(path)
    return Listing(sorted(folders), sorted(files), truncated=False)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
