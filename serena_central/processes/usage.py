"""Measures the resources of a process and its descendants."""

from typing import NamedTuple

import psutil


class Usage(NamedTuple):
    """What a process tree takes: memory now, and CPU time of those of its processes that run."""

    memory_bytes: int = 0
    cpu_s: float = 0.0


def usage_of(pid: int) -> Usage:
    """Of a process and all its descendants; nothing when it is gone. Reads /proc for some milliseconds."""
    try:
        top = psutil.Process(pid)
        tree = [top, *top.children(recursive=True)]
    except psutil.Error:
        return Usage()
    return Usage(sum(map(_memory_of, tree)), sum(map(_cpu_s_of, tree)))


def _cpu_s_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _memory_of(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
        return getattr(full, "pss", 0) or full.rss
    except psutil.AccessDenied:
        pass
    except psutil.Error:
        return 0
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0
