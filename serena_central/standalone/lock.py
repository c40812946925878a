"""A lock on an open file, held until it is closed or its process ends."""

import sys


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
