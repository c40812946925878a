"""A lock on an open file, held until it is closed or its process ends."""

import errno
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

WAIT_S = 5.0
"""For another thread or process to finish its change, which takes milliseconds."""

_POLL_S = 0.002


@contextmanager
def locked(file: str | os.PathLike[str], wait_s: float = WAIT_S) -> Generator[None]:
    """Holds a lock file alone, among all threads and processes. It is taken before a small file is read, and kept until
    that is replaced: the small file itself can't be the lock, since it is another one after that. Blocks.

    Raises:
        TimeoutError: somebody else has held it all the time.
        OSError: it can't be made, or is a symlink.
    """
    descriptor = open_lock(file)
    try:
        deadline = time.monotonic() + wait_s
        while not lock_at_once(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "locked by another process; try again", os.fspath(file))
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def open_lock(file: str | os.PathLike[str]) -> int:
    """The descriptor of a lock file of the user's own, for `lock_at_once`. Threads of one process need one each.

    Raises:
        OSError
    """
    return os.open(file, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)


def lock_at_once(descriptor: int, *, shared: bool = False) -> bool:
    """Whether the file is ours now, or with `shared`, whether nobody has it alone. Where there are no such locks,
    everybody has it.

    Raises:
        OSError: for a file system without locks.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(file: str | os.PathLike[str]) -> bool:
    """Whether a process holds a lock file alone; False where that can't be found out."""
    try:
        # What is no lock must not hold up who asks: a pipe would be waited for.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return not lock_at_once(descriptor, shared=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
