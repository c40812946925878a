"""Rows about the hub: what it adds to a call of an upstream, beside `mcp-proxy` from PyPI before the same program."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.bench import START_S, Bench, Server, processor_ms
from benchmarks.client import Client, Refused
from benchmarks.django import BUILD
from benchmarks.proxies import PEER, StdioClient
from benchmarks.table import Row, percentile, row, timed
from serena_central.hub.search import ToolSearch

CALLS, WARM_UP = 500, 50
SESSIONS = 16
TOOLS = 1000
TEXT = "x" * 200

UPSTREAM = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "tests" / "support" / "upstream.py")]
"""A small server on the standard library: its own share of a call is little."""


def joining(bench: Bench) -> Iterator[Row]:
    """In turns: what else the machine does meets all alike."""
    yield _search()
    home = bench.fresh_home("hub")
    folder = home / "claude"
    folder.mkdir()
    entry = {"command": UPSTREAM[0], "args": UPSTREAM[1:]}
    (folder / "settings.json").write_text(json.dumps({"mcpServers": {"up": entry}}))
    server = Server(home, CLAUDE_CONFIG_DIR=str(folder), SERENA_CENTRAL_AUTO_INSTALL="off")
    alone = StdioClient(UPSTREAM, home)
    try:
        with _peer() as port:
            yield from _rows(server, alone, port)
    finally:
        alone.close()
        server.stop()


def _search() -> Row:
    """Several words that many of the tools hold: the slowest kind of a search."""
    verbs, things = ("create", "list", "update", "delete", "search"), ("issue", "branch", "commit", "review", "label")
    names = [f"server{one % 40}__{verbs[one % 5]}_{things[one // 5 % 5]}_{one}" for one in range(TOOLS)]
    properties = {name: {"description": f"Which {name} of the repository"} for name in things}
    tools = {
        name: {"description": f"Does {name} in a repository of the user", "inputSchema": {"properties": properties}}
        for name in names
    }
    search = ToolSearch(tools)
    assert len(search.find("issue", TOOLS)) == TOOLS
    taken = timed(lambda: search.find("create an issue in the repository of the user", 8), 200, warm_up=5)
    made = timed(lambda: ToolSearch(tools), 5)
    return row(f"hub: search of {TOOLS:,} tools", "≤ 5 ms", taken, note=f"index made once in {median(made):.0f} ms")


def _rows(server: Server, alone: StdioClient, port: int) -> Iterator[Row]:
    hub, peer = server.client(), Client(port, "")
    through_hub, through_peer = hub.prepare("up__echo", text=TEXT), peer.prepare("echo", text=TEXT)
    direct, ours, theirs = [], [], []
    own = server.tree[0]
    before = 0.0
    for number in range(WARM_UP + CALLS):
        taken = (
            _took(lambda: alone.call("echo", text=TEXT)),
            _took(lambda: _answered(hub, through_hub)),
            _took(lambda: _answered(peer, through_peer)),
        )
        if number == WARM_UP:
            before = processor_ms(own)
        if number >= WARM_UP:
            for values, one in zip((direct, ours, theirs), taken, strict=True):
                values.append(one)
    processor = (processor_ms(own) - before) / (CALLS - 1)
    base = median(direct)
    added, theirs_added = median(ours) - base, median(theirs) - base
    yield Row(
        *("hub: added to a call", "≤ 1.5 ms", added, percentile(ours, 0.95) - percentile(direct, 0.95), "ms"),
        *("mcp-proxy", added / theirs_added),
        note=f"direct {base:.2f} ms over stdio, mcp-proxy adds {theirs_added:.2f} ms; CPU {processor:.2f} ms a call",
    )
    others = [server.client("handshake" if number % 2 else "modern") for number in range(SESSIONS)]
    for one in others:
        _answered(one, one.prepare("up__echo", text=TEXT))
    children = [process for process in server.tree if process.cmdline()[:4] == UPSTREAM]
    weight = sum(process.memory_full_info().pss for process in children) / 1e6
    yield Row(
        *(f"hub: children for {SESSIONS} sessions", "1", float(len(children)), None, ""),
        note=f"PSS {weight:.0f} MB; one per session takes {SESSIONS * weight:.0f} MB",
    )
    for one in (*others, hub, peer):
        one.close()


@contextmanager
def _peer() -> Iterator[int]:
    """The port of an `mcp-proxy` that offers the upstream over streamable HTTP."""
    folder = BUILD / "mcp-proxy"
    program = folder / "bin" / "mcp-proxy"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEER], check=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    command: list[Any] = [program, "--port", str(port), "--host", "127.0.0.1", "--", *UPSTREAM]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(20)
        for one in children:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def _answered(client: Client, request: bytes) -> None:
    _, body = client.connection.exchange(request)
    if TEXT.encode() not in body:
        raise Refused(body.decode(errors="replace")[:1000])


def _took(work: Any) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
