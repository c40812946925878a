"""Keeps files that should not be committed out of git, by an ignore file beside them.

Files meant to be committed hold nothing absolute: they are read on other machines.
"""

from pathlib import Path

from serena_central.core.errors import InvalidArguments

IGNORED = """\
# Written by serena-central. Everything not listed here is meant to be committed: settings and memories.
/project.local.yml
/cache/
/logs/
"""


def write_ignore_file(folder: Path) -> Path | None:
    """Puts a `.gitignore` into a repository's folder of ours; None where there is one: it is the person's then."""
    file = folder / ".gitignore"
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(IGNORED)
    except FileExistsError:
        return None
    return file


def place_of(file: Path, root: Path) -> Path:
    """Where a file that is to be written for a repository lies, with its symlinks followed.

    Raises:
        InvalidArguments: that is not in the repository, which must not choose what else is written. Settings are not
            read there, either.
    """
    place = file.resolve()
    if not place.is_relative_to(root.resolve()):
        raise InvalidArguments(f"{file} is, or is below, a symlink out of {root}: {place}. Nothing was written.")
    return place
