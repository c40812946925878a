"""Rows about the dashboard: what a page costs with 200 sessions, and what open pages cost the calls of agents.

Run as a program it is the browser: it reads streams, and throws away what they bring, in a process of its own.
"""

import http.client
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.client import Connection
from benchmarks.table import Row, percentile, row, timed

SESSIONS = 200
OPEN = ("/dashboard/live", "/dashboard/live/sessions")
ROUNDS = 6
SETTLED_S = 1.0


def viewing(bench: Bench) -> Iterator[Row]:
    server = Server(bench.fresh_home("dashboard"))
    try:
        others = [server.client("modern") for _ in range(SESSIONS)]
        for other in others:
            for _ in range(3):
                other.call("get_current_config")
            other.close()
        yield from _pages(server)
        yield from _calls(server)
    finally:
        server.stop()


def _pages(server: Server) -> Iterator[Row]:
    fetch = _browser(server)
    session = fetch("/dashboard/sessions").partition("/dashboard/sessions/")[2].partition('"')[0]
    for name, path in {"overview": "", "sessions": "/sessions", "one session": f"/sessions/{session}"}.items():
        size = len(fetch(f"/dashboard{path}").encode()) / 1000
        taken = timed(lambda path=path: fetch(f"/dashboard{path}"), 100, warm_up=10)
        yield row(f"page: {name}", "≤ 50 ms, ≤ 50 KB", taken, note=f"{size:.0f} KB, {SESSIONS} sessions")


def _calls(server: Server) -> Iterator[Row]:
    """Calls with and without open pages, in turns, so that what else the machine does hits both."""
    client = server.client()
    request = client.prepare("get_current_config")
    taken: dict[bool, list[float]] = {False: [], True: []}
    for watched, _ in zip(cycle(taken), range(2 * ROUNDS), strict=False):
        with _watching(server, OPEN if watched else ()):
            time.sleep(SETTLED_S)
            taken[watched] += timed(lambda: client.send(request), 500, warm_up=50)
    client.close()
    base = median(taken[False])
    without = f"without {base:.2f} ms, p95 {percentile(taken[False], 0.95):.2f} ms"
    note = f"{without}; {1000 / median(taken[True]):.0f} calls/s meanwhile"
    yield row(f"cheapest call, {len(OPEN)} pages open", "as without", taken[True], peer="without", base=base, note=note)


def _browser(server: Server) -> Callable[[str], str]:
    """A signed-in browser: address → page."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"cookie": _cookie(server)}

    def fetch(path: str) -> str:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read().decode()
        assert response.status == 200, body
        return body

    return fetch


def _cookie(server: Server) -> str:
    connection = Connection(server.port, server.token)
    _, link = connection.exchange(connection.request("POST", "/api/dashboard/link"))
    connection.close()
    browser = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    browser.request("GET", link.partition(b'"path":"')[2].partition(b'"')[0].decode())
    return (browser.getresponse().getheader("set-cookie") or "").partition(";")[0]


@contextmanager
def _watching(server: Server, paths: tuple[str, ...]) -> Iterator[None]:
    """Keeps pages open."""
    command = [sys.executable, "-m", "benchmarks.dashboard", str(server.port), _cookie(server), *paths]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def _read_streams(port: int, cookie: str, paths: list[str]) -> None:
    streams: list[http.client.HTTPResponse] = []
    for path in paths:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers={"cookie": cookie})
        streams.append(connection.getresponse())
    while streams:
        for ready in select.select(streams, [], [])[0]:
            ready.read1(1 << 20)
    time.sleep(3600)


if __name__ == "__main__":
    _read_streams(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
