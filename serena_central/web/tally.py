"""Counts events for metrics: calls by tool, outcome and minute, starts and ends of servers.

Labels come from closed sets (tools, outcomes, servers of the catalogue, causes), and bounded numbers of names.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from serena_central.core.event_kinds import (
    CallFinished,
    ProjectRemoved,
    ServerBreaker,
    ServerInstalled,
    ServerMissing,
    ServerMoved,
    UpstreamMoved,
)
from serena_central.core.events import Event
from serena_central.pool.state import Cause, RunState
from serena_central.sessions.session import Minutes

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the duration buckets: from an answer out of the index to the longest deadlines."""


NEWS_KEPT = 256
"""Events besides calls, which would crowd them out of the bus's own memory."""


MOST_UPSTREAMS = 100
"""Names of MCP servers that are counted by themselves: they come from configurations, which are no closed set."""


class MissingServer(NamedTuple):
    """Of one project, by its name. `said` is what is missing, `at` Unix time."""

    project: str
    said: str
    how_to_get: str
    at: float


class CallKind(NamedTuple):
    """`outcome` is `ok`, `error`, `cancelled` or `deadline`."""

    tool: str
    outcome: str


@dataclass
class Durations:
    """A histogram: `counts[i]` are those up to `BUCKETS_S[i]` and above the bound before; the last are all others."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds


class Tally:
    """The counters since the start of this server."""

    def __init__(self) -> None:
        self.calls: dict[CallKind, Durations] = {}
        self.minutes = Minutes()
        self.news: deque[Event] = deque(maxlen=NEWS_KEPT)
        """The newest events worth keeping but calls that went well, oldest first."""
        self.missing: dict[tuple[str, str], MissingServer] = {}
        """(root, server) → a language server that is not installed; `web/recall.py` adds those of earlier runs."""
        self.earlier: list[Event] = []
        """What went wrong in an earlier run of the server, not long ago; oldest first."""
        self.starts: Counter[str] = Counter()
        """Starts of language servers, by server."""
        self.ends: Counter[tuple[str, str]] = Counter()
        """How runs of language servers ended, by server and cause."""
        self.upstream_starts: Counter[str] = Counter()
        """Starts of MCP servers, by the names of the configuration, the first `MOST_UPSTREAMS` of them."""
        self.upstream_losses: Counter[str] = Counter()
        """How often one ended that nobody had ended."""
        self.breaker_changes: Counter[tuple[str, str]] = Counter()
        """By server and the breaker's new state."""

    def take(self, event: Event) -> None:
        """A tap of the bus."""
        if event.keep and not (isinstance(event, CallFinished) and event.outcome == "ok"):
            self.news.append(event)
        match event:
            case CallFinished():
                kind = CallKind(event.tool, event.outcome)
                durations = self.calls.get(kind)
                if durations is None:
                    durations = self.calls[kind] = Durations()
                durations.add(event.duration_ms / 1000)
                self.minutes.add(event.at, event.duration_ms, failed=kind.outcome != "ok")
            case ServerMoved(keep=True):
                self._moved(event.server or "", event.to, event.cause)
            case UpstreamMoved():
                self._upstream_moved(event.server or "", event.to)
            case ServerMissing() | ServerInstalled() | ProjectRemoved():
                self._keep_missing(self.missing, event)
            case ServerBreaker():
                self.breaker_changes[event.server or "", event.state] += 1
            case _:
                pass

    def recall(self, *, known: Iterable[Event], troubles: list[Event]) -> None:
        """Adds what an earlier run published, oldest first; what this one has found out counts more."""
        missing: dict[tuple[str, str], MissingServer] = {}
        for event in known:
            self._keep_missing(missing, event)
        for event in self.news:
            self._keep_missing(missing, event)
        self.missing = missing
        self.earlier = troubles

    def _keep_missing(self, missing: dict[tuple[str, str], MissingServer], event: Event) -> None:
        match event:
            case ServerMissing():
                found = MissingServer(event.project or "", event.message, event.how_to_get, event.at)
                missing[event.root, event.server or ""] = found
            case ServerInstalled():
                for key in [key for key in missing if key[1] == event.server]:
                    del missing[key]
            case ProjectRemoved():
                for key in [key for key in missing if key[0] == event.root]:
                    del missing[key]
            case _:
                pass

    def _upstream_moved(self, name: str, to: str) -> None:
        known = {*self.upstream_starts, *self.upstream_losses}
        if name not in known and len(known) >= MOST_UPSTREAMS:
            name = "others"
        if to == "starting":
            self.upstream_starts[name] += 1
        elif to in ("paused", "failed"):
            self.upstream_losses[name] += 1

    def _moved(self, server: str, to: str, cause: str) -> None:
        if to == RunState.CONNECTING:
            self.starts[server] += 1
        elif to == RunState.EXPIRED or (to == RunState.DISCONNECTED and cause != Cause.TREE_GONE):
            self.ends[server, cause] += 1
