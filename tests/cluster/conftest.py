"""A cluster on loopback as its users start it: real nodes, a real front, small projects."""

import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.child import environment

PROGRAM = Path(sys.executable).with_name("serena-central")
REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 600

SHOP = "class Cart:\n    def total(self) -> int:\n        return helper()\n\n\ndef helper() -> int:\n    return 1\n"


@dataclass
class RunningCluster:
    """One head, `a`, more nodes, and a front."""

    folder: Path
    port: int
    token: str
    url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """Environment variables of all processes."""
    bound_to: str = "127.0.0.1"
    """Of all nodes, and of the head for the front."""

    @property
    def address(self) -> str:
        return f"{self.bound_to}:{self.port}"

    def env(self, home: str) -> dict[str, str]:
        servers = self.folder / home / "home"
        servers.mkdir(parents=True, exist_ok=True)
        servers.chmod(0o700)
        if not (servers / "servers").exists():
            (servers / "servers").symlink_to(REPOSITORY / "build/servers-home/servers")
        ray = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        return environment(self.folder / home, **ray, **self.given, SERENA_CENTRAL_TRUSTED_ROOTS=str(self.folder))

    def command(self, *arguments: str, home: str = "front") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *arguments], env=self.env(home), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def start(self, home: str, ready: str, *arguments: str, env: dict[str, str] | None = None) -> None:
        log = self.folder / f"{home}.log"
        with log.open("wb") as sink:
            self.processes[home] = subprocess.Popen(
                [PROGRAM, *arguments],
                env=self.env(home) | (env or {}),
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        until(lambda: ready in log.read_text() or self.processes[home].poll() is not None)
        assert self.processes[home].poll() is None, log.read_text()

    def node(self, name: str, *roots: str, head: bool = False) -> None:
        begin = ["--head", "--port", str(self.port)] if head else ["--join", self.address]
        globs = [part for root in roots for part in ("--root", root)]
        self.start(name, "Stop: Ctrl-C", "node", *begin, "--host", self.bound_to, "--name", name, *globs)

    def front(self, address: str | None = None, *arguments: str) -> None:
        self.start(
            "front",
            "Stop: Ctrl-C",
            "serve",
            "--port",
            "0",
            "--cluster",
            address or self.address,
            *arguments,
        )
        self.url = json.loads((self.folder / "front/home/server.json").read_text())["url"].removesuffix("/mcp")

    def post(self, tool: str, session: str = "one", **arguments: Any) -> httpx.Response:
        token = (self.folder / "front/home/token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        body = {"arguments": arguments, "session": session}
        return httpx.post(f"{self.url}/api/v1/tools/{tool}", json=body, headers=headers, timeout=PATIENCE_S)

    def call(self, tool: str, session: str = "one", **arguments: Any) -> str:
        response = self.post(tool, session, **arguments)
        assert response.status_code == 200, response.text
        return response.json()["blocks"][0]

    def get(self, path: str) -> httpx.Response:
        token = (self.folder / "front/home/token").read_text().strip()
        return httpx.get(f"{self.url}{path}", headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE_S)

    def post_to(self, path: str, **body: Any) -> httpx.Response:
        token = (self.folder / "front/home/token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        return httpx.post(f"{self.url}{path}", json=body, headers=headers, timeout=PATIENCE_S)

    def status(self) -> dict[str, Any]:
        said = self.get("/api/v1/cluster")
        assert said.status_code == 200, said.text
        return said.json()

    def host(self, root: Path) -> dict[str, Any]:
        """Where a root is, with what its host says."""
        return next(one for one in self.status()["hosts"] if one["root"] == str(root))

    def listening(self) -> dict[str, list[str]]:
        """Addresses that all processes of the cluster listen on → which do."""
        found: dict[str, list[str]] = {}
        for process in self.below():
            for one in process.net_connections("tcp"):
                if one.status == psutil.CONN_LISTEN:
                    found.setdefault(one.laddr.ip.removeprefix("::ffff:"), []).append(process.name())
        return found

    def below(self) -> list[psutil.Process]:
        """All processes that live, those of nodes and the front included."""
        return [
            child
            for process in self.processes.values()
            if psutil.pid_exists(process.pid)
            for child in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        ]

    def project(self, name: str) -> Path:
        root = self.folder / "src" / name
        (root / ".git").mkdir(parents=True, exist_ok=True)
        (root / "cart.py").write_text(SHOP)
        return root


def until(true: Any, seconds: float = PATIENCE_S) -> None:
    """Waits for something that has no event."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def running_cluster(folder: Path, host: str = "127.0.0.1") -> Generator[RunningCluster]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    cluster = RunningCluster(folder, port, secrets.token_hex(24), bound_to=host)
    try:
        yield cluster
    finally:
        started = {process.pid for process in cluster.processes.values()}
        below = [child for child in cluster.below() if child.pid not in started]
        for process in reversed(cluster.processes.values()):
            process.terminate()
        for process in cluster.processes.values():
            process.wait(30)
        psutil.wait_procs(below, 15)
        left = [child for child in below if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        assert left == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningCluster]:
    """Two nodes that share a machine and its folders, and a front."""
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(folder) as running:
        for name in ("shop", "bank"):
            running.project(name)
        running.node("a", f"{folder}/src/*", head=True)
        running.node("b", f"{folder}/src/*")
        running.front()
        yield running
