"""Two servers with one database behind HAProxy: sessions stick to theirs, and go on at the other when it is killed."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
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
    cluster = Cluster(synchronous_commit="on")  # what was committed survives kill -9
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
    database: str
    """Its name."""

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
    port, name = free_port(), f"fronts-{tmp_path.name}"[:60]
    url = cluster.database(name)
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
            serving = Fronts(f"http://127.0.0.1:{port}", {"f1": one, "f2": two}, folders["f1"], name)
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


async def until(ask: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not await ask():
            await anyio.sleep(0.02)


async def test_a_kill_and_a_revoked_user_reach_the_other_front(fronts: Fronts, tmp_path: Path) -> None:
    root = project(tmp_path)
    async with fronts.fronts["f1"].http() as first, fronts.fronts["f2"].http() as second:
        added = await first.post("/api/v1/users", json={"name": "ada", "roots": [str(tmp_path)]})
        ada = {"authorization": f"Bearer {added.json()['token']}"}

        async def is_known() -> bool:
            return (await second.get("/api/v1/sessions", headers=ada)).status_code == 200

        await until(is_known)
        body = {"arguments": {"relative_path": ".", "project": str(root)}, "session": "window"}
        for front in (first, second):  # the session is in both fronts' memory
            assert (await front.post("/api/v1/tools/list_dir", json=body, headers=ada)).status_code == 200
            await fronts.recorded("f1")
        assert (await first.delete("/api/v1/sessions/window")).status_code == 200

        async def is_refused() -> bool:
            return (await second.post("/api/v1/tools/list_dir", json=body, headers=ada)).status_code == 409

        await until(is_refused)
        assert (await second.get("/api/v1/sessions/window")).json()["terminated_by"] == "a person"
        assert (await first.delete("/api/v1/users/ada")).status_code == 200

        async def is_out() -> bool:
            return (await second.get("/api/v1/sessions", headers=ada)).status_code == 401

        await until(is_out)


async def test_fronts_go_on_without_their_database_say_so_and_lose_no_call(
    fronts: Fronts, cluster: Cluster, tmp_path: Path
) -> None:
    root = project(tmp_path)
    made: Counter[str] = Counter()
    over = anyio.Event()

    async def work(name: str) -> None:
        body = {"arguments": {"relative_path": ".", "project": str(root)}, "session": f"window-{name}"}
        async with fronts.fronts[name].http() as http:
            while not over.is_set():
                answer = await http.post("/api/v1/tools/list_dir", json=body)
                assert answer.status_code == 200, answer.text
                made[name] += 1
                await anyio.sleep(0.02)

    async def problem(name: str) -> str:
        async with fronts.fronts[name].http() as http:
            return (await http.get("/api/v1/stats")).json()["store"]["problem"] or ""

    async def both_fail() -> bool:
        return all(["not usable" in await problem(name) for name in fronts.fronts])

    async def both_write() -> bool:
        return not any([await problem(name) for name in fronts.fronts])

    with anyio.fail_after(2 * PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            for name in fronts.fronts:
                tasks.start_soon(work, name)
            while min(made["f1"], made["f2"]) < 5:
                await anyio.sleep(0.02)
            cluster.kill()
            try:
                await until(both_fail)
                lost_at = Counter(made)
                while any(made[name] < lost_at[name] + 5 for name in fronts.fronts):
                    await anyio.sleep(0.02)
            finally:
                cluster.start()
            await until(both_write)
            over.set()
        for name in fronts.fronts:
            await fronts.recorded(name)
    for name in fronts.fronts:
        where = f"WHERE session = 'window-{name}' AND tool = 'list_dir'"
        (found,) = cluster.execute(f"SELECT count(*) FROM tool_call {where}", fronts.database)
        assert found == [made[name]], made
        async with fronts.fronts[name].http() as http:
            store = (await http.get("/api/v1/stats")).json()["store"]
        assert (store["dropped"], store["problem"]) == ({}, None)
