"""Finds the working folders of this process's ancestors (Linux): a client may start the proxy in a folder of its
own."""

import os

MOST_ANCESTORS = 16


def nearest_other_folder(folder: str) -> str | None:
    """The folder of the nearest ancestor that works in another one; None where that can't be known."""
    process = os.getppid()
    for _ in range(MOST_ANCESTORS):
        try:
            theirs = os.readlink(f"/proc/{process}/cwd")
            with open(f"/proc/{process}/stat", "rb") as stream:
                stat = stream.read()
        except OSError:  # another user's, gone, or no Linux
            return None
        if theirs != folder:
            return theirs
        process = int(stat.rpartition(b")")[2].split()[1])  # the name before may hold anything
    return None
