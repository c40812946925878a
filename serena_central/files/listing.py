"""Lists one folder, or all below it, as it is on disk now; the caller says whether ignored paths are left out."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from serena_central.core.errors import PathError
from serena_central.core.nofollow import OpenFolder
from serena_central.files.boundary import in_git, resolve_inside
from serena_central.files.walk import TEMPORARY

MAX_ENTRIES = 100_000
"""Maximum of entries listed: a node_modules holds as many, and nobody reads more."""

ALWAYS_HIDDEN = frozenset({".hg", ".svn"})
"""Repositories' own stores beside git's: no work for anybody who lists a project."""


class Listing(NamedTuple):
    """Root-relative POSIX paths, sorted. `links` are the symlinks among `folders` and `files`: one to a folder of the
    root is a folder, which is not listed itself; every other one is a file."""

    folders: list[str]
    files: list[str]
    links: set[str]
    truncated: bool


def list_folder(
    root: Path,
    folder: str,
    *,
    recursive: bool,
    hidden: Callable[[str], bool],
    ignored: Callable[[str], bool] | None = None,
) -> Listing:
    """Lists `folder` (root-relative; `""` for the root). `ignored` and `hidden`, which is what rules close, take a
    path, with a `/` at the end for a folder.

    Blocks for the disk; folders that can't be read are listed as empty.
    """
    folders: list[str] = []
    files: list[str] = []
    links: set[str] = set()
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        for name, kind in _entries(root, inside):
            path = f"{inside}/{name}" if inside else name
            is_folder = kind == "folder" or (kind == "link" and _leads_to_folder(root, path))
            if (
                name in ALWAYS_HIDDEN
                or in_git(name)
                or name.startswith(TEMPORARY)
                or hidden(path)
                or (ignored is not None and ignored(path + "/" if is_folder else path))
            ):
                continue
            if len(folders) + len(files) >= MAX_ENTRIES:
                return Listing(sorted(folders), sorted(files), links, truncated=True)
            (folders if is_folder else files).append(path)
            if kind == "link":
                links.add(path)
            elif recursive and is_folder:
                waiting.append(path)
    return Listing(sorted(folders), sorted(files), links, truncated=False)


def leads_out(folder: Path, link: Path) -> bool:
    """Whether what a symlink leads to does not lie below a folder, or is not there."""
    try:
        resolve_inside(folder, str(link))
    except PathError:
        return True
    return False


def _entries(root: Path, folder: str) -> list[tuple[str, Literal["folder", "file", "link"]]]:
    try:
        with OpenFolder.at(f"{root}/{folder}") as opened, os.scandir(opened.descriptor) as entries:
            return [(entry.name, _kind(entry)) for entry in entries]
    except OSError:
        return []


def _kind(entry: os.DirEntry[str]) -> Literal["folder", "file", "link"]:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _leads_to_folder(root: Path, link: str) -> bool:
    try:
        return resolve_inside(root, link).is_dir()
    except PathError:
        return False
