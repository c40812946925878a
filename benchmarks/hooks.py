"""Rows about hooks: a client waits for `serena-hook` before each tool that may search."""

import itertools
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.table import Row, row, timed

TIMES = 40


def hooking(bench: Bench) -> Iterator[Row]:
    """Beside the time stands the processor's: other programs change it little."""
    assert bench.server.port  # it runs, and knows Django
    environment = {**os.environ, "SERENA_CENTRAL_HOME": str(bench.home("warm"))}
    numbers = itertools.count()
    stopped: list[bool] = []

    def run(*arguments: str, said: str = "") -> str:
        return subprocess.run(
            [sys.executable, "-I", *arguments], input=said, env=environment, capture_output=True, text=True, check=True
        ).stdout

    def hook(tool: str, **given: str) -> str:
        session = str(next(numbers))  # the same search of one session is stopped once
        use = {"session_id": session, "cwd": str(bench.django), "tool_name": tool, "tool_input": given}
        return run("-m", "serena_central.hook", "enforce", said=json.dumps(use))

    bare, bare_cpu = _measured(lambda: run("-c", "pass"))
    name = "hook: start to decision"
    taken, cpu = _measured(lambda: stopped.append("deny" in hook("Grep", pattern="class QuerySet")))
    note = (
        f"processor {cpu:.0f} ms; {sum(stopped)} of {len(stopped)} were answered within the cap of 15 ms, and stopped"
    )
    yield row(f"{name}, a search for code", "≤ 100 ms", taken, peer="python", base=median(bare), note=note)
    taken, cpu = _measured(lambda: hook("Bash", command="make test"))
    note = f"processor {cpu:.0f} ms; `python -c pass` {median(bare):.0f} ms, processor {bare_cpu:.0f} ms"
    yield row(f"{name}, no search", "≤ 100 ms", taken, peer="python", base=median(bare), note=note)


def _measured(work: Callable[[], Any]) -> tuple[list[float], float]:
    """Milliseconds of each run, and of the processor per run."""
    work()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = timed(work, TIMES)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return taken, used * 1000 / TIMES
