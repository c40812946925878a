"""The result of a root resolver, and the folders that it may read."""

from collections.abc import Iterator
from pathlib import Path

import msgspec


class ServerRoot(msgspec.Struct, frozen=True):
    """Where the server for a file runs.

    `root` is the folder that it works for, and part of its key: files with equal roots share it. `folder` is the
    workspace folder that the file lies in: the root, or one of several below it, told to the server when it is needed.
    `env` is laid over the environment of the process. `reads` are folders of other modules that manifests lead to, for
    servers that do not say themselves what they read.
    """

    root: Path
    folder: Path
    env: dict[str, str] = {}
    reads: frozenset[Path] = frozenset()


def ancestors(boundary: Path, file: Path) -> Iterator[Path]:
    """From the file's folder upward to the project's root; none for a file outside."""
    if not file.is_relative_to(boundary):
        return
    for folder in file.parents:
        yield folder
        if folder == boundary:
            return
