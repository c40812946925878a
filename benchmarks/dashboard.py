"""Rows about the dashboard, as on a full box: 200 sessions, 50 language servers (real processes, scripted), and agents
that call a thousand times a second. What a page costs, what open pages cost the calls, and how soon a kill is felt.

Run as a program it is what stands beside the server, in a process of its own: a browser that reads streams and throws
away what they bring, or agents that call.
"""

import http.client
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from urllib.parse import quote

from benchmarks.bench import Bench, Server
from benchmarks.browser import Browser, cookie_of
from benchmarks.client import Client, Refused
from benchmarks.table import Row, percentile, row, timed
from tests.support.scripted import scripted_project, scripted_ty

SESSIONS = 200
SERVERS = 50
OPEN = ("/dashboard/live", "/dashboard/live/sessions", "/dashboard/live/servers")
LOOKS = 40
LOOK_EVERY_S = 0.05
ROUNDS = 6
SETTLED_S = 1.0

CALLS_PER_S = 1000
CALLERS = 2

KILLS = 10


def viewing(bench: Bench) -> Iterator[Row]:
    folder = bench.fresh_home("dashboard")
    scripted_ty(folder)
    server = Server(folder / "home", SERENA_CENTRAL_EXECUTE_SHELL="true")
    try:
        for _ in range(SESSIONS):
            other = server.client("modern")
            for _ in range(3):
                other.call("get_current_config")
            other.close()
        root = _start_servers(server, folder)
        yield from _pages(server, root)
        yield from _calls(server)
        yield _killing(server, root)
    finally:
        server.stop()


def _start_servers(server: Server, folder: Path) -> Path:
    """A language server for each of as many projects; the root of one of them."""
    client = server.client()
    for number in range(SERVERS):
        root = scripted_project(folder, f"project-{number}")
        client.call("find_symbol", name_path_pattern="Cart/total", project=str(root))
    client.close()
    running = [one for one in server.get("/api/v1/servers")["servers"] if one["pid"]]
    assert len(running) == SERVERS, running
    return root


def _pages(server: Server, root: Path) -> Iterator[Row]:
    """Pages while nobody calls, and while agents do."""
    fetch = Browser(server).fetch
    session = fetch("/dashboard/sessions").partition("/dashboard/sessions/")[2].partition('"')[0]
    one = server.get("/api/v1/servers")["servers"][0]["id"]
    pages = {
        "overview": "",
        "sessions": "/sessions",
        "one session": f"/sessions/{session}",
        "servers": "/servers",
        "one server": f"/servers/{one}",
        "projects": "/projects",
        "one project": f"/projects/one?root={quote(str(root))}",
        "events": "/events",
        "statistics": "/statistics",
    }

    def measured(path: str) -> list[float]:
        taken: list[float] = []
        for _ in range(LOOKS):
            time.sleep(LOOK_EVERY_S)
            taken += timed(lambda: fetch(f"/dashboard{path}"), 1)
        return taken

    quiet = {name: median(measured(path)) for name, path in pages.items()}
    with calling(server, CALLS_PER_S):
        time.sleep(SETTLED_S)
        for name, path in pages.items():
            before, began = calls_made(server), time.perf_counter()
            taken = measured(path)
            per_s = (calls_made(server) - before) / (time.perf_counter() - began)
            size = len(fetch(f"/dashboard{path}").encode()) / 1000
            note = f"{size:.0f} KB; {per_s:.0f} calls/s beside it; quiet {quiet[name]:.3g} ms"
            yield row(f"page: {name}", "≤ 50 ms, ≤ 50 KB", taken, peer="quiet", base=quiet[name], note=note)


def calls_made(server: Server) -> int:
    """By the sessions that there are."""
    return sum(one["tool_call_count"] for one in server.get("/api/v1/sessions")["sessions"])


def _calls(server: Server) -> Iterator[Row]:
    """Calls with and without open pages, in turns, so that what else the machine does hits both."""
    client = server.client()
    request = client.prepare("get_current_config")
    taken: dict[bool, list[float]] = {False: [], True: []}
    for watched, _ in zip(cycle(taken), range(2 * ROUNDS), strict=False):
        with _beside("watch", str(server.port), cookie_of(server), *(OPEN if watched else ())):
            time.sleep(SETTLED_S)
            taken[watched] += timed(lambda: client.send(request), 500, warm_up=50)
    client.close()
    base = median(taken[False])
    without = f"without {base:.2f} ms, p95 {percentile(taken[False], 0.95):.2f} ms"
    note = f"{without}; {1000 / median(taken[True]):.0f} calls/s meanwhile"
    yield row(f"cheapest call, {len(OPEN)} pages open", "as without", taken[True], peer="without", base=base, note=note)


def _killing(server: Server, root: Path) -> Row:
    """From the button to the end of a call that would have taken a minute, while agents call."""
    with calling(server, CALLS_PER_S):
        time.sleep(SETTLED_S)
        taken = [_kill(server, root) for _ in range(KILLS)]
    return row("from Terminate to the end of the running call", "≤ 1 s", taken, note=f"of {KILLS} kills")


def _kill(server: Server, root: Path) -> float:
    """Milliseconds."""
    client = server.client("modern")
    client.call("activate_project", project=str(root))
    ended: list[float] = []

    def work() -> None:
        try:
            client.call("execute_shell_command", command="sleep 60")
        except Refused:
            ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    session = ""
    while not session:
        found = server.get("/api/v1/sessions")["sessions"]
        session = next((one["session_id"] for one in found if "execute_shell_command" in one["running"]), "")
    browser = Browser(server)
    began = time.perf_counter()
    browser.act("/dashboard/terminate", session=session)
    thread.join()
    client.close()
    return (ended[0] - began) * 1000


# --- beside the server ------------------------------------------------------------------------------------------------


@contextmanager
def calling(server: Server, per_s: int) -> Iterator[None]:
    """Agents call so often meanwhile, or as often as the machine can."""
    with _beside("call", str(server.port), server.token, str(per_s)):
        yield


@contextmanager
def _beside(*what: str) -> Iterator[None]:
    """Runs this module as a program meanwhile."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.dashboard", *what])
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def _watch(port: int, cookie: str, paths: list[str]) -> None:
    streams: list[http.client.HTTPResponse] = []
    for path in paths:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers={"cookie": cookie})
        streams.append(connection.getresponse())
    while streams:
        for ready in select.select(streams, [], [])[0]:
            ready.read1(1 << 20)
    time.sleep(3600)


def _call(port: int, token: str, per_s: int) -> None:
    def work() -> None:
        client = Client(port, token)
        request = client.prepare("get_current_config")
        due = time.perf_counter()
        while True:
            due = max(due + CALLERS / per_s, time.perf_counter() - 1)
            time.sleep(max(0.0, due - time.perf_counter()))
            client.send(request)

    for _ in range(CALLERS):
        threading.Thread(target=work).start()


if __name__ == "__main__":
    kind, port, secret, *more = sys.argv[1:]
    if kind == "watch":
        _watch(int(port), secret, more)
    else:
        _call(int(port), secret, int(more[0]))
