"""Measures the resources of a process and its descendants."""

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
        tree = [top, *top.children(recursive=True)]
    except psutil.Error:
        return Usage()
    processes = sorted(filter(None, map(_process, tree)), key=lambda one: -one.memory_bytes)
    return Usage(sum(one.memory_bytes for one in processes), sum(map(_cpu_s_of, tree)), tuple(processes))


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
