"""Measures the resources of a process and its descendants."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil


class ProcessUsage(msgspec.Struct, frozen=True):
    """One process of a tree. Of its memory `own_bytes` are no files: its heap, stacks and what it has written."""

    pid: int
    name: str
    memory_bytes: int
    own_bytes: int


class Usage(NamedTuple):
    """What a process tree takes: memory now, and CPU time of those of its processes that run."""

    memory_bytes: int = 0
    cpu_s: float = 0.0
    processes: tuple[ProcessUsage, ...] = ()
    """Those that could be looked at, the largest first."""


def usage_of(pid: int) -> Usage:
    """Of a process and all its descendants; nothing when it is gone. Reads /proc for some milliseconds."""
    try:
        top = psutil.Process(pid)
        tree = [top, *descendants(top)]
    except psutil.Error:
        return Usage()
    processes = sorted(filter(None, map(_process, tree)), key=lambda one: -one.memory_bytes)
    return Usage(sum(one.memory_bytes for one in processes), sum(map(_cpu_s_of, tree)), tuple(processes))


def descendants(top: psutil.Process) -> list[psutil.Process]:
    """All processes below one.

    Raises:
        psutil.Error: it is gone.
    """
    if not Path(f"/proc/{top.pid}/task/{top.pid}/children").exists():  # not Linux, or a kernel built without it
        return top.children(recursive=True)
    # psutil would read of every process on the machine whose child it is, each time.
    found: list[psutil.Process] = []
    above = [top.pid]
    while above:
        for pid in _children(above.pop()):
            with suppress(psutil.Error):
                found.append(psutil.Process(pid))
                above.append(pid)
    return found


def _children(pid: int) -> list[int]:
    """Those of all threads of a process; none once it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def _cpu_s_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _process(process: psutil.Process) -> ProcessUsage | None:
    try:
        name = process.name()
        try:
            full = process.memory_full_info()
        except psutil.AccessDenied:
            resident: int = process.memory_info().rss
            return ProcessUsage(process.pid, name, resident, resident)
    except psutil.Error:
        return None
    memory = getattr(full, "pss", 0) or full.rss
    return ProcessUsage(process.pid, name, memory, min(full.uss, memory))
