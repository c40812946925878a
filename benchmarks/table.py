"""Figures and how they are shown: one row per budget."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured line. `ratio` compares p50 with `peer` (the floor, or what does the same work without us)."""

    name: str
    budget: str
    p50: float
    p95: float | None = None
    unit: str = "ms"
    peer: str = ""
    ratio: float | None = None
    note: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    """Of the machine when the row was done: programs that want a processor."""


def timed(work: Callable[[], Any], times: int, *, warm_up: int = 0) -> list[float]:
    """Milliseconds that each call took."""
    for _ in range(warm_up):
        work()
    taken: list[float] = []
    for _ in range(times):
        started = perf_counter()
        work()
        taken.append((perf_counter() - started) * 1000)
    return taken


def in_turns(
    one: Callable[[], Any], other: Callable[[], Any], times: int, *, warm_up: int = 2
) -> tuple[list[float], list[float]]:
    """Milliseconds that each call of both took; what else the machine does meets both."""
    timed(one, warm_up)
    timed(other, warm_up)
    pairs = [(timed(one, 1)[0], timed(other, 1)[0]) for _ in range(times)]
    return [first for first, _ in pairs], [second for _, second in pairs]


ROUNDS = 5
"""In which what is measured and its limit take turns."""


def beside(work: Callable[[], Any], limit: Callable[[], Any], times: int) -> tuple[list[float], list[float], float]:
    """Milliseconds of each call of both, and how many times the limit `work` takes: the median over rounds, in which
    what else the machine does meets both."""
    ours: list[float] = []
    theirs: list[float] = []
    ratios: list[float] = []
    timed(work, times // 10)
    timed(limit, times // 10)
    for _ in range(ROUNDS):
        first, second = timed(limit, times // ROUNDS), timed(work, times // ROUNDS)
        theirs += first
        ours += second
        ratios.append(median(second) / median(first))
    return ours, theirs, median(ratios)


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def row(
    name: str, budget: str, taken: Sequence[float], *, peer: str = "", base: float | None = None, **more: Any
) -> Row:
    """The row of repeated measurements; `base` is the peer's median in the same unit."""
    middle = median(taken)
    return Row(name, budget, middle, percentile(taken, 0.95), peer=peer, ratio=middle / base if base else None, **more)


HEAD = ("what", "budget", "p50", "p95", "ratio", "load", "notes")

QUIET_LOAD = 1.0
"""Rows above it are marked: their milliseconds are those of a busy machine, and only their ratios say much."""

BUSY = "busy"


def as_markdown(rows: Iterable[Row]) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    p95 = "" if row.p95 is None else f"{_number(row.p95)} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} × {row.peer}"
    load = f"{row.load:.1f}{' ' + BUSY if row.load > QUIET_LOAD else ''}"
    return row.name, row.budget, f"{_number(row.p50)} {row.unit}", p95, ratio, load, row.note


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def as_json(rows: Iterable[Row]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=2)
