"""Rows about what stands between a client's stdio and the server: our proxy, and `mcp-proxy` from PyPI beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.client import HANDSHAKE
from benchmarks.django import BUILD
from benchmarks.table import Row, percentile, row

STARTS, PEER_STARTS = 15, 3
CALLS = 300
LARGE = 5_000_000
"""Characters: the largest answer there is."""

PEER = ("mcp-proxy==0.12.0", "mcp<2")
"""It does not run with version 2 of the SDK."""
LAST_LINE_S = 60.0

_ids = count(1)


class StdioClient:
    """A client of one proxy: writes a line, reads the line of its answer."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self.spawned = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SERENA_CENTRAL_HOME": str(home)},
        )
        about = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", about)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> bytes:
        """The line of the answer, unread but for its id."""
        number = next(_ids)
        self._send({"id": number, "method": method, "params": params or {}})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            if b'"id":%d,' % number in line[:80] or b'"id": %d,' % number in line[:80]:
                return line
        raise EOFError("the proxy ended")

    def call(self, tool: str, **arguments: Any) -> bytes:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def memory(self) -> float:
        """PSS in MB (Linux)."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(LAST_LINE_S)


def proxying(bench: Bench) -> Iterator[Row]:
    home = bench.home("warm")
    ours = [sys.executable, "-I", "-m", "serena_central.proxy"]
    peers = _peer(bench)
    client, peer, direct = StdioClient(ours, home), StdioClient(peers, home), bench.server.client()
    try:
        cheapest = direct.prepare("list_projects")
        alone, proxied, beside = [], [], []
        for number in range(CALLS):  # in turns: what else the machine does meets all alike
            alone.append(_took(lambda: direct.send(cheapest)))
            proxied.append(_took(lambda: client.call("list_projects")))
            if number % 5 == 0:
                beside.append(_took(lambda: peer.call("list_projects")))
        added, peers_added = median(proxied) - median(alone), median(beside) - median(alone)
        note = f"direct {median(alone):.2f} ms, mcp-proxy adds {peers_added:.2f} ms"
        tail = percentile(proxied, 0.95) - percentile(alone, 0.95)
        yield Row("proxy: added to a call", "≤ 0.3 ms", added, tail, "ms", "mcp-proxy", added / peers_added, note)
        yield from _large(bench, client, peer, direct)
        weight, peers_weight = client.memory(), peer.memory()
        yield Row(
            *("proxy: PSS after all this", "≤ 16 MB", weight, None, "MB", "mcp-proxy", weight / peers_weight),
            note=f"mcp-proxy {peers_weight:.0f} MB",
        )
    finally:
        client.close()
        peer.close()
        direct.close()
    yield from _starting(ours, peers, home)  # last: a server that still looks at a project answers late


def _starting(ours: list[str], peers: list[str], home: Path) -> Iterator[Row]:
    taken = [_first_listing(ours, home) for _ in range(STARTS)]
    theirs = median([_first_listing(peers, home) for _ in range(PEER_STARTS)])
    bare = median([_took(lambda: subprocess.run([sys.executable, "-I", "-c", ""], check=True)) for _ in range(STARTS)])
    note = f"mcp-proxy {theirs:.0f} ms, python -c '' {bare:.0f} ms"
    yield row("proxy: start to first tools/list", "≤ 120 ms", taken, peer="mcp-proxy", base=theirs, note=note)


def _first_listing(command: list[str], home: Path) -> float:
    client = StdioClient(command, home)
    client.ask("tools/list")
    taken = (time.perf_counter() - client.spawned) * 1000
    client.close()
    return taken


def _large(bench: Bench, client: StdioClient, peer: StdioClient, direct: Any) -> Iterator[Row]:
    folder = bench.home("warm") / "large"
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "large.py").write_text("# a line that is as long as lines are in many files\n" * (LARGE // 54))
    asked = {"relative_path": "large.py", "project": str(folder), "max_answer_chars": LARGE}
    request = direct.prepare("read_file", **asked)
    size = len(client.call("read_file", **asked)) / 1e6
    alone, proxied, beside = [], [], []
    for _ in range(15):
        alone.append(_took(lambda: direct.send(request)))
        proxied.append(_took(lambda: client.call("read_file", **asked)))
        beside.append(_took(lambda: peer.call("read_file", **asked)))
    rates = [size / (median(taken) / 1000) for taken in (proxied, alone, beside)]
    note = f"direct {rates[1]:.0f} MB/s, mcp-proxy {rates[2]:.0f} MB/s; answers of {size:.1f} MB"
    yield Row("proxy: large answers", "≥ 50 MB/s", rates[0], None, "MB/s", "direct", rates[0] / rates[1], note)


def _took(work: Any) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _peer(bench: Bench) -> list[str]:
    """The command of `mcp-proxy`, installed beside the homes when first needed."""
    folder = BUILD / "mcp-proxy"
    program = folder / "bin" / "mcp-proxy"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEER], check=True)
    server = bench.server
    url = f"http://127.0.0.1:{server.port}/mcp"
    return [str(program), "--transport", "streamablehttp", "-H", "Authorization", f"Bearer {server.token}", url]
