"""The memory budget: how much all language servers may use together, with what else counts into it, and which ones to
stop when they exceed it. It decides, and leaves the stopping to the reaper."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from serena_central.core.quoting import quoted
from serena_central.pool.run import Run
from serena_central.pool.state import RunState

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

_RECLAIMABLE = ("inactive_file", "active_file", "slab_reclaimable")
"""Of a cgroup's memory.stat: what Linux counts as available of a whole machine, too."""


def machine_memory_bytes() -> int:
    """What this machine has, or this container may use (cgroup v2)."""
    total = psutil.virtual_memory().total
    try:
        return min(total, int(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return total


def free_memory_bytes() -> int:
    """What can still be allocated without swapping, on this machine or in this container (cgroup v2)."""
    free = psutil.virtual_memory().available
    try:
        limit, used = int(_CGROUP_LIMIT.read_text()), int(_CGROUP_LIMIT.with_name("memory.current").read_text())
        stat = dict(line.split() for line in _CGROUP_LIMIT.with_name("memory.stat").read_text().splitlines())
        # Files that were read are given up first, also those that were read often.
        return min(free, limit - used + sum(int(stat.get(kind, 0)) for kind in _RECLAIMABLE))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return free


CRITICAL_SHARE = 1 / 20
"""Of the machine's memory: where less is free, and the budget exceeded, a server in use is ended, too. The machine
would swap, or the kernel would choose whom to kill."""

SETTLED_S = 1.0
"""An idle run that was in use so recently may be in the middle of a call that asks it several questions."""


class Holder(NamedTuple):
    """What holds memory of the budget: a language server, or a process tree that others run. `idle_since` (the pool's
    clock) is None where it must not be stopped; `stop` is called with the reason."""

    name: str
    memory_bytes: int
    idle_since: float | None
    stop: Callable[[str], None]


class OtherProcess(NamedTuple):
    """A process tree that counts into the budget beside the language servers. `idle_s` is None where it must not be
    stopped."""

    name: str
    pid: int
    idle_s: float | None
    stop: Callable[[str], None]


class CachedMemory(NamedTuple):
    """What this process keeps in memory to answer faster, beside the language servers. `drop` frees it all."""

    name: str
    memory_bytes: int
    idle_s: float
    drop: Callable[[], None]


class Room(NamedTuple):
    """`retire` are idle ones: those that hold more than half of the budget, then those least recently used.
    `used_bytes` is what is left in use after they are gone."""

    retire: list[Holder]
    used_bytes: int


def holders_of(runs: Iterable[Run], stop: Callable[[Run, str], None]) -> list[Holder]:
    """Those of some runs that hold memory: what is on its way out doesn't count."""
    return [
        Holder(
            f"{run.wanted.spec.name} in {quoted(run.wanted.root.name)}",
            run.expected_memory_bytes,
            run.life.facts.moved_at if run.life.state is RunState.IDLE else None,
            partial(stop, run),
        )
        for run in runs
        if run.life.state in _HOLDS_MEMORY or run.life.facts.leases
    ]


def make_room(
    holding: Sequence[Holder], budget_bytes: int, needed_bytes: int = 0, *, idle_until: float = math.inf
) -> Room:
    """Chooses those that are idle since `idle_until` at least, until `needed_bytes` fit or none is left."""

    def order(one: Holder) -> tuple[bool, float]:
        # One that a heavy answer has grown beyond half of the budget would have all others retired for its sake.
        return one.memory_bytes <= budget_bytes // 2, one.idle_since or 0.0

    idle = sorted((one for one in holding if one.idle_since is not None and one.idle_since <= idle_until), key=order)
    used = sum(one.memory_bytes for one in holding)
    retire: list[Holder] = []
    for one in idle:
        if used + needed_bytes <= budget_bytes:
            break
        retire.append(one)
        used -= one.memory_bytes
    return Room(retire, used)


_HOLDS_MEMORY = frozenset({RunState.CONNECTING, RunState.IDLE, RunState.IN_USE})
