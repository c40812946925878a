"""Two servers with one PostgreSQL database behind HAProxy, for tests."""

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx

from tests.support.child import PATIENCE_S, Child, free_port, serving_child
from tests.support.postgresql import CHECKOUT, Cluster

TOKEN = "a-token-that-both-fronts-have-0123456789"


@dataclass
class Fronts:
    """Two fronts, and the address of what stands before them."""

    url: str
    fronts: dict[str, Child]
    folder: Path
    database: str
    """Its name."""
    _given: dict[str, str]
    _ports: dict[str, int]
    _stack: AsyncExitStack

    @asynccontextmanager
    async def http(self, **headers: str) -> AsyncGenerator[httpx.AsyncClient]:
        sent = {"authorization": f"Bearer {TOKEN}"} | {key.replace("_", "-"): value for key, value in headers.items()}
        async with httpx.AsyncClient(base_url=self.url, headers=sent, timeout=PATIENCE_S) as client:
            yield client

    async def kill(self, name: str) -> None:
        self.fronts[name].process.kill()
        await self.fronts[name].process.wait()

    async def start(self, name: str) -> None:
        """At the same address as before, if it ran before."""
        given = {**self._given, "SERENA_CENTRAL_FRONT_NAME": name}
        child = serving_child(self.folder.parent / name, "--port", str(self._ports[name]), **given)
        self.fronts[name] = await self._stack.enter_async_context(child)

    async def recorded(self, name: str) -> None:
        """Waits until what happened at a front is in the database."""
        async with self.fronts[name].http() as direct:
            with anyio.fail_after(PATIENCE_S):
                while (await direct.get("/api/v1/stats")).json()["store"]["queued"]:
                    await anyio.sleep(0.02)

    async def holder_of(self, session: str) -> str:
        """The front that has this session in memory, and its client there."""
        found = []
        for name, front in self.fronts.items():
            async with front.http() as http:
                sessions = (await http.get("/api/v1/sessions")).json()["sessions"]
                found += [name for one in sessions if one["session_id"] == session]
        (only,) = found
        return only


@asynccontextmanager
async def two_fronts(cluster: Cluster, folder: Path) -> AsyncGenerator[Fronts]:
    """Below `folder`, when the balancer lets clients in."""
    port, name = free_port(), f"fronts-{folder.name}"[:60]
    for front in ("f1", "f2"):
        (folder / front / "home").mkdir(parents=True, mode=0o700)
        (folder / front / "home" / "token").touch(0o600)
        (folder / front / "home" / "token").write_text(f"{TOKEN}\n")
    given = {"SERENA_CENTRAL_DATABASE_URL": cluster.database(name), "SERENA_CENTRAL_SERVER_NAMES": f"127.0.0.1:{port}"}
    async with AsyncExitStack() as stack:
        ports = {"f1": free_port(), "f2": free_port()}
        serving = Fronts(f"http://127.0.0.1:{port}", {}, folder / "f1", name, given, ports, stack)
        for front in ports:
            await serving.start(front)
        with balancing(port, *(child.url for child in serving.fronts.values())):
            with anyio.fail_after(PATIENCE_S):
                while not await answers(serving.url):
                    await anyio.sleep(0.05)
            yield serving


class balancing:  # noqa: N801 - a context manager
    """HAProxy with the configuration that is delivered."""

    def __init__(self, port: int, *urls: str) -> None:
        program = subprocess.run([CHECKOUT / "scripts/get-haproxy"], check=True, capture_output=True, text=True)
        name = f"127.0.0.1:{port}"
        given = {"SERENA_BIND": name, "SERENA_NAME": name}
        given |= {f"SERENA_F{n}": url.removeprefix("http://") for n, url in enumerate(urls, 1)}
        self._command = [program.stdout.strip(), "-db", "-f", str(CHECKOUT / "deploy/haproxy.cfg")]
        self._environment = {**os.environ, **given}

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command, env=self._environment, stderr=subprocess.DEVNULL)

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)


async def answers(url: str) -> bool:
    try:
        async with httpx.AsyncClient() as http:
            return (await http.get(f"{url}/health")).status_code == 200
    except httpx.HTTPError:
        return False
