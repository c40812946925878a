"""Paths that somebody names: the real ones behind them, or why there are none.

Commands ask for them, too, and so must not have to import what a project is made of.
"""

from pathlib import Path

from serena_central.core.errors import ProjectRefused
from serena_central.core.paths import expanded
from serena_central.core.quoting import quoted
from serena_central.files.mounts import FileSystemAway, check_answers

MOST_LEVELS = 250
"""Each level is looked up, by a path that grows with them: 100,000 take 16 s."""


def check_is_there(folder: Path) -> None:
    """Raises ProjectRefused for one on a file system whose server is away: whoever looks at it waits for that."""
    try:
        check_answers(str(folder))
    except FileSystemAway as error:
        raise ProjectRefused(f"{quoted(folder)} can't be used now: {error.strerror} ({error.filename}).") from error


def real_path(path: Path) -> Path:
    """The absolute path behind `~` and symlinks.

    Raises:
        ProjectRefused: for what can't be a path.
    """
    try:
        whole = expanded(path)
        if str(whole).startswith("~"):
            raise ValueError("there is no such user")
        if "\0" in str(whole):
            raise ValueError("embedded null byte")
        if len(whole.parts) > MOST_LEVELS:
            raise ValueError(f"it has more than {MOST_LEVELS} levels")
        check_is_there(whole)
        return whole.resolve()
    except (ValueError, RuntimeError, OSError) as error:
        raise ProjectRefused(f"{quoted(path)} is not a valid project path: {error}.") from error
