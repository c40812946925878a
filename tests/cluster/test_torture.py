"""Two fronts behind HAProxy, two nodes and PostgreSQL, of which two at once are killed while clients read and edit.

No answer may be of another project or older than the call, no edit lost or made twice, and nothing lives on of what was
killed. By default everything is killed once; SERENA_TORTURE_PAIRS is how many pairs are killed after that, by chance.
"""

import itertools
import json
import logging
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import httpx
import psutil
import pytest

from tests.cluster.conftest import RunningCluster, running_cluster
from tests.support.child import free_port
from tests.support.fronts import TOKEN, answers, balancing
from tests.support.mcp import RawClient, messages_in, text_of
from tests.support.postgresql import Cluster

logger = logging.getLogger(__name__)

PAIRS = int(os.environ.get("SERENA_TORTURE_PAIRS", "0"))

pytestmark = [pytest.mark.cluster, pytest.mark.anyio, pytest.mark.timeout(900 + 120 * PAIRS)]

PATIENCE_S = 300
FRONTS = ("f1", "f2")

PASSING = ("Retry", "Call again", "is not available now", "has no project host", "took longer", "was lost")
"""In errors of calls that changed nothing, and may be sent once more."""

UNKNOWN = ("It is unknown whether",)
"""In errors of edits that were made once or not at all."""


@dataclass
class Team:
    """The machine, with the ports of both fronts and of HAProxy."""

    cluster: RunningCluster
    database: Cluster
    database_url: str
    ports: dict[str, int]
    killed: list[psutil.Process] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['haproxy']}"

    def start_front(self, name: str) -> None:
        home = self.cluster.folder / name / "home"
        self.cluster.env(name)
        (home / "token").write_text(f"{TOKEN}\n")
        (home / "token").chmod(0o600)
        env = {"SERENA_CENTRAL_FRONT_NAME": name, "SERENA_CENTRAL_SERVER_NAMES": self.url.removeprefix("http://")}
        address = self.cluster.address
        port = str(self.ports[name])
        self.cluster.start(name, "Stop: Ctrl-C", "serve", "--port", port, "--cluster", address, env=env)

    def start_node(self, name: str) -> None:
        self.cluster.node(name, f"{self.cluster.folder}/src/*", head=name == "a")

    def start(self) -> None:
        self.start_node("a")
        with ThreadPoolExecutor() as threads:
            starting = [
                threads.submit(self.start_node, "b"),
                *(threads.submit(self.start_front, one) for one in FRONTS),
            ]
        for one in starting:
            one.result()

    def kill(self, process: psutil.Process) -> None:
        """With what it started left to end by itself."""
        with suppress(psutil.NoSuchProcess):
            self.killed += [process, *process.children(recursive=True)]
            process.kill()

    def kill_started(self, name: str) -> None:
        process = self.cluster.processes.pop(name)
        self.kill(psutil.Process(process.pid))
        process.wait(PATIENCE_S)

    def kill_hosts(self) -> None:
        """All that hold a root; each node's spare ones live."""
        for holder in self.cluster.folder.glob("*/home/hosts/*/host.json"):
            said = json.loads(holder.read_bytes())
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(said["pid"])
                if process.create_time() == said["created"]:
                    self.kill(process)

    def kill_directory(self) -> None:
        (process,) = [one for one in self.cluster.below() if "DirectoryActor" in "".join(one.cmdline()[:1])]
        self.kill(process)


@asynccontextmanager
async def team(folder: Path) -> AsyncGenerator[Team]:
    database = Cluster(synchronous_commit="on")  # what was committed survives kill -9
    try:
        database.start()
        with running_cluster(folder) as cluster:
            ports = {name: free_port() for name in (*FRONTS, "haproxy")}
            serving = Team(cluster, database, database.database("team"), ports)
            cluster.given["SERENA_CENTRAL_DATABASE_URL"] = serving.database_url
            await anyio.to_thread.run_sync(serving.start)
            with balancing(ports["haproxy"], *(f"http://127.0.0.1:{ports[name]}" for name in FRONTS)):
                with anyio.fail_after(PATIENCE_S):
                    while not await answers(serving.url):
                        await anyio.sleep(0.05)
                yield serving
        _, left = psutil.wait_procs(serving.killed, 15)
        assert left == []
    finally:
        database.remove()


class Agent:
    """A client that sends a call again when there was no answer."""

    def __init__(self, http: httpx.AsyncClient, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.done = 0
        self._client = RawClient(http, "modern", name=name)

    async def call(self, number: str, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether it succeeded, and what it said."""
        text = "no answer"
        with anyio.move_on_after(PATIENCE_S):
            while True:
                request = self._client.request(
                    "tools/call", {"name": tool, "arguments": {**arguments, "project": str(self.root)}}
                )
                request.headers["x-serena-call"] = number
                request.headers["x-serena-session"] = f"{self.root.name}-{self.name}"
                with suppress(httpx.HTTPError):
                    answer = await self._client.http.send(request)
                    text = answer.text
                    if answer.status_code == 200:
                        result = messages_in(answer.text)[-1]["result"]
                        text = text_of(result)
                        failed = bool(result.get("isError"))
                        if not failed or any(one in text for one in UNKNOWN) or not _passes(text):
                            return not failed, text
                await anyio.sleep(0.1)
        raise AssertionError(f"{self.name} of {self.root.name}, {tool}, {number}: {text}")


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

    def __init__(self, http: httpx.AsyncClient, root: Path, name: str) -> None:
        super().__init__(http, root, name)
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


async def test_nothing_is_wrong_lost_or_doubled_while_everything_is_killed_two_at_a_time(tmp_path: Path) -> None:
    began = time.monotonic()
    for name in ("red", "blue"):
        (tmp_path / "src" / name / ".git").mkdir(parents=True)  # before the nodes look for projects
    async with (
        team(tmp_path) as serving,
        httpx.AsyncClient(
            base_url=serving.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S
        ) as http,
    ):
        roots = [serving.cluster.project(name) for name in ("red", "blue")]
        agents = [kind(http, root, kind.__name__) for root in roots for kind in (Reader, Editor)]
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
            taken("all was started", began)
            for pair in pairs(faults(serving)):
                began = time.monotonic()
                for fault in pair:
                    await anyio.to_thread.run_sync(fault.lose)
                async with anyio.create_task_group() as starting:
                    for fault in pair:
                        starting.start_soon(anyio.to_thread.run_sync, fault.back)
                taken("what was killed was started again", began)
                await further()
                taken("every client was served again", began)
            over.set()
        for agent in agents:
            if isinstance(agent, Editor):
                agent.check()


def taken(what: str, since: float) -> None:
    logger.warning("%s after %.0f s", what, time.monotonic() - since)


class Fault(NamedTuple):
    """What kills, and what starts it again."""

    lose: Callable[[], None]
    back: Callable[[], None]


def faults(serving: Team) -> dict[str, Fault]:
    def nothing() -> None:
        """Ray or a front starts it again."""

    return {
        "hosts": Fault(serving.kill_hosts, nothing),
        "f1": Fault(partial(serving.kill_started, "f1"), partial(serving.start_front, "f1")),
        "database": Fault(serving.database.kill, serving.database.start),
        "directory": Fault(serving.kill_directory, nothing),
        "node": Fault(partial(serving.kill_started, "b"), partial(serving.start_node, "b")),
        "f2": Fault(partial(serving.kill_started, "f2"), partial(serving.start_front, "f2")),
    }


def pairs(all_of_them: dict[str, Fault]) -> Iterator[tuple[Fault, ...]]:
    """Everything once, the hosts with what their replacement needs; then any two."""
    first = [("database", "hosts"), ("directory", "f1"), ("node", "f2")]
    any_two = list(itertools.combinations(all_of_them, 2))
    seed = random.randrange(1 << 32)
    logger.warning("seed %d", seed)
    chance = random.Random(seed)
    for names in [*first, *(chance.choice(any_two) for _ in range(PAIRS))]:
        logger.warning("killing %s", " and ".join(names))
        yield tuple(all_of_them[name] for name in names)
