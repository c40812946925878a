"""Whether this user may read a file, mostly told by what a listing knows of it already."""

import os
import stat

_ALL_MAY = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


def may_read(path: str, status: os.stat_result) -> bool:
    """The kernel is asked only where the mode leaves it open: it knows of groups, access lists, and of root."""
    return status.st_mode & _ALL_MAY == _ALL_MAY or os.access(path, os.R_OK)
