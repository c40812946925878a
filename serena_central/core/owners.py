"""Whose a file above a project is: in a folder that others may write (/tmp, a shared disk) anybody can put settings."""

import os
from contextlib import suppress
from pathlib import Path


def is_strangers(path: Path, root: Path) -> bool:
    """Whether what lies above a root, or its folder, was put there by somebody else: not by this user, the
    administrator or the owner of the root. False where nothing is there."""
    if os.name != "posix":
        return False
    known = {os.geteuid(), 0}
    with suppress(OSError):
        known.add(root.stat().st_uid)
    try:
        return any(one.lstat().st_uid not in known for one in (path, path.parent))
    except OSError:
        return False
