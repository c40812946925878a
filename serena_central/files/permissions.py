"""Whether this user may read a file or list a folder, mostly told by what a listing knows of it already."""

import os
import stat

_ALL_READ = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_ALL_ENTER = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def may_read(path: str, status: os.stat_result) -> bool:
    """For a folder, whether it may be entered, too. The kernel is asked only where the mode leaves it open: it knows of
    groups, access lists, and of root."""
    is_folder = stat.S_ISDIR(status.st_mode)
    all_may = _ALL_READ | _ALL_ENTER if is_folder else _ALL_READ
    return status.st_mode & all_may == all_may or os.access(path, os.R_OK | os.X_OK if is_folder else os.R_OK)
