"""Rows about a cluster on one machine: what a call costs more by it, and how long a loss keeps the next answer waiting.

They need Ray: `make bench ARGS=cluster` runs them in the environment of `make test-cluster`.
"""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from benchmarks.bench import Bench, Server, processor_ms
from benchmarks.client import Client
from benchmarks.table import Row, in_turns, percentile, row
from tests.cluster.conftest import RunningCluster, running_cluster

CALLS = 200
LOSSES = 5

CLIENTS = 8
RATE_CALLS = 250
"""Of each client."""

SPREADS = {1: ["all/p1", "all/p2", "all/p3", "all/p4"], 2: ["left/p1", "left/p2", "right/p3", "right/p4"]}
SPREADS |= {4: ["p1", "p2", "p3", "p4"]}
"""Four projects by how many hosts hold them: one for each folder that the nodes offer."""


def clustering(bench: Bench) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, running_cluster(Path(folder)) as cluster:
        root = cluster.project("shop")
        for number, projects in SPREADS.items():
            for project in projects:
                for name in {project, project.partition("/")[0]}:
                    cluster.project(f"spread-{number}/{name}")
        for name, head in (("a", True), ("b", False)):
            cluster.node(name, f"{folder}/src/shop", f"{folder}/src/spread-*/*", head=head)
        cluster.front()
        for number in SPREADS:
            yield _rate(cluster, number)
        yield _added(bench, cluster, root)
        yield row("cluster: next right answer after its host is killed", "≤ 2 s", _host_losses(cluster, root))
        yield row("cluster: next right answer after its node is killed", "≤ 5 s", [_node_loss(cluster, root)])


def _added(bench: Bench, cluster: RunningCluster, root: Path) -> Row:
    server = Server(bench.fresh_home("single"), SERENA_CENTRAL_ALLOWED_ROOTS=str(root))
    asked = {"arguments": {"name_path_pattern": "Cart", "project": str(root)}, "session": "one"}
    token = (cluster.folder / "front/home/token").read_text().strip()

    def client(url: str, token: str) -> httpx.Client:
        return httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60)

    def find(http: httpx.Client) -> None:
        answer = http.post("/api/v1/tools/find_symbol", json=asked)
        assert answer.status_code == 200, answer.text

    try:
        with client(f"http://127.0.0.1:{server.port}", server.token) as here, client(cluster.url, token) as there:
            alone, remote = in_turns(lambda: find(here), lambda: find(there), CALLS)
    finally:
        server.stop()
    added = [wire - local for local, wire in zip(alone, remote, strict=True)]
    ratio = sum(remote) / sum(alone)
    return Row(
        "cluster: added to a warm find by a project host",
        "≤ 2.5 ms",
        percentile(added, 0.5),
        percentile(added, 0.95),
        peer="one process",
        ratio=ratio,
    )


def _rate(cluster: RunningCluster, number: int) -> Row:
    """Finds of several clients, spread over four projects that so many hosts hold."""
    token = (cluster.folder / "front/home/token").read_text().strip()
    port = int(cluster.url.rpartition(":")[2])
    roots = [str(cluster.folder / f"src/spread-{number}" / project) for project in SPREADS[number]]
    clients = [Client(port, token, "modern", name=f"{number}-{n}") for n in range(CLIENTS)]
    finds = [
        client.prepare("find_symbol", name_path_pattern="Cart", project=root) for client in clients for root in roots
    ]

    def work(n: int, calls: int) -> None:
        for call in range(calls):
            clients[n].send(finds[n * len(roots) + call % len(roots)])

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(lambda n: work(n, 2 * len(roots)), range(CLIENTS)))
        front = psutil.Process(cluster.processes["front"].pid)
        pids = {cluster.host(Path(unit))["state"]["pid"] for unit in _units(cluster, number)}
        hosts = [psutil.Process(pid) for pid in pids]
        assert len(hosts) == number
        before = [processor_ms(front), sum(map(processor_ms, hosts)), time.perf_counter()]
        list(threads.map(lambda n: work(n, RATE_CALLS), range(CLIENTS)))
        after = [processor_ms(front), sum(map(processor_ms, hosts)), time.perf_counter()]
    for client in clients:
        client.close()
    calls = CLIENTS * RATE_CALLS
    of_front, of_hosts, seconds = (end - begin for begin, end in zip(before, after, strict=True))
    return Row(
        f"cluster: finds of {CLIENTS} clients in 4 projects, {number} host{'s' if number > 1 else ''}",
        "",
        calls / seconds,
        unit="/s",
        note=f"processor per call: server {of_front / calls:.2f} ms, hosts {of_hosts / calls:.2f} ms",
    )


def _units(cluster: RunningCluster, number: int) -> set[str]:
    return {str(cluster.folder / f"src/spread-{number}" / project.partition("/")[0]) for project in SPREADS[number]}


def _host_losses(cluster: RunningCluster, root: Path) -> list[float]:
    def kill() -> None:
        os.kill(cluster.host(root)["state"]["pid"], signal.SIGKILL)

    return [_until_right(cluster, root, kill, number) for number in range(LOSSES)]


def _node_loss(cluster: RunningCluster, root: Path) -> float:
    address = f"127.0.0.1:{cluster.port}"
    moved = cluster.command("cluster", "move", str(root), "--to", "b", "--cluster", address, "--json")
    assert moved.returncode == 0, moved.stderr
    node = cluster.processes.pop("b")
    below = psutil.Process(node.pid).children(recursive=True)
    taken = _until_right(cluster, root, lambda: os.kill(node.pid, signal.SIGKILL), LOSSES)
    psutil.wait_procs(below, 15)
    node.wait(5)
    return taken


def _until_right(cluster: RunningCluster, root: Path, lose: Callable[[], None], number: int) -> float:
    """Milliseconds until a call is answered that asks for what was written when the host was gone."""
    cluster.call("find_symbol", name_path_pattern="Cart", project="shop")
    lose()
    (root / "cart.py").write_text(f"class Cart: ...\n\n\nclass Basket{number}: ...\n")
    began = time.perf_counter()
    found = cluster.call("find_symbol", name_path_pattern=f"Basket{number}", project="shop")
    taken = (time.perf_counter() - began) * 1000
    assert f"Basket{number}" in found, found
    return taken
