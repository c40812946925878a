"""Rows about the cheap calls of a session while the server indexes another project."""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.scaling import generated
from benchmarks.table import Row, percentile

SMALL = 100
"""Files of the project of the session that is measured."""

GIANT = 100_000

EVERY_S = 0.02

ALONE_S = 5.0


def indexing_beside(bench: Bench) -> Iterator[Row]:
    """From the other project's activation until its index is filled."""
    yield _beside(bench, "Django (2,818 Python files)", bench.django, "QuerySet/bulk_create")


def indexing_giant_beside(bench: Bench) -> Iterator[Row]:
    yield _beside(bench, f"{GIANT:,} generated files", generated(GIANT), "Part7/work")


def _beside(bench: Bench, what: str, root: Path, name: str) -> Row:
    server = Server(bench.fresh_home("beside"))
    try:
        client = server.client()
        client.call("activate_project", project=str(generated(SMALL)))
        client.call("find_symbol", name_path_pattern="Part7/work")
        server.await_index()
        server.await_quiet()
        with _calls(client) as alone:
            time.sleep(ALONE_S)
        with _calls(client) as waits:
            other = server.client()
            other.call("activate_project", project=str(root))
            other.call("find_symbol", name_path_pattern=name)
            server.await_index()
            other.close()
        client.close()
    finally:
        server.stop()
    base = percentile(alone, 0.95)
    return Row(
        f"p95 of the cheapest call beside the indexing of {what}",
        "≤ 8 ms",
        percentile(waits, 0.95),
        max(waits),
        peer="alone",
        ratio=percentile(waits, 0.95) / base,
        note=f"p50 {median(waits):.1f} ms; alone p50 {median(alone):.1f}, p95 {base:.1f} ms; as p95: the longest",
    )


@contextmanager
def _calls(client: Client) -> Generator[list[float]]:
    """Calls while the block runs; the list is filled meanwhile, in milliseconds."""
    waits: list[float] = []
    ended = threading.Event()
    request = client.prepare("get_current_config")

    def call() -> None:
        while not ended.wait(EVERY_S):
            started = time.perf_counter()
            client.send(request)
            waits.append((time.perf_counter() - started) * 1000)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()
