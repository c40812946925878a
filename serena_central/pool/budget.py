"""The memory budget: how much all language servers may use together, and which ones to stop when they exceed it.
It decides, and leaves the stopping to the reaper."""

import logging
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from serena_central.pool.run import Run
from serena_central.pool.state import RunState

logger = logging.getLogger(__name__)

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def machine_memory_bytes() -> int:
    """What this machine has, or this container may use (cgroup v2)."""
    total = psutil.virtual_memory().total
    try:
        return min(total, int(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return total


SETTLED_S = 1.0
"""An idle run that was in use so recently may be in the middle of a call that asks it several questions."""


class Room(NamedTuple):
    """`retire` are idle runs: those that hold more than half of the budget, then those least recently used.
    `used_bytes` is what is left in use after they are gone."""

    retire: list[Run]
    used_bytes: int


def make_room(runs: Iterable[Run], budget_bytes: int, needed_bytes: int = 0, *, idle_until: float = math.inf) -> Room:
    """Chooses runs, idle since `idle_until` at least, until `needed_bytes` fit or none is left. What is on its way out
    doesn't count."""
    holding = [run for run in runs if run.life.state in _HOLDS_MEMORY or run.life.facts.leases]

    def order(run: Run) -> tuple[bool, float]:
        # One that a heavy answer has grown beyond half of the budget would have all others retired for its sake.
        return run.expected_memory_bytes <= budget_bytes // 2, run.life.facts.moved_at

    idle = sorted(
        (run for run in holding if run.life.state is RunState.IDLE and run.life.facts.moved_at <= idle_until), key=order
    )
    used = sum(run.expected_memory_bytes for run in holding)
    retire: list[Run] = []
    for run in idle:
        if used + needed_bytes <= budget_bytes:
            break
        retire.append(run)
        used -= run.expected_memory_bytes
    return Room(retire, used)


_HOLDS_MEMORY = frozenset({RunState.CONNECTING, RunState.IDLE, RunState.IN_USE})
