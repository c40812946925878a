"""The stamp of a file: its `stat` data, small enough to keep for every file and to compare at every use.

Two equal stamps mean the same content, except for a file that was changed twice within the clock's granularity; callers
that cache a file's content apply git's racy rule to fresh ones (hash again), this module does not.
"""

import os

import msgspec

RACY_NS = 2_000_000_000
"""The coarsest clock of a file system: what was read this soon after a file's last change is not kept for its stamp,
since a second change within it would leave the same."""


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """`size` in bytes, times in nanoseconds since 1970. Nothing that the garbage collector would look at."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
