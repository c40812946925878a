"""Private files: the umask of the server's processes, and the modes of its folder.

Our processes run with umask 077. What people get (sources, settings and memories in a project, files that a command
was told to write) is made as their own umask says, which is remembered here. Standard library only.
"""

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager

OTHERS = 0o077
"""Permission bits of everybody but the user."""

TOKEN_NAME = "token"  # noqa: S105 (a file's name)
"""Left as it is found: others may know a token that they could read, and its reader refuses it for that."""

_DEFAULT_ACL = "system.posix_acl_default"

_user_umask: int | None = None


class NotPrivate(PermissionError):
    """The server's folder can't be this user's alone; the text says why and what to do."""

    def __str__(self) -> str:
        return str(self.args[0])


def restrict_umask() -> None:
    """From now on this process makes files for its user alone. Called once, by the start of each program of ours."""
    global _user_umask  # noqa: PLW0603 (a umask is the process's own)
    before = os.umask(OTHERS)
    if _user_umask is None:
        _user_umask = before


def user_umask() -> int:
    """What this process was started with."""
    if _user_umask is not None:
        return _user_umask
    now = os.umask(OTHERS)  # there is no other way to ask; nothing is opened to anybody meanwhile
    os.umask(now)
    return now


@contextmanager
def as_user() -> Generator[None]:
    """Makes files with the user's own umask. For programs of one thread: a umask is of the whole process."""
    ours = os.umask(user_umask())
    try:
        yield
    finally:
        os.umask(ours)


def share(path: str | int, folder: str | int, mode: int) -> None:
    """Gives what was just made in `folder` the mode that it had under the user's own umask. Both may be descriptors.

    `mode` is 0o666 for files, 0o777 for folders. Where the folder has a default access list, no umask was applied.
    """
    if _user_umask in (None, OTHERS) or _has_default_acl(folder):
        return
    kept = os.stat(path).st_mode & 0o7000  # a folder below one with the setgid bit has it, too
    os.chmod(path, kept | (mode & ~user_umask()))


def secure(folder: str) -> str | None:
    """Makes the server's folder if it is missing, and closes it to others with all that is in it.

    Returns what was fixed, as a sentence; None if nothing had to be: in a closed folder nobody could use the modes that
    language servers give their caches. In `servers/` a closed folder is left as it is.

    Raises:
        NotPrivate, OSError
    """
    _check_place(folder)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.name != "posix":
        return None
    _check_owner(folder)
    before = stat.S_IMODE(os.stat(folder).st_mode)
    if before & OTHERS:
        os.chmod(folder, before & ~OTHERS)
    closed = _close_below(folder, top=True)
    if before & OTHERS:
        return (
            f"{folder} was accessible to other users (mode {before:04o}); access to it and to {_files(closed)} in it "
            "was removed."
        )
    return None


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def close(folder: str) -> None:
    """Closes all that is in a folder of ours to others: installers set modes of their own, whatever the umask says."""
    if os.name == "posix":
        _close_below(folder)


def is_loose(folder: str) -> bool:
    """Whether the server's folder is accessible to others. False if there is none."""
    try:
        return os.name == "posix" and bool(os.stat(folder).st_mode & OTHERS)
    except OSError:
        return False


def _check_place(folder: str) -> None:
    """Keeps sudo with its caller's HOME from making folders that the caller could not use. Root in a container, whose
    home often is another user's as well, may make them.

    Raises:
        NotPrivate: the folder would be made in one of sudo's caller.
    """
    caller = os.environ.get("SUDO_UID")
    if sys.platform == "win32" or os.geteuid() != 0 or caller in (None, "0"):
        return
    above = os.path.abspath(folder)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if above != os.path.abspath(folder) and str(os.stat(above).st_uid) == caller:
        raise NotPrivate(
            f"{folder} would be made by root in {above}, which belongs to another user (uid {caller}), who could not "
            "use it. Run this without sudo, or set SERENA_CENTRAL_HOME to root's own folder."
        )


def _check_owner(folder: str) -> None:
    """Raises NotPrivate."""
    if sys.platform == "win32":  # a user's folders are closed there by access lists, and say nothing by modes
        return
    link, status, user = os.lstat(folder), os.stat(folder), os.geteuid()
    instead = "Set SERENA_CENTRAL_HOME to your own folder."
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (user, 0):
        raise NotPrivate(f"{folder} is a symbolic link that belongs to another user (uid {link.st_uid}). {instead}")
    if status.st_uid != user:
        raise NotPrivate(f"{folder} belongs to another user (uid {status.st_uid}, this is {user}). {instead}")


def _close_below(folder: str, *, top: bool = False, shallow: bool = False) -> int:
    """Takes the bits of others from everything in a folder, which nobody else can enter by now; how many had some.

    Raises:
        NotPrivate: for something directly in the server's folder that somebody else put there.
    """
    closed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
                if sys.platform != "win32" and top and status.st_uid != os.geteuid():
                    raise NotPrivate(
                        f"{entry.path} belongs to another user (uid {status.st_uid}). Check "
                        "its content, then delete it or chown it to yourself."
                    )
                loose = bool(status.st_mode & OTHERS) and not stat.S_ISLNK(status.st_mode)
                if loose and not (top and entry.name == TOKEN_NAME):
                    os.chmod(entry.path, stat.S_IMODE(status.st_mode) & ~OTHERS)
                    closed += 1
                if entry.is_dir(follow_symlinks=False) and (loose or not shallow):
                    # What is installed has 100,000 files: below a folder that is closed nobody can look at them.
                    closed += _close_below(entry.path, shallow=shallow or (top and entry.name == "servers"))
            except FileNotFoundError:
                continue  # one that was just replaced
            except NotPrivate:
                raise
            except PermissionError:
                continue  # deep inside, and somebody else's: whoever opens the folder is stopped at its top
    return closed


def _has_default_acl(folder: str | int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return bool(os.getxattr(folder, _DEFAULT_ACL))
    except OSError:
        return False
