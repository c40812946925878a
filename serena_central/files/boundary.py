"""The boundary of a project: turns a path from a call into a real path below the root, or refuses it with the reason.

Symlinks are followed before the question is asked, so that a link can't lead out. Whether a path is ignored is the
tree's business; what a file holds is `text`'s. What permission rules close of a project is an `Access`.
"""

import difflib
import errno
import os
import re
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import PathDenied, PathNotFound, PathOutsideProject, PathRefused
from serena_central.core.nofollow import OpenFolder, resolved
from serena_central.core.quoting import quoted
from serena_central.files.mounts import FileSystemAway, check_answers, leads_apart

Closed = Callable[[str], str | None]
"""Takes a root-relative POSIX path; a sentence on why it is closed, None where it is open. Safe from any thread."""


MOST_PATH_CHARS = 4096
"""The kernel takes no longer path (PATH_MAX); a call has room for millions, of which each level would be looked up."""

MOST_SIBLINGS = 2000
"""Names of one folder that are compared for close matches: about 20 ms, spent on an error alone."""

GITS_OWN = frozenset({".git", "git~1"})
"""A repository's store, or the file that points to it; and what Windows calls it in short."""

_SKIPPED_BY_MACOS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SEPARATOR = re.compile(r"[/\\]")

_NO_TEXT = re.compile("[\udc80-\udcff]")
_SHOWN_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")

_SPECIAL_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def resolve_inside(
    root: Path, path: str, *, must_exist: bool = True, hidden: Callable[[str], bool] | None = None
) -> Path:
    """Resolves `path` (relative to `root`, or absolute) and returns it below `root`, all symlinks followed.

    An empty path or `.` is the root itself. With `must_exist=False` the last parts may be missing, but what is there
    must be a folder that leads to them. What is `hidden` (takes a path below the root) is not named as a close match.

    Raises:
        PathOutsideProject: it leads out of the root, as written or by a symlink.
        PathNotFound: nothing is there; names close matches.
        PathRefused: git's own, neither file nor folder, a NUL, unreadable, or a path that the system can't hold.
    """
    if len(path) > MOST_PATH_CHARS:
        raise PathRefused(
            f"{quoted(path)} can't be used: a path has at most {MOST_PATH_CHARS} characters, and this one {len(path)}."
        )
    if "\0" in path:
        raise PathRefused(f"{path!r} contains a NUL character, which is not allowed in paths.")
    whole = os.path.join(root, path)  # noqa: PTH118 - keeps `..` as it is
    try:
        check_answers(str(root))
        real_root = resolved(root)
        if leads_apart(whole, real_root, within=True):
            raise PathOutsideProject(path, str(root))
        check_answers(whole)
        real = resolved(Path(real_root, path))
    except (UnicodeEncodeError, ValueError) as error:
        raise PathRefused(f"{path!r} is not a valid path on this system: {error}.") from error
    except FileSystemAway as error:
        raise PathRefused(f"{quoted(path)} can't be used now: {error.strerror} ({error.filename}).") from error
    except OSError as error:
        raise PathRefused(f"The symlinks on {path!r} keep changing. Retry when they no longer change.") from error
    inside = relative_or_none(real_root, real)
    if inside is None:
        raise PathOutsideProject(path, str(root))
    if in_git(inside) or (in_git(path) and not Path(path).is_absolute()):
        raise PathRefused(f"{path!r} belongs to git: nothing in .git is read or changed here.")
    _check(real, path, must_exist=must_exist, is_shown=lambda other: not _is_hidden(real_root, other, hidden))
    return root / inside


def in_git(path: str) -> bool:
    """Whether a path is, or leads through, git's own folder or file, on any file system that git knows: names differ
    in case there, in dots and spaces at the end, in a stream after a colon, in characters that are skipped."""
    return any(map(_is_gits, _SEPARATOR.split(path))) if "git" in path.casefold() or not path.isascii() else False


def _is_gits(name: str) -> bool:
    plain = name if name.isascii() else _SKIPPED_BY_MACOS.sub("", name)
    return plain.casefold().partition(":")[0].rstrip(". ") in GITS_OWN


def shown(path: str) -> str:
    """A path as answers show it: a byte that is not UTF-8 stands as `\\xe9`."""
    return path if path.isascii() else _NO_TEXT.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", path)


def from_shown(root: Path, path: str) -> str:
    """The path that `shown` was given, if that is there, and nothing of the name as it is written."""
    if "\\x" not in path or _is_there(root, path):
        return path
    meant = _SHOWN_BYTE.sub(lambda found: chr(0xDC00 + int(found[1], 16)), path)
    return meant if _is_there(root, meant) else path


def _is_there(root: Path, path: str) -> bool:
    here = os.path.join(root, path)  # noqa: PTH118 - Path has no lexists
    return not leads_apart(here, str(root), within=True) and os.path.lexists(here)


def relative(root: Path, path: Path) -> str:
    """The POSIX form of `path` relative to `root`; `.` for the root itself. Purely textual: follows no symlink.

    Raises:
        PathOutsideProject: `path` is not below `root`.
    """
    inside = relative_or_none(str(root), str(path))
    if inside is None:
        raise PathOutsideProject(str(path), str(root))
    return inside.replace(os.sep, "/") if os.sep != "/" else inside


def relative_or_none(root: str, path: str) -> str | None:
    """The part of `path` below `root`, `.` for the root itself, None when it is not below; both absolute, normal."""
    if path == root:
        return "."
    prefix = root if root.endswith(os.sep) else root + os.sep
    return path[len(prefix) :] if path.startswith(prefix) else None


def _is_hidden(root: str, path: str, hidden: Callable[[str], bool] | None) -> bool:
    inside = relative_or_none(root, path) if hidden is not None else None
    return hidden is not None and inside is not None and hidden(inside)


def _check(real: str, asked: str, *, must_exist: bool, is_shown: Callable[[str], bool]) -> None:
    try:
        mode = Path(real).stat().st_mode
    except FileNotFoundError as error:
        if must_exist:
            raise PathNotFound(asked, _close_matches(real, asked, is_shown)) from error
    except NotADirectoryError as error:
        raise PathRefused(f"{asked!r} uses a file as a folder.") from error
    except PermissionError as error:
        raise PathRefused(f"{asked!r} can't be read by this user.") from error
    except OSError as error:
        reason = "a loop of symlinks" if error.errno == errno.ELOOP else os.strerror(error.errno or 0)
        raise PathRefused(f"{asked!r} can't be used: {reason}.") from error
    else:
        kind = _SPECIAL_FILES.get(stat.S_IFMT(mode))
        if kind is not None:
            raise PathRefused(f"{asked!r} is {kind}, not a file or folder.")


def _close_matches(real: str, asked: str, is_shown: Callable[[str], bool]) -> list[str]:
    """Paths like the one asked for, in the same folder, written as the caller wrote it."""
    folder, name = os.path.split(real)
    try:
        with OpenFolder.at(folder) as opened, os.scandir(opened.descriptor) as entries:
            names = [entry.name for entry in islice(entries, MOST_SIBLINGS)]
    except OSError:
        return []
    siblings = [one for one in names if is_shown(f"{folder}/{one}")]
    stem = asked.rstrip("/").rpartition("/")
    return [stem[0] + stem[1] + match for match in difflib.get_close_matches(name, siblings, n=3)]


class Access(NamedTuple):
    """Which paths of a root may not be read, listed, named or edited: what files, projects and tools ask of the rules,
    which are `claude_config`'s. `key` is equal as long as they are; None in place of a question: nothing is closed."""

    key: object = None
    reading: Closed | None = None
    editing: Closed | None = None

    def hides(self, path: str) -> bool:
        """Whether a path is left out of everything that is listed, searched or indexed."""
        return self.reading is not None and self.reading(path.rstrip("/")) is not None

    def check_reading(self, path: str) -> None:
        """Raises PathDenied."""
        _check_open(self.reading, path)

    def check_editing(self, path: str) -> None:
        """Raises PathDenied."""
        _check_open(self.editing, path)


OPEN = Access()


def _check_open(closed: Closed | None, path: str) -> None:
    reason = closed(path) if closed is not None else None
    if reason is not None:
        raise PathDenied(reason)
