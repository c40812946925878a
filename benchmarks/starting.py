"""Rows about the way from nothing to the first right answer."""

import time
from collections.abc import Iterator

from benchmarks.bench import Bench, Server
from benchmarks.table import Row, row

TIMES = 5


def starting(bench: Bench) -> Iterator[Row]:
    assert bench.django.is_dir()  # fetched before the clock starts
    name = "start to first right find_symbol"
    cold = [_first_find(bench, f"cold-{number}", keep=False) for number in range(TIMES)]
    yield row(f"{name}, no cache", "≤ 5 s", cold)
    _first_find(bench, "cached", keep=True)
    warm = [_first_find(bench, "cached", keep=False, again=True) for _ in range(TIMES)]
    yield row(f"{name}, with cache", "≤ 2.5 s", warm)


def _first_find(bench: Bench, home_name: str, *, keep: bool, again: bool = False) -> float:
    """Milliseconds from the spawn of the server; `keep` waits until its index is whole before it is stopped."""
    home = bench.home(home_name) if again else bench.fresh_home(home_name)
    server = Server(home)
    try:
        client = server.client()
        client.call("activate_project", project=str(bench.django))
        answer = client.call("find_symbol", name_path_pattern="QuerySet/bulk_create")
        taken = (time.perf_counter() - server.spawned) * 1000
        assert b"django/db/models/query.py" in answer
        if keep:
            server.await_index()
        client.close()
    finally:
        server.stop()
    return taken
