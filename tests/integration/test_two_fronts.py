"""Two servers with one database behind HAProxy: sessions stick to theirs, and go on at the other when it is killed."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.child import PATIENCE_S, Child, free_port, serving_child
from tests.support.mcp import Era, RawClient, text_of
from tests.support.postgresql import CHECKOUT, Cluster
from tests.support.proxy import ProxyClient, proxying

pytestmark = [pytest.mark.anyio, pytest.mark.postgresql]

TOKEN = "a-token-that-both-fronts-have-0123456789"


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@dataclass
class Fronts:
    """Two fronts, and the address of what stands before them."""

    url: str
    fronts: dict[str, Child]
    folder: Path

    @asynccontextmanager
    async def http(self, **headers: str) -> AsyncGenerator[httpx.AsyncClient]:
        sent = {"authorization": f"Bearer {TOKEN}"} | {key.replace("_", "-"): value for key, value in headers.items()}
        async with httpx.AsyncClient(base_url=self.url, headers=sent, timeout=PATIENCE_S) as client:
            yield client

    async def kill(self, name: str) -> None:
        self.fronts[name].process.kill()
        await self.fronts[name].process.wait()

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


@pytest.fixture
async def fronts(cluster: Cluster, tmp_path: Path) -> AsyncGenerator[Fronts]:
    port, url = free_port(), cluster.database(f"fronts-{tmp_path.name}"[:60])
    folders = {name: tmp_path / name for name in ("f1", "f2")}
    for folder in folders.values():
        (folder / "home").mkdir(parents=True, mode=0o700)
        (folder / "home" / "token").touch(0o600)
        (folder / "home" / "token").write_text(f"{TOKEN}\n")
    given = {"SERENA_CENTRAL_DATABASE_URL": url, "SERENA_CENTRAL_SERVER_NAMES": f"127.0.0.1:{port}"}
    async with (
        serving_child(folders["f1"], SERENA_CENTRAL_FRONT_NAME="f1", **given) as one,
        serving_child(folders["f2"], SERENA_CENTRAL_FRONT_NAME="f2", **given) as two,
    ):
        with balancing(port, one.url, two.url):
            serving = Fronts(f"http://127.0.0.1:{port}", {"f1": one, "f2": two}, folders["f1"])
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


def project(folder: Path) -> Path:
    root = folder / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


async def active(client: RawClient | ProxyClient) -> str | None:
    config = json.loads(text_of(await client.call("get_current_config")))
    return config["active_project"]["root"] if isinstance(config["active_project"], dict) else config["active_project"]


async def patiently(client: RawClient, tool: str, **arguments: Any) -> Any:
    """Calls as a client does that sends a call again when its server is away."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                answer = await client.send("tools/call", {"name": tool, "arguments": arguments})
            except httpx.HTTPError:
                continue
            if answer.status_code == 200:
                return answer
            assert answer.status_code in (502, 503, 504), answer.text
            await anyio.sleep(0.05)


async def test_a_handshake_client_stays_at_its_front_and_goes_on_at_the_other_when_that_is_killed(
    fronts: Fronts, tmp_path: Path
) -> None:
    root = project(tmp_path)
    async with fronts.http() as http:
        client = RawClient(http, "handshake")
        await client.open()
        session = client.session_id or ""
        begun = session.partition(".")[0]
        assert begun in fronts.fronts
        for _ in range(4):
            await client.call("activate_project", project=str(root))
        assert await fronts.holder_of(session) == begun
        before = await active(client)
        await fronts.recorded(begun)
        await fronts.kill(begun)
        answer = await patiently(client, "get_current_config")
        assert answer.status_code == 200
        assert await active(client) == before
        other = ({"f1", "f2"} - {begun}).pop()
        async with fronts.fronts[other].http() as direct:
            (found,) = (await direct.get("/api/v1/sessions")).json()["sessions"]
        assert (found["session_id"], found["active_project_root"]) == (session, str(root))
        assert found["tool_call_count"] >= 5


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_proxys_client_does_not_notice_that_its_front_was_killed(
    fronts: Fronts, tmp_path: Path, era: Era
) -> None:
    root = project(tmp_path)
    async with proxying(fronts.folder, era, "--url", f"{fronts.url}/mcp") as client:
        await client.open()
        await client.call("activate_project", project=str(root))
        session = await client.session()
        begun = await fronts.holder_of(session)
        await fronts.recorded(begun)
        await fronts.kill(begun)
        found = await client.call("find_symbol", name_path_pattern="Cart/total")
        assert "total" in text_of(found), client.said()
        assert all(len(answers) == 1 for answers in client.answers.values())
