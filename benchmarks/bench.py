"""What the rows stand on: the sources, a real server with a home of its own, and the floor. Started when first asked
for; ended with the run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import cycle
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import psutil

from benchmarks import django
from benchmarks.client import Client, Connection, Era
from benchmarks.table import Row, beside, percentile

START_S = 60.0
INDEX_S = 300.0


def processor_ms(process: psutil.Process) -> float:
    """User and system time of one process so far."""
    with suppress(psutil.NoSuchProcess):
        taken = process.cpu_times()
        return (taken.user + taken.system) * 1000
    return 0.0


class Server:
    """One `serena-central serve` with the home `home`, from its spawn on."""

    def __init__(self, home: Path, *, program: Sequence[str] = (), **settings: str) -> None:
        """`settings` are more variables of its environment; `program` starts it in place of `serena-central`."""
        self._announcement = home / "server.json"
        self._token_file = home / "token"
        self.spawned = time.perf_counter()
        log = (home / "server.log").open("ab")
        self._process = subprocess.Popen(
            [*(program or [str(Path(sys.executable).with_name("serena-central"))]), "serve", "--port", "0"],
            env={
                **os.environ,
                "SERENA_CENTRAL_HOME": str(home),
                "SERENA_HOME": str(home / "configuration"),
                **settings,
            },
            stdout=log,
            stderr=log,
        )
        log.close()
        try:
            self.port, self.token = self._await_address()
        except TimeoutError:
            self.stop()
            raise

    def _await_address(self) -> tuple[int, str]:
        """Port and token. The socket takes connections from then on. Raises TimeoutError."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(OSError, ValueError):
                url: str = json.loads(self._announcement.read_text(encoding="utf-8"))["url"]
                token = self._token_file.read_text(encoding="utf-8").strip()
                if token:
                    return int(url.rpartition(":")[2].partition("/")[0]), token
            time.sleep(0.002)
        raise TimeoutError("the server did not start")

    @property
    def tree(self) -> list[psutil.Process]:
        """The server's process and all below it."""
        process = psutil.Process(self._process.pid)
        return [process, *process.children(recursive=True)]

    def processor_ms(self) -> float:
        """What the server and all below it have taken of the processor so far: hardly more on a busy machine."""
        return sum(map(processor_ms, self.tree))

    def client(self, era: Era = "handshake") -> Client:
        return Client(self.port, self.token, era)

    def get(self, path: str) -> Any:
        """What /api answers."""
        connection = Connection(self.port, self.token)
        _, body = connection.exchange(connection.request("GET", path))
        connection.close()
        return json.loads(body)

    def post(self, path: str, asked: Any) -> Any:
        """What /api answers to JSON."""
        connection = Connection(self.port, self.token)
        _, body = connection.exchange(connection.request("POST", path, json.dumps(asked).encode()))
        connection.close()
        return json.loads(body)

    def await_index(self) -> None:
        """Waits until no further file is being indexed (those without a server stay pending). Raises TimeoutError."""
        deadline = time.monotonic() + INDEX_S
        before: list[int] = []
        while time.monotonic() < deadline:
            pending = [project["pending"] for project in self.get("/api/v1/projects?open=true")["projects"]]
            if pending and pending == before:
                return
            before = pending
            time.sleep(1)
        raise TimeoutError("the index was not filled")

    def await_quiet(self) -> None:
        """Waits until the server itself has next to nothing to do, for a minute at the most."""
        process = psutil.Process(self._process.pid)
        for _ in range(60):
            if process.cpu_percent(interval=1) < 5:
                return

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)


class Bench:
    """See the module."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @cached_property
    def django(self) -> Path:
        return django.source()

    def home(self, name: str) -> Path:
        """A home that an earlier server may have left."""
        return django.BUILD / "homes" / name

    def fresh_home(self, name: str) -> Path:
        home = self.home(name)
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        return home

    @cached_property
    def server(self) -> Server:
        """A server that knows all symbols of Django."""
        server = Server(self.fresh_home("warm"))
        self._stack.callback(server.stop)
        self.client_of(server).call("find_symbol", name_path_pattern="QuerySet")
        server.await_index()
        return server

    @cached_property
    def client(self) -> Client:
        """A client of the handshake era, with Django as its active project."""
        return self.client_of(self.server)

    def client_of(self, server: Server, era: Era = "handshake") -> Client:
        client = server.client(era)
        self._stack.callback(client.close)
        client.call("activate_project", project=str(self.django))
        return client

    @cached_property
    def _floor_connection(self) -> Connection:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.floor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._stack.callback(process.wait, 10)
        self._stack.callback(process.stdin.close)
        connection = Connection(int(process.stdout.readline()))
        self._stack.callback(connection.close)
        return connection

    def floor(self, like: bytes, *, own: bool = False) -> Callable[[], object]:
        """One exchange with the bare endpoint, for a request that is `like` the measured one; `own`: over a connection
        of its own."""
        connection = self._floor_connection
        if own:
            connection = Connection(connection.port)
            self._stack.callback(connection.close)
        request = connection.request("POST", "/mcp", like.partition(b"\r\n\r\n")[2])
        return lambda: connection.exchange(request)

    def beside_floor(self, name: str, budget: str, client: Client, requests: Sequence[bytes], times: int) -> Row:
        """The row of calls in turn with the bare endpoint."""
        turn = cycle(requests)
        time.sleep(0.1)  # what the last row left to do is not this one's
        ours, floor, ratio = beside(lambda: client.send(next(turn)), self.floor(requests[0]), times)
        note = f"floor {median(floor):.2f} ms"
        return Row(name, budget, median(ours), percentile(ours, 0.95), peer="floor", ratio=ratio, note=note)
