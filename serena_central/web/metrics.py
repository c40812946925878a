"""/metrics in the text formats of Prometheus, collected when it is asked for from the tally and the parts' snapshots.

The library is imported by the first scrape: a server that nobody scrapes does not pay for it. No label has a value that
grows with sessions, projects or callers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from serena_central.pool.breaker import BreakerState
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.pool.state import RunState
from serena_central.sessions.session import SessionState
from serena_central.web.cluster_view import ClusterStatus
from serena_central.web.tally import BUCKETS_S
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

PREFIX = "serena_central_"


@dataclass(frozen=True)
class Metrics:
    """Collects from the parts that it was given. `collect` belongs to the event loop's thread and never waits."""

    parts: WebServices

    async def answer(self, request: Request) -> Response:
        """One scrape, in the format that the scraper asks for."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder

        registry = CollectorRegistry(auto_describe=False)
        cluster = [] if self.parts.cluster is None else [*_nodes(await self.parts.cluster.status())]
        registry.register(_Collected([*self.collect(), *cluster, *await anyio.to_thread.run_sync(_of_process)]))
        try:
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
        except (TypeError, ValueError):  # a header that can't be read asks for nothing
            encode, content_type = choose_encoder("")
        return Response(encode(registry), headers={"content-type": content_type})

    def collect(self) -> Iterator["Metric"]:
        yield _gauge("info", "Running version.", ["version"], {(self.parts.version,): 1})
        yield _gauge("uptime_seconds", "Since the start of the server.", [], {(): self.parts.uptime()})
        yield from self._calls()
        yield from self._sessions()
        yield from self._servers(self.parts.pool.snapshot())
        yield from self._upstreams()
        yield from self._store()
        yield from self._projects()

    def _calls(self) -> Iterator["Metric"]:
        from prometheus_client.metrics_core import HistogramMetricFamily

        calls = HistogramMetricFamily(f"{PREFIX}tool_call_duration_seconds", "Tool calls.", labels=["tool", "outcome"])
        for kind, durations in sorted(self.parts.tally.calls.items()):
            bounds = [*map(str, BUCKETS_S), "+Inf"]
            calls.add_metric(kind, list(zip(bounds, accumulate(durations.counts), strict=True)), durations.total_s)
        yield calls
        running = sum(len(session.running) for session in self.parts.sessions.sessions())
        yield _gauge("tool_calls_running", "Tool calls in progress.", [], {(): running})

    def _sessions(self) -> Iterator["Metric"]:
        states = Counter(one.state for one in self.parts.sessions.snapshots())
        yield _gauge("sessions", "Sessions.", ["state"], {(state,): states[state] for state in SessionState})

    def _servers(self, servers: list[ServerSnapshot]) -> Iterator["Metric"]:
        shown = [one for one in servers if one.state is not RunState.DISCONNECTED]
        yield _gauge(
            "language_servers",
            "Running language servers, by state.",
            ["server", "state"],
            Counter((one.server, one.state) for one in shown),
        )
        memory: Counter[tuple[str, ...]] = Counter()
        for one in shown:
            memory[(one.server,)] += one.memory_bytes
        yield _gauge(
            "language_server_memory_bytes",
            "Memory of language server process trees (PSS), last measurement.",
            ["server"],
            memory,
        )
        budget = {(): self.parts.pool.memory_budget_bytes}
        yield _gauge(
            "language_server_memory_budget_bytes", "Memory budget of language servers and MCP servers.", [], budget
        )
        caches = {(one.name,): one.memory_bytes for one in self.parts.pool.caches()}
        says = "Memory of caches of the server itself that count into the budget."
        yield _gauge("cache_memory_bytes", says, ["cache"], caches)
        starts = {(server,): count for server, count in self.parts.tally.starts.items()}
        yield _counter("language_server_starts", "Starts of language servers.", ["server"], starts)
        # Two runs of one key share its restarts and its breaker.
        keys = {one.key: one for one in reversed(servers)}
        restarts: Counter[tuple[str, ...]] = Counter()
        for one in keys.values():
            restarts[(one.server,)] += one.restarts
        yield _gauge(
            "language_server_restarts", "Restarts of the language servers that are still shown.", ["server"], restarts
        )
        ends = "Ended language server runs, by reason."
        yield _counter("language_server_ends", ends, ["server", "cause"], self.parts.tally.ends)
        breakers = Counter(one.breaker.state for one in keys.values())
        states = {(state,): breakers[state] for state in BreakerState}
        yield _gauge("breakers", "Circuit breakers, one per server key.", ["state"], states)
        changes = "Circuit breaker transitions, by server and new state."
        yield _counter("breaker_changes", changes, ["server", "state"], self.parts.tally.breaker_changes)

    def _upstreams(self) -> Iterator["Metric"]:
        hub, tally = self.parts.upstreams.running, self.parts.tally
        if hub is None:
            return
        shown = hub.upstreams()
        states = Counter(str(one.state) for one in shown)
        yield _gauge("upstreams", "MCP servers of the hub.", ["state"], {(state,): states[state] for state in states})
        memory: Counter[tuple[str, ...]] = Counter()
        for one in shown:
            if one.pid is not None:
                counted = one.name if one.name in tally.upstream_starts else "others"
                memory[(counted,)] += self.parts.pool.memory_of(one.pid)
        says = "Memory of MCP servers' process trees (PSS), last measurement."
        yield _gauge("upstream_memory_bytes", says, ["server"], memory)
        starts = {(name,): count for name, count in tally.upstream_starts.items()}
        yield _counter("upstream_starts", "Starts of MCP servers.", ["server"], starts)
        losses = {(name,): count for name, count in tally.upstream_losses.items()}
        yield _counter("upstream_losses", "MCP servers that ended by themselves, or did not start.", ["server"], losses)

    def _store(self) -> Iterator["Metric"]:
        writer = self.parts.store.writer
        yield _gauge("store_queue_rows", "Queued writes.", [], {(): writer.queued})
        dropped = {(table,): count for table, count in writer.dropped.items()}
        yield _counter("store_dropped_rows", "Lost writes.", ["table"], dropped)
        failing = {(): int(writer.problem is not None)}
        yield _gauge("store_failing", "Whether the database is currently not writable.", [], failing)

    def _projects(self) -> Iterator["Metric"]:
        projects = [one for one in self.parts.projects.snapshots() if one.open]
        yield _gauge("projects_open", "Open projects.", [], {(): len(projects)})
        files = {
            ("seen",): sum(one.files for one in projects),
            ("indexed",): sum(one.indexed for one in projects),
            ("pending",): sum(one.pending for one in projects),
        }
        yield _gauge("index_files", "Files of open projects: total, indexed, pending.", ["state"], files)


class _Collected:
    """What was collected, as the registry wants to ask for it."""

    def __init__(self, metrics: list["Metric"]) -> None:
        self._metrics = metrics

    def collect(self) -> list["Metric"]:
        return self._metrics


def _of_process() -> list["Metric"]:
    """Memory, CPU time, descriptors and start of this process; reads /proc, hence a thread."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    return list(ProcessCollector(registry=CollectorRegistry()).collect())


def _nodes(status: ClusterStatus) -> Iterator["Metric"]:
    """Of each node of a cluster; nodes are machines, so that their names are few."""
    hosts = {node.name: status.on(node.name) for node in status.nodes}
    states = {name: [host.state for host in found if host.state is not None] for name, found in hosts.items()}
    up = {(one.name,): int(one.state != "silent") for one in status.nodes}
    yield _gauge("node_up", "Whether a node announces itself.", ["node"], up)
    free = {(one.name,): one.available_bytes for one in status.nodes}
    yield _gauge("node_memory_available_bytes", "Free memory of a node.", ["node"], free)
    yield _gauge("node_load", "Load average of one minute.", ["node"], {(one.name,): one.load for one in status.nodes})
    running = {(name,): len(found) for name, found in hosts.items()}
    yield _gauge("node_project_hosts", "Project hosts on a node.", ["node"], running)
    own = {(name,): sum(one.memory_bytes for one in found) for name, found in states.items()}
    yield _gauge("node_project_host_memory_bytes", "Memory of project hosts, without their servers.", ["node"], own)
    servers = {(name,): sum(len(one.servers) for one in found) for name, found in states.items()}
    yield _gauge("node_language_servers", "Language servers of a node's project hosts.", ["node"], servers)
    memory = {(name,): sum(one.servers_bytes for one in found) for name, found in states.items()}
    yield _gauge("node_language_server_memory_bytes", "Memory of these language servers (PSS).", ["node"], memory)
    calls = {(name,): sum(one.calls for one in found) for name, found in states.items()}
    yield _gauge("node_tool_calls", "Tool calls that the running project hosts have answered.", ["node"], calls)


def _gauge(name: str, says: str, labels: Sequence[str], values: Mapping[Any, float]) -> "Metric":
    """`values` maps the labels' values, a tuple in their order, to what was measured."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    gauge = GaugeMetricFamily(f"{PREFIX}{name}", says, labels=labels)
    for of, value in values.items():
        gauge.add_metric(of, value)
    return gauge


def _counter(name: str, says: str, labels: Sequence[str], values: Mapping[Any, float]) -> "Metric":
    """As `_gauge`, of what only grows; its samples are called `NAME_total`."""
    from prometheus_client.metrics_core import CounterMetricFamily

    counter = CounterMetricFamily(f"{PREFIX}{name}", says, labels=labels)
    for of, value in values.items():
        counter.add_metric(of, value)
    return counter
