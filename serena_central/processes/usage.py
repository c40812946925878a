"""Measures the resources of a process and its descendants."""

from typing import NamedTuple

import msgspec
import psutil

from serena_central.processes.tree import Process, below, look_at


class ProcessUsage(msgspec.Struct, frozen=True):
    """One process of a tree. Of its memory `own_bytes` are no files: its heap, stacks and what it has written."""

    pid: int
    name: str
    memory_bytes: int
    own_bytes: int


class Usage(NamedTuple):
    """What a process tree takes: memory now, and CPU time so far, of programs that have ended, too."""

    memory_bytes: int = 0
    cpu_s: float = 0.0
    processes: tuple[ProcessUsage, ...] = ()
    """Those that could be looked at, the largest first."""


class TreeUsage:
    """Measures one tree again and again. The kernel adds up a process's pages, for milliseconds; so the memory of one
    that has neither run nor grown or shrunk since the last time is taken from then. Safe from any thread."""

    def __init__(self) -> None:
        self._measured: dict[Process, ProcessUsage] = {}

    def of(self, pid: int) -> Usage:
        """Of a process and all its descendants; nothing when it is gone. Reads /proc for some milliseconds."""
        if look_at(pid) is None:
            return Usage()
        before, measured = self._measured, dict[Process, ProcessUsage]()
        cpu_s = 0.0
        # Children first: the time of one that ends meanwhile is its parent's then.
        for one in [*filter(None, map(look_at, reversed([pid, *below(pid)])))]:
            cpu_s += one.cpu_s
            if (usage := before.get(one) or _measure(one.pid)) is not None:
                measured[one] = usage
        self._measured = measured
        processes = sorted(measured.values(), key=lambda one: -one.memory_bytes)
        return Usage(sum(one.memory_bytes for one in processes), cpu_s, tuple(processes))


def usage_of(pid: int) -> Usage:
    """Measured once."""
    return TreeUsage().of(pid)


def _measure(pid: int) -> ProcessUsage | None:
    try:
        one = psutil.Process(pid)
        name = one.name()
        try:
            full = one.memory_full_info()
        except psutil.AccessDenied:
            resident: int = one.memory_info().rss
            return ProcessUsage(pid, name, resident, resident)
    except psutil.Error:
        return None
    memory = getattr(full, "pss", 0) or full.rss
    return ProcessUsage(pid, name, memory, min(full.uss, memory))
