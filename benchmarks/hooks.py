"""The row about hooks: a client waits for `serena-hook` before each tool that may search."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.table import Row, row, timed

TIMES = 40


def hooking(bench: Bench) -> Iterator[Row]:
    home = bench.home("warm")
    assert bench.server.port  # it runs, and knows Django
    numbers = itertools.count()
    environment = {**os.environ, "SERENA_CENTRAL_HOME": str(home)}

    def run(*arguments: str, said: str = "") -> str:
        return subprocess.run(
            [sys.executable, *arguments], input=said, env=environment, capture_output=True, text=True, check=True
        ).stdout

    def use(tool: str, **given: str) -> str:
        number = str(next(numbers))  # a session of its own: the same search is stopped once
        return json.dumps({"session_id": number, "cwd": str(bench.django), "tool_name": tool, "tool_input": given})

    def hook(said: str) -> str:
        return run("-I", "-m", "serena_central.hook", "enforce", said=said)

    stopped: list[bool] = []
    bare = timed(lambda: run("-I", "-c", "pass"), TIMES, warm_up=5)
    denied = timed(lambda: stopped.append("deny" in hook(use("Grep", pattern="class QuerySet"))), TIMES, warm_up=5)
    passed = timed(lambda: hook(use("Bash", command="make test")), TIMES, warm_up=5)
    base = sorted(bare)[TIMES // 2]
    share = f"{sum(stopped)} of {len(stopped)} answered within the cap of 15 ms"
    yield row(
        "hook: start to decision, a search that is stopped", "≤ 100 ms", denied, peer="python", base=base, note=share
    )
    yield row(
        "hook: start to decision, no search", "≤ 100 ms", passed, peer="python", base=base, note=f"python {base:.0f} ms"
    )
