"""Whose a file above a project is: in a folder that others may write (/tmp, a shared disk) anybody can put settings."""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from serena_central.core.quoting import quoted


def is_strangers(path: Path, root: Path) -> bool:
    """Whether what lies above a root, or its folder, was put there by somebody else: not by this user, the
    administrator or the owner of the root. False where nothing is there."""
    return os.name == "posix" and _is_of_others(str(path), _known(root))


def first_strangers_above(root: Path, names: Sequence[str]) -> Path | None:
    """The first of these entries, the nearest first, in the folders above a root that `is_strangers`. A stat each."""
    if os.name != "posix":
        return None
    known = _known(root)
    for folder in root.parents:
        start = str(folder).rstrip("/")
        for name in names:
            if _is_of_others(path := f"{start}/{name}", known):
                return Path(path)
    return None


def put_above(root: Path, above: Path) -> str:
    """Why nothing of a trusted root is executed, and what to do, as sentences."""
    return (
        f"{quoted(above)} or its folder belongs to another user, and language servers would execute what it says. "
        f"The user can remove it, or move {quoted(root)} to a folder that nobody else writes to."
    )


def _known(root: Path) -> set[int]:
    known = {os.geteuid(), 0}
    with suppress(OSError):
        known.add(root.stat().st_uid)
    return known


def _is_of_others(path: str, known: Collection[int]) -> bool:
    try:
        return os.lstat(path).st_uid not in known or os.lstat(os.path.dirname(path)).st_uid not in known  # noqa: PTH120
    except OSError:
        return False
