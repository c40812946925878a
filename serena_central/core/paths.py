"""Paths as they are written, with `~` for the home folder, and those of folders that every call asks for, such as the
root of its session's project.

`Path` takes ten times as long to make as to find again, and one that is kept keeps its hash, too.
"""

import os
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=256)
def kept_path(folder: str) -> Path:
    """`Path(folder)`, the same object for the same text as a rule."""
    return Path(folder)


def expanded(path: str | Path) -> Path:
    """The path with the home folder in place of `~`. `~name` of a user that there is not stays a name like any other,
    where `Path.expanduser` raises RuntimeError: settings, agents and repositories may write anything."""
    return Path(os.path.expanduser(path))  # noqa: PTH111
