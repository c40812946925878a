"""Rows about usage: 1 GB of generated transcripts read first, beside ccusage, and again; appending; resuming."""

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

from benchmarks.bench import Bench
from benchmarks.native_transcripts import Native
from benchmarks.table import Row, row, timed
from serena_central.transcripts.reader import records
from serena_central.transcripts.records import UserMessage
from serena_central.transcripts.writer import TranscriptWriter

SIZE = int(os.environ.get("BENCH_USAGE_BYTES", "1_000_000_000"))

CCUSAGE = os.environ.get("CCUSAGE", "")
"""The program to compare with: npm's ccusage is not installed here."""

FIRST = """
import sys, time, resource
from pathlib import Path
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.counting import update
from serena_central.transcripts.roots import roots_of
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import report
from datetime import datetime, UTC
home = Path(sys.argv[1])
started = time.perf_counter()
with UsageStore(home / "usage.db") as store:
    done = update(store, roots_of(home, {}), Prices())
    total = report(store, "day", now=datetime.now(UTC)).total
taken = (time.perf_counter() - started) * 1000
print(taken, total.requests, total.cost, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def using(_bench: Bench) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        size = Native(home / ".claude" / "projects").write(SIZE)
        what = f"usage of {size / 1e9:.1f} GB of transcripts"
        _run(home)  # compiles what an installed package brings compiled
        first, again, peers, notes = [], [], [], ""
        worked, peers_worked = [], []
        for _ in range(5):  # in turns: both meet the same load
            for store in home.glob("usage.db*"):
                store.unlink()
            began = _processor_ms()
            taken, _requests, cost, memory = _run(home)
            first.append(taken)
            worked.append(_processor_ms() - began)
            again += [_run(home)[0] for _ in range(5)]
            notes = f"{memory:.0f} MB, ${cost:.4f}"
            if CCUSAGE:
                began = _processor_ms()
                taken, cost = _ccusage(home)
                peers.append(taken)
                peers_worked.append(_processor_ms() - began)
                notes += f"; ccusage ${cost:.4f}"
        base = median(peers) if peers else None
        yield row(f"{what}, first run", "≤ 2 × ccusage", first, peer="ccusage", base=base, note=notes)
        # Both use several processes or threads: what others leave of the cores decides how long they take.
        base_worked = median(peers_worked) if peers_worked else None
        yield row(f"{what}, first run, CPU time", "≤ 2 × ccusage", worked, peer="ccusage", base=base_worked)
        yield row(f"{what}, second run", "≤ 100 ms", again, peer="ccusage", base=base)
        yield from _own(home)


def _processor_ms() -> float:
    """CPU time of all children that have ended, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def _run(home: Path) -> tuple[float, int, float, float]:
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "compiled")}
    command = [sys.executable, "-c", FIRST, str(home)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    taken, requests, cost, memory = done.stdout.split()
    return float(taken), int(requests), float(cost), float(memory)


def _ccusage(home: Path) -> tuple[float, float]:
    """Milliseconds, and the cost."""
    started = perf_counter()
    command = [CCUSAGE, "daily", "--offline", "--json"]
    shown = subprocess.run(command, env={"HOME": str(home)}, capture_output=True, check=True, text=True).stdout
    return (perf_counter() - started) * 1000, float(re.findall(r'"totalCost": ([\d.]+)', shown)[-1])


def _own(home: Path) -> Iterator[Row]:
    writer = TranscriptWriter(home / "own", "/home/u/proj")
    session = uuid4()

    def append() -> None:
        writer.append(UserMessage(session_id=session, timestamp=datetime.now(UTC), content="Where is the cart? " * 20))

    taken = timed(append, 1000)
    yield row("append to a transcript", "p99 ≤ 2 ms", taken, note=f"p99 {sorted(taken)[990]:.3f} ms")
    found: list[Any] = []
    taken = timed(lambda: found.append(sum(1 for _ in records(writer.folder, session, print))), 10)
    assert found[0] == 1000
    yield row("resume of 1,000 lines", "≤ 100 ms", taken)
    writer.close()
