"""Which processes lie below one, and what each has taken so far, without a look at all others of the machine.

On Linux that is one small read for each process and each of its threads. Elsewhere, or with a kernel built without
`children`, psutil is asked.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

READ_BYTES = 4096
"""More than a `stat` has, and than the children of most threads need."""

_FIELDS = 22
"""Of /proc/PID/stat from the third on (proc(5)), as many as are needed."""
_PARENT, _TAKEN, _STARTED, _RESIDENT = 1, slice(11, 15), 19, 21


class Process(NamedTuple):
    """One process at a moment. `started` tells it from others of the same pid: clock ticks since the machine's start on
    Linux, else Unix seconds. `cpu_s` is its own time and that of children which it has waited for. `resident` is in
    units of the platform's own, and good for comparison alone."""

    pid: int
    parent: int
    started: float
    cpu_s: float
    resident: int


def look_at(pid: int) -> Process | None:
    """None when it is gone, or may not be looked at."""
    if not has_children_files():
        return _by_psutil(pid)
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, _FIELDS)
        taken = sum(map(int, fields[_TAKEN]))
        return Process(pid, int(fields[_PARENT]), int(fields[_STARTED]), taken / _TICKS_PER_S, int(fields[_RESIDENT]))
    except (OSError, IndexError):
        return None


def below(pid: int) -> list[int]:
    """Pids of all processes below one; none when it is gone."""
    if not has_children_files():
        try:
            return [one.pid for one in psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return []
    found: list[int] = []
    above = [pid]
    while above:
        children = _children(above.pop())
        found += children
        above += children
    return found


def has_children_files() -> bool:
    """Whether the kernel names a thread's children (not all are built so)."""
    return _HAS_CHILDREN_FILES


def _children(pid: int) -> list[int]:
    """Those of all threads of a process; none once it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names alone
            with suppress(OSError):
                found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while len(more := os.read(descriptor, READ_BYTES)) == READ_BYTES:
            text += more
        return text + more
    finally:
        os.close(descriptor)


def _by_psutil(pid: int) -> Process | None:
    try:
        one = psutil.Process(pid)
        with one.oneshot():
            times = one.cpu_times()
            return Process(pid, one.ppid(), one.create_time(), sum(times[:4]), one.memory_info().rss)
    except psutil.Error:
        return None


_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_HAS_CHILDREN_FILES = Path(f"/proc/self/task/{os.getpid()}/children").exists()
