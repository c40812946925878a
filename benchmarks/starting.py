"""Rows about the way from nothing to the first right answer, beside that of an interpreter that does nothing."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.table import Row, percentile, timed

TIMES = 5

SHOWN = 10
"""Packages of which the import is named."""

IMPORTS = (
    "import serena_central.cli.main, serena_central.cli.serve; from serena_central.app import CentralServer, build"
)
"""What `serena-central serve` imports before it answers."""


def starting(bench: Bench) -> Iterator[Row]:
    assert bench.django.is_dir()  # fetched before the clock starts
    name = "start to first right find_symbol"
    yield _beside_python(f"{name}, no cache", "≤ 1.5 s", lambda turn: _first_find(bench, f"cold-{turn}", keep=False))
    _first_find(bench, "cached", keep=True)
    yield _beside_python(
        f"{name}, with cache", "≤ 1.2 s", lambda _: _first_find(bench, "cached", keep=False, again=True)
    )
    yield _importing()


def _beside_python(name: str, budget: str, first_find: Callable[[int], tuple[float, float]]) -> Row:
    """In turns with `python -c pass`."""
    pairs = [(_python_ms(), first_find(turn)) for turn in range(TIMES)]
    taken = [whole for _, (whole, _) in pairs]
    processor = median(processor for _, (_, processor) in pairs)
    ratio = median(whole / python for python, (whole, _) in pairs)
    note = (
        f"python {median(python for python, _ in pairs):.0f} ms; processor {processor:.0f} ms, language server included"
    )
    return Row(name, budget, median(taken), percentile(taken, 0.95), peer="python -c pass", ratio=ratio, note=note)


def _importing() -> Row:
    """What is imported before the first answer; the largest packages by their own modules, without what they import."""
    pairs = [(_python_ms(), _run_ms(IMPORTS)) for _ in range(TIMES)]
    said = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", IMPORTS], stderr=subprocess.PIPE, text=True, check=True
    )
    packages: Counter[str] = Counter()
    for line in said.stderr.splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            parts = name.strip().split(".")
            packages[".".join(parts[: 2 if parts[0] == "serena_central" else 1])] += int(own)
    largest = ", ".join(f"{name} {us / 1000:.0f}" for name, us in packages.most_common(SHOWN))
    taken = [ours for _, ours in pairs]
    ratio = median(ours / python for python, ours in pairs)
    return Row(
        "imports before the first answer",
        "",
        median(taken),
        percentile(taken, 0.95),
        peer="python -c pass",
        ratio=ratio,
        note=f"ms by -X importtime, which takes longer: {largest}",
    )


def _python_ms() -> float:
    return _run_ms("pass")


def _run_ms(code: str) -> float:
    return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True), 1)[0]


def _first_find(bench: Bench, home_name: str, *, keep: bool, again: bool = False) -> tuple[float, float]:
    """Milliseconds from the spawn of the server, and of the processor; `keep` waits until its index is whole before it
    is stopped."""
    home = bench.home(home_name) if again else bench.fresh_home(home_name)
    server = Server(home)
    try:
        client = server.client()
        client.call("activate_project", project=str(bench.django))
        answer = client.call("find_symbol", name_path_pattern="QuerySet/bulk_create")
        taken = (time.perf_counter() - server.spawned) * 1000
        processor = server.processor_ms()
        assert b"django/db/models/query.py" in answer
        if keep:
            server.await_index()
        client.close()
    finally:
        server.stop()
    return taken, processor
