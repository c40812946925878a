"""Two fronts, two nodes and PostgreSQL, of which one after the other is killed while clients read and edit.

No answer may be of another project or older than the call, no edit lost or made twice, and nothing lives on of what was
killed. SERENA_TORTURE_ROUNDS is how often everything is killed, once by default.
"""

import itertools
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import psutil
import pytest

from tests.cluster.conftest import RunningCluster, running_cluster
from tests.support.mcp import RawClient, messages_in, text_of
from tests.support.postgresql import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.anyio]

ROUNDS = int(os.environ.get("SERENA_TORTURE_ROUNDS", "1"))
PATIENCE_S = 120
TOKEN = "a-token-that-both-fronts-have-0123456789"
FRONTS = ("f1", "f2")

PASSING = ("Retry", "Call again", "is not available now", "has no project host", "took longer", "was lost")
"""In errors of calls that changed nothing, and may be sent once more."""

UNKNOWN = ("It is unknown whether",)
"""In errors of edits that were made once or not at all."""


@dataclass
class Team:
    """The machine, with the ports of both fronts."""

    cluster: RunningCluster
    database: Cluster
    url: str
    ports: dict[str, int]
    killed: list[psutil.Process] = field(default_factory=list)

    def start_front(self, name: str) -> None:
        home = self.cluster.folder / name / "home"
        self.cluster.env(name)
        (home / "token").write_text(f"{TOKEN}\n")
        (home / "token").chmod(0o600)
        env = {"SERENA_CENTRAL_DATABASE_URL": self.url, "SERENA_CENTRAL_FRONT_NAME": name}
        address = f"127.0.0.1:{self.cluster.port}"
        port = str(self.ports[name])
        self.cluster.start(name, "Stop: Ctrl-C", "serve", "--port", port, "--cluster", address, env=env)

    def kill(self, name: str) -> None:
        """A front or a node, with what it started left to end by itself."""
        process = self.cluster.processes.pop(name)
        self.killed += psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(30)

    def get(self, path: str) -> Any:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx.get(f"http://127.0.0.1:{self.ports['f1']}{path}", headers=headers, timeout=PATIENCE_S).json()


@asynccontextmanager
async def team(folder: Path) -> AsyncGenerator[Team]:
    database = Cluster(synchronous_commit="on")  # what was committed survives kill -9
    try:
        database.start()
        with running_cluster(folder) as cluster:
            serving = Team(cluster, database, database.database("team"), {name: free_port() for name in FRONTS})

            def start() -> None:
                cluster.node("a", f"{folder}/src/*", head=True)
                cluster.node("b", f"{folder}/src/*")
                for name in FRONTS:
                    serving.start_front(name)

            await anyio.to_thread.run_sync(start)
            yield serving
        _, left = psutil.wait_procs(serving.killed, 15)
        assert left == []
    finally:
        database.remove()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Agent:
    """A client that sends a call again, to the other front, when there was no answer."""

    def __init__(self, https: list[httpx.AsyncClient], root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.done = 0
        self._clients = [RawClient(http, "modern", name=name) for http in https]
        self._turn = itertools.cycle(self._clients)
        self._client = next(self._turn)

    async def call(self, number: str, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether it succeeded, and what it said."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                request = self._client.request(
                    "tools/call", {"name": tool, "arguments": {**arguments, "project": str(self.root)}}
                )
                request.headers["x-serena-call"] = number
                request.headers["x-serena-session"] = f"{self.root.name}-{self.name}"
                with suppress(httpx.HTTPError):
                    answer = await self._client.http.send(request)
                    if answer.status_code == 200:
                        result = messages_in(answer.text)[-1]["result"]
                        text = text_of(result)
                        failed = bool(result.get("isError"))
                        if not failed or any(one in text for one in UNKNOWN) or not _passes(text):
                            return not failed, text
                self._client = next(self._turn)
                await anyio.sleep(0.1)


def _passes(text: str) -> bool:
    return any(one in text for one in PASSING)


class Reader(Agent):
    """Writes a file and asks at once what stands in it: another project has a file of this name, too."""

    async def work(self, over: anyio.Event) -> None:
        while not over.is_set():
            mark = f"{self.root.name}-{self.done}"
            (self.root / "mine.py").write_text(f"def mark() -> str:\n    return {mark!r}\n")
            good, text = await self.call(
                f"r-{self.done}", "find_symbol", name_path_pattern="mark", relative_path="mine.py", include_body=True
            )
            assert good, text
            assert f"return {mark!r}" in text.replace('\\"', "'"), (mark, text)
            self.done += 1


class Editor(Agent):
    """Makes edits each of which would be seen if it were there twice, or not at all."""

    def __init__(self, https: list[httpx.AsyncClient], root: Path, name: str) -> None:
        super().__init__(https, root, name)
        self.file = root / "theirs.py"
        self.file.write_text("def anchor() -> int:\n    return 1\n")
        self.made: list[int] = []
        self.unknown: list[int] = []

    async def work(self, over: anyio.Event) -> None:
        while not over.is_set():
            body = f"def added_{self.done}() -> int:\n    return 2\n"
            good, text = await self.call(
                f"e-{self.done}", "insert_after_symbol", name_path="anchor", relative_path="theirs.py", body=body
            )
            if not good:
                assert any(one in text for one in UNKNOWN), text
            (self.made if good else self.unknown).append(self.done)
            self.done += 1

    def check(self) -> None:
        text = self.file.read_text()
        wrong = {number: count for number in self.made if (count := text.count(f"def added_{number}()")) != 1}
        assert wrong == {}
        assert [number for number in self.unknown if text.count(f"def added_{number}()") > 1] == []


async def test_nothing_is_wrong_lost_or_doubled_while_everything_is_killed(tmp_path: Path) -> None:
    for name in ("red", "blue"):
        (tmp_path / "src" / name / ".git").mkdir(parents=True)  # before the nodes look for projects
    async with team(tmp_path) as serving, AsyncExitStack() as stack:
        roots = [serving.cluster.project(name) for name in ("red", "blue")]
        https: list[httpx.AsyncClient] = []
        for name in FRONTS:
            client = httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{serving.ports[name]}",
                headers={"authorization": f"Bearer {TOKEN}"},
                timeout=PATIENCE_S,
            )
            https.append(await stack.enter_async_context(client))
        agents = [kind(https, root, kind.__name__) for root in roots for kind in (Reader, Editor)]
        over = anyio.Event()

        async def further() -> None:
            wanted = [agent.done + 2 for agent in agents]
            with anyio.fail_after(PATIENCE_S):
                while any(agent.done < least for agent, least in zip(agents, wanted, strict=True)):
                    await anyio.sleep(0.02)

        async with anyio.create_task_group() as tasks:
            for agent in agents:
                tasks.start_soon(agent.work, over)
            await further()
            for _, (lose, back) in itertools.product(range(ROUNDS), faults(serving)):
                await anyio.to_thread.run_sync(lose)
                await anyio.to_thread.run_sync(back)
                await further()
            over.set()
        for agent in agents:
            if isinstance(agent, Editor):
                agent.check()


def faults(serving: Team) -> list[tuple[Callable[[], None], Callable[[], None]]]:
    """What kills, and what starts it again."""

    def kill_hosts() -> None:
        for host in serving.get("/api/v1/cluster")["hosts"]:
            if (state := host["state"]) is not None:
                os.kill(state["pid"], signal.SIGKILL)

    def nothing() -> None:
        pass

    folder = serving.cluster.folder
    return [
        (kill_hosts, nothing),
        (lambda: serving.kill("f1"), lambda: serving.start_front("f1")),
        (serving.database.kill, serving.database.start),
        (lambda: serving.kill("b"), lambda: serving.cluster.node("b", f"{folder}/src/*")),
        (lambda: serving.kill("f2"), lambda: serving.start_front("f2")),
    ]
