"""Rows about a repository of 100,000 source files and 1 GB. Generated once, kept in build/bench.

A real server as a user has it: one session calls a small project every 20 ms, all the time, while another one opens the
giant, asks before its index is complete, lets it be filled, checks out another branch, and comes back after a restart.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from statistics import median

import psutil

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.django import BUILD
from benchmarks.others import Others, others_calls
from benchmarks.repository import OTHER, changed_by_other, checkout, generate, is_gone
from benchmarks.table import Row, row

FILES = 100_000
BYTES_PER_FILE = 10_000
INDEX_S = 3600.0


def growing_giant(bench: Bench) -> Iterator[Row]:
    """The rows. `GIANT_FILES` in the environment makes the repository smaller, to look at one thing quickly."""
    giant = Giant(int(os.environ.get("GIANT_FILES", FILES)))
    server = Server(bench.fresh_home("giant"))
    try:
        with others_calls(server) as others:
            yield from _quiet(others)
            yield from giant.cold(server, others)
            yield from giant.indexed(server, others)
            yield from giant.other_branch(server, others)
    finally:
        server.stop()
        checkout(giant.root, "main")
    server = Server(bench.home("giant"))
    try:
        yield from giant.restarted(server)
    finally:
        server.stop()


def _quiet(others: Others) -> Iterator[Row]:
    time.sleep(2)
    yield others.row("nothing else to do")


class Giant:
    """The repository, and what is measured on it."""

    def __init__(self, files: int) -> None:
        self._files = files
        self.root = BUILD / f"giant-{files}"
        if not self.root.exists():
            BUILD.mkdir(parents=True, exist_ok=True)
            generate(self.root, files, BYTES_PER_FILE)
        self._memory_before = 0.0

    def cold(self, server: Server, others: Others) -> Iterator[Row]:
        self._memory_before = _memory_mb(server)
        client = server.client()
        started = time.perf_counter()
        client.call("activate_project", project=str(self.root))
        yield Row(f"opened, {self._files:,} files", "", (time.perf_counter() - started) * 1000)
        asked = [self._files * nth // 4 + nth for nth in range(1, 4)]
        taken = [self._find(client, number) for number in asked]
        name = "find_symbol before the index is complete"
        note = f"three names, right after it was opened; the slowest {max(taken) / 1000:.2f} s"
        yield Row(name, "≤ 5 s", median(taken), note=note)
        yield others.row("it is opened and asked")
        client.close()

    def indexed(self, server: Server, others: Others) -> Iterator[Row]:
        started = time.perf_counter()
        left = _await_index(server)
        seconds = time.perf_counter() - started
        note = f"{self._files / seconds:.0f} files/s: Python by ty, the others by syntax"
        yield Row("the whole index", "", seconds, unit="s", note=f"{note}; {left} files without symbols")
        yield others.row("it is indexed")
        memory = _memory_mb(server)
        grown = memory - self._memory_before
        yield Row(
            "memory of the index", "≤ 400 MB", grown, unit="MB", note=f"growth of the server's PSS to {memory:.0f}"
        )
        client = server.client()
        numbers = iter(range(0, self._files, max(self._files // 200, 1)))
        taken = [self._find(client, next(numbers)) for _ in range(120)]
        yield row("find_symbol, indexed", "≤ 15 ms", taken[20:])
        client.close()
        others.take()

    def other_branch(self, server: Server, others: Others) -> Iterator[Row]:
        client = server.client()
        changed = [number for number in changed_by_other(self._files) if not is_gone(number)]
        started = time.perf_counter()
        checkout(self.root, OTHER)
        seconds = time.perf_counter() - started
        taken = [self._find(client, changed[len(changed) * nth // 4], "other") for nth in range(1, 4)]
        note = f"of {len(changed_by_other(self._files)):,} other files, for which git took {seconds:.1f} s"
        yield Row("first find after a checkout of another branch", "", taken[0], note=note)
        for number in changed_by_other(self._files)[:20]:
            answer = client.call("find_symbol", name_path_pattern=f"only_{number}_3", project=str(self.root))
            assert f"Unit{number}.".encode() not in answer, "an answer of before the checkout"
        started = time.perf_counter()
        _await_index(server)
        yield Row("the index is whole again", "", time.perf_counter() - started, unit="s")
        yield others.row("another branch is checked out")
        client.close()

    def restarted(self, server: Server) -> Iterator[Row]:
        client = server.client()
        number = next(number for number in range(self._files // 2, self._files) if number % 21)
        taken = self._find(client, number)
        (state,) = [one for one in _open_projects(server) if one["root"] == str(self.root)]
        note = f"from the cache, opening included; {state['pending']:,} files to be asked about"
        yield Row("first find after a restart", "≤ 3 s", taken, note=f"{note} after another checkout")
        client.close()

    def _find(self, client: Client, number: int, prefix: str = "only") -> float:
        """Milliseconds until the one right answer."""
        started = time.perf_counter()
        answer = client.call("find_symbol", name_path_pattern=f"{prefix}_{number}_3", project=str(self.root))
        taken = (time.perf_counter() - started) * 1000
        assert f"Unit{number}.".encode() in answer, answer[:500]
        return taken


def _open_projects(server: Server) -> Iterable[dict[str, object]]:
    return server.get("/api/v1/projects?open=true")["projects"]


def _await_index(server: Server) -> int:
    """Until every file is known or given up; how many are. Raises TimeoutError."""
    deadline = time.monotonic() + INDEX_S
    while time.monotonic() < deadline:
        pending = sum(int(str(project["pending"])) for project in _open_projects(server))
        if pending < 5:  # go.mod holds no symbols
            return pending
        time.sleep(0.5)
    raise TimeoutError("the index was not filled")


def _memory_mb(server: Server) -> float:
    """PSS of the server's own process, without its children."""
    with suppress(psutil.AccessDenied):
        return server.tree[0].memory_full_info().pss / 1e6
    return server.tree[0].memory_info().rss / 1e6
