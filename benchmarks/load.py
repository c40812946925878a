"""Rows about many clients: memory of an idle one, calls per second of sixteen, memory of server and language server."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks.bench import Bench
from benchmarks.client import Client, Era
from benchmarks.latency import NAMES, QUERY
from benchmarks.table import Row

IDLE = 400
CLIENTS = 16
LOAD_S = 6.0
FLOOR_S = 2.0


def idling(bench: Bench) -> Iterator[Row]:
    eras: tuple[Era, ...] = ("handshake", "modern")
    server = bench.server.tree[0]
    for era in eras:
        warm = [_idle_client(bench, era) for _ in range(50)]  # what grows once, is not a session's
        before = proportional_bytes(server)
        clients = [_idle_client(bench, era) for _ in range(IDLE)]
        grown = (proportional_bytes(server) - before) / 1024 / IDLE
        yield Row(f"one more idle session, {era} era", "≤ 100 KB", grown, unit="KB", note=f"mean of {IDLE}")
        for client in warm + clients:
            client.close()


def _idle_client(bench: Bench, era: Era) -> Client:
    client = bench.server.client(era)
    if era == "modern":
        client.call("get_current_config")  # its first request makes the session
    return client


def crowding(bench: Bench) -> Iterator[Row]:
    clients = [bench.client_of(bench.server) for _ in range(CLIENTS)]
    counts = [0] * CLIENTS
    processor = bench.server.processor_ms()
    ends = time.perf_counter() + LOAD_S

    def work(number: int) -> None:
        client = clients[number]
        requests = [client.prepare("find_symbol", name_path_pattern=name) for name in NAMES]
        while time.perf_counter() < ends:
            client.send(requests[counts[number] % len(requests)])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    share = min(counts) / (sum(counts) / CLIENTS)
    rate = sum(counts) / LOAD_S
    used = (bench.server.processor_ms() - processor) / sum(counts)
    floor = _floor_rate(bench, clients[0].prepare("find_symbol", name_path_pattern=NAMES[0]))
    note = f"the slowest client got {share:.0%} of a fair share; processor {used:.2f} ms a call; floor {floor:.0f}/s"
    what = f"{CLIENTS} clients, project-wide finds"
    yield Row(what, "≥ 1000/s", rate, unit="/s", peer="floor", ratio=rate / floor, note=note)


def _floor_rate(bench: Bench, like: bytes) -> float:
    """Exchanges a second of as many connections with the bare endpoint."""
    exchanges = [bench.floor(like, own=True) for _ in range(CLIENTS)]
    counts = [0] * CLIENTS
    ends = time.perf_counter() + FLOOR_S

    def work(number: int) -> None:
        while time.perf_counter() < ends:
            exchanges[number]()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / FLOOR_S


def weighing(bench: Bench) -> Iterator[Row]:
    for client in [bench.client_of(bench.server) for _ in range(4)]:
        for name in NAMES:
            client.call("find_symbol", name_path_pattern=name)
        client.call("get_symbols_overview", relative_path=QUERY)
        client.call("find_referencing_symbols", name_path="slugify", relative_path="django/utils/text.py")
    tree = bench.server.tree
    own, others = proportional_bytes(tree[0]), sum(map(proportional_bytes, tree[1:]))
    note = f"server {own / 1e6:.0f}, language server and its guard {others / 1e6:.0f}"
    yield Row("PSS with 4 clients on Django", "≤ 750 MB", (own + others) / 1e6, unit="MB", note=note)


def proportional_bytes(process: psutil.Process) -> int:
    """Bytes of proportional set size (Linux)."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
