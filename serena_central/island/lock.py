"""A lock on an open file, held until it is closed or its process ends."""

import sys


def lock_at_once(descriptor: int) -> bool:
    """Whether the file is ours now. Where there are no such locks, everybody has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
