"""Rows about the dependency graph of all of Django: cold, again, and what it costs a caller meanwhile."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.latency import NAMES
from benchmarks.table import Row, row, timed

ASKS = 200
"""find_symbol alone, for the factor."""

BESIDE_S = 0.05
"""Between two calls beside the graph: a caller, not a load."""


def graphing(bench: Bench) -> Iterator[Row]:
    server = Server(bench.fresh_home("graph"), SERENA_CENTRAL_INCLUDED_OPTIONAL_TOOLS="dependency_graph")
    try:
        client, drawer = bench.client_of(server), bench.client_of(server)
        client.call("find_symbol", name_path_pattern="QuerySet")
        server.await_index()
        server.await_quiet()
        alone = _finds(client, ASKS)
        beside: list[float] = []
        with ThreadPoolExecutor(1) as thread:
            drawing = thread.submit(_graph_s, drawer)
            while not wait([drawing], BESIDE_S).done:
                beside += _finds(client, 1)
        yield Row("dependency_graph of files, cold", "≤ 120 s", drawing.result(), unit="s")
        yield Row("dependency_graph of files, nothing changed", "≤ 3 s", _graph_s(drawer), unit="s")
        yield row("find_symbol beside a cold graph", "≤ 2 ×", beside, peer="alone", base=median(alone))
    finally:
        server.stop()


def _finds(client: Client, times: int) -> list[float]:
    request = client.prepare("find_symbol", name_path_pattern=NAMES[0])
    return timed(lambda: client.send(request), times)


def _graph_s(client: Client) -> float:
    started = time.perf_counter()
    client.call("dependency_graph", granularity="file", format="json")
    return time.perf_counter() - started
