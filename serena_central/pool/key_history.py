"""The recent history of one server key, for the dashboard: its state changes and resource use.

Bounded, and gone with the key. It measures nothing itself, and knows no process and no page.
"""

import time
from collections import deque
from collections.abc import Iterable

import msgspec

from serena_central.pool.run import Run
from serena_central.pool.state import Move

MOVES_KEPT = 50

MEASURED_KEPT = 180
"""A quarter of an hour at the reaper's usual pace."""

LEAST_APART_S = 1.0
"""Measurements that follow each other more quickly tell nothing new."""


class Transition(msgspec.Struct, frozen=True):
    """A move of one of the key's runs. `at` is Unix time."""

    at: float
    run: int
    source: str
    to: str
    reason: str


class Measured(msgspec.Struct, frozen=True):
    """What all process trees of the key took together. `at` is Unix time; 100 percent are one core."""

    at: float
    memory_bytes: int
    cpu_percent: float


class KeyHistory:
    """Belongs to the event loop's thread. `moves` and `measured` are in order, the oldest first."""

    def __init__(self) -> None:
        self.moves: deque[Transition] = deque(maxlen=MOVES_KEPT)
        self.measured: deque[Measured] = deque(maxlen=MEASURED_KEPT)

    def moved(self, run: int, move: Move) -> None:
        reason = f"{move.cause}: {move.detail}" if move.detail else str(move.cause)
        self.moves.append(Transition(time.time(), run, move.source.value, move.to.value, reason))

    def measure(self, runs: Iterable[Run]) -> None:
        """Takes down what the runs took when they were measured last."""
        now, runs = time.time(), list(runs)
        if runs and (not self.measured or now - self.measured[-1].at >= LEAST_APART_S):
            memory_bytes = sum(run.memory_bytes for run in runs)
            self.measured.append(Measured(now, memory_bytes, round(sum(run.cpu_percent for run in runs), 1)))
