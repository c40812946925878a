"""Rows about the dependency graph of all of Django: cold, again, what it costs a caller meanwhile, and its page."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from urllib.parse import quote

from benchmarks.bench import Bench, Server
from benchmarks.browser import Browser
from benchmarks.client import Client
from benchmarks.latency import NAMES
from benchmarks.table import Row, row, timed

ASKS = 200
"""find_symbol alone, for the factor."""

ANALYSIS_S = 60.0

LOOKS = 20

PAUSE_S = 0.05
"""Before each call, alone and beside the graph: a caller, not a load."""


def graphing(bench: Bench) -> Iterator[Row]:
    server = Server(bench.fresh_home("graph"), SERENA_CENTRAL_INCLUDED_OPTIONAL_TOOLS="dependency_graph")
    try:
        client, drawer = bench.client_of(server), bench.client_of(server)
        client.call("find_symbol", name_path_pattern="QuerySet")
        server.await_index()
        server.await_quiet()
        alone = [_find_ms(client) for _ in range(ASKS)]
        beside: list[float] = []
        with ThreadPoolExecutor(1) as thread:
            drawing = thread.submit(_graph_s, drawer)
            while not drawing.done():
                beside.append(_find_ms(client))
        yield Row("dependency_graph of files, cold", "≤ 120 s", drawing.result(), unit="s")
        yield Row("dependency_graph of files, nothing changed", "≤ 3 s", _graph_s(drawer), unit="s")
        yield row("find_symbol beside a cold graph", "≤ 2 ×", beside, peer="alone", base=median(alone))
        yield from _pages(server, str(bench.django))
    finally:
        server.stop()


def _pages(server: Server, root: str) -> Iterator[Row]:
    """The page that draws the graph: the first look at what was not looked at before, and looking again."""
    browser, page = Browser(server), f"/dashboard/projects/one/graph?root={quote(root, safe='')}"
    browser.act("/dashboard/projects/one/analysis", root=root, kind="graph")
    deadline = time.monotonic() + ANALYSIS_S
    while 'class="drawing"' not in browser.fetch(page):
        assert time.monotonic() < deadline, "no analysis_run was made"
        time.sleep(0.2)
    looks = {
        "folded": "",
        "by folders": "&granularity=folder",
        "django/db unfolded": "&opened=django/db",
        "django/contrib alone": "&folder=django/contrib",
        "django/db/models unfolded": "&opened=django/db/models",
    }
    for name, query in looks.items():
        first = timed(lambda query=query: browser.fetch(page + query), 1)[0]
        again = timed(lambda query=query: browser.fetch(page + query), LOOKS)
        size = len(browser.fetch(page + query).encode()) / 1000
        yield row(f"graph page: {name}", "≤ 50 ms, ≤ 50 KB", again, note=f"{size:.0f} KB; first look {first:.0f} ms")


def _find_ms(client: Client) -> float:
    time.sleep(PAUSE_S)
    request = client.prepare("find_symbol", name_path_pattern=NAMES[0])
    return timed(lambda: client.send(request), 1)[0]


def _graph_s(client: Client) -> float:
    started = time.perf_counter()
    client.call("dependency_graph", granularity="file", format="json")
    return time.perf_counter() - started
