"""Returns freed memory that the C library's allocator keeps to the system."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_MMAP_THRESHOLD = -3
_ARENA_MAX = -8
"""Of mallopt(3)."""

LARGE_BYTES = 1 << 17
"""Blocks from this size on go back to the system at once: texts are read and thrown away by the thousand. By itself
glibc raises this to 32 MB with each such block, and keeps what lies between blocks that stay."""

ARENAS = 2
"""Heaps that threads share; by itself one for each thread, each with holes of its own."""

SHORT_LIVED_BYTES = 1 << 25
"""Of texts that are read and thrown away before what they left is returned, which takes 3 ms: a gigabyte of them leaves
100 MB of holes."""

_read = 0
"""Bytes since then, about: several threads count at once."""


def read_shortly(size: int) -> None:
    """Counts what a worker thread has read and soon frees; now and then it waits for `give_back`."""
    global _read  # noqa: PLW0603 (the allocator is the process's own)
    _read += size
    if _read >= SHORT_LIVED_BYTES:
        _read = 0
        give_back()


def give_back() -> None:
    """Returns what is free now, where the C library is glibc; takes milliseconds: call it in a thread."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def keep_little() -> None:
    """Bounds that, where the C library is glibc; does nothing elsewhere."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_ARENA_MAX, ARENAS)


@cache
def _of_glibc(name: str) -> Callable[..., Any] | None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return getattr(libc, name, None)
