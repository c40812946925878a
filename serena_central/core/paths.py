"""The paths of folders that every call asks for, such as the root of its session's project.

`Path` takes ten times as long to make as to find again, and one that is kept keeps its hash, too.
"""

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=256)
def kept_path(folder: str) -> Path:
    """`Path(folder)`, the same object for the same text as a rule."""
    return Path(folder)
