"""Rows beside Serena from PyPI, which is installed once into build/bench: the same calls on Django by the same client,
in turns. It gets a copy of the sources, since it writes its settings into a project, and needs uv and Python 3.13."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.django import BUILD
from benchmarks.latency import QUERY
from benchmarks.table import Row, in_turns, row

PEER = "serena-agent==2.1.0"

TURNS = 7

START_S = 120.0
"""Until Serena takes connections, on a busy machine."""

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_current_config", {}),
    ("find_symbol", {"name_path_pattern": "QuerySet/filter", "relative_path": QUERY}),
    ("find_symbol", {"name_path_pattern": "QuerySet/filter", "relative_path": QUERY, "include_body": True}),
    ("get_symbols_overview", {"relative_path": QUERY}),
    ("find_referencing_symbols", {"name_path": "isolate_apps", "relative_path": "django/test/utils.py"}),
    ("search_for_pattern", {"substring_pattern": "slugify"}),
    ("find_symbol", {"name_path_pattern": "slugify"}),
)
"""Warm: each was answered by both before."""


def comparing(bench: Bench) -> Iterator[Row]:
    ours = Server(bench.fresh_home("compare"))
    try:
        with _serena(bench) as theirs:
            clients = ours.client(), theirs
            clients[0].call("activate_project", project=str(bench.django))
            yield _first(clients)
            ours.await_index()
            for tool, arguments in CALLS:
                yield _beside(clients, tool, arguments)
    finally:
        ours.stop()


def _first(clients: tuple[Client, Client]) -> Row:
    """A symbol of one file, with nothing known of the project before; measured once."""
    taken: list[float] = []
    for client in clients:
        started = time.perf_counter()
        assert b"QuerySet" in client.call("find_symbol", name_path_pattern="QuerySet", relative_path=QUERY)
        taken.append((time.perf_counter() - started) * 1000)
    ours, theirs = taken
    return row("first find_symbol in one file", "", [ours], peer="Serena", base=theirs, note=f"Serena {theirs:.0f} ms")


def _beside(clients: tuple[Client, Client], tool: str, arguments: dict[str, Any]) -> Row:
    ours_sent, theirs_sent = [partial(client.send, client.prepare(tool, **arguments)) for client in clients]
    sizes = len(ours_sent()), len(theirs_sent())
    ours, theirs = in_turns(ours_sent, theirs_sent, TURNS)
    base = median(theirs)
    what = ", ".join(f"{name}={value}" for name, value in arguments.items())
    note = f"Serena {base:.1f} ms; answers of {sizes[0]:,} and {sizes[1]:,} bytes"
    return row(f"{tool} {what}".rstrip(), "", ours, peer="Serena", base=base, note=note)


@contextmanager
def _serena(bench: Bench) -> Generator[Client]:
    """A client of a running Serena."""
    folder = BUILD / "serena"
    program = folder / "bin" / "serena"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", PEER], check=True)
    home = bench.fresh_home("serena")
    root = home / "django"
    shutil.copytree(bench.django, root)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    options = ["--transport", "streamable-http", "--port", str(port), "--project", str(root)]
    options += ["--agent-interface", "tools"]  # one for each operation, as here
    quiet = ["--enable-web-dashboard", "false", "--open-web-dashboard", "false", "--enable-gui-log-window", "false"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "start-mcp-server", *options, *quiet],
            # It gets its language server by uv, which stands beside our interpreter, and asks that for Python 3.13.
            env={**os.environ, "HOME": str(home), "PATH": f"{os.environ['PATH']}:{Path(sys.executable).parent}"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _await_port(process, port)
        yield Client(port, "")
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        for one in children:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(20)


def _await_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("Serena did not start")
