"""Two servers with one database behind HAProxy: sessions stick to theirs, and go on at the other when it is killed."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.child import PATIENCE_S, Child
from tests.support.fronts import Fronts, two_fronts
from tests.support.mcp import Era, RawClient, messages_in, text_of
from tests.support.postgresql import Cluster
from tests.support.proxy import ProxyClient, proxying

pytestmark = [pytest.mark.anyio, pytest.mark.postgresql]

ERAS: tuple[Era, Era] = ("handshake", "modern")


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    cluster = Cluster(synchronous_commit="on")  # what was committed survives kill -9
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
async def fronts(cluster: Cluster, tmp_path: Path) -> AsyncGenerator[Fronts]:
    async with two_fronts(cluster, tmp_path) as serving:
        yield serving


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


async def writes(front: Child) -> bool:
    async with front.http() as http:
        return (await http.get("/api/v1/stats")).json()["store"]["problem"] is None


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


class Reader:
    """A session that writes a file of its own in its project, and asks at once what stands there."""

    def __init__(self, http: httpx.AsyncClient, era: Era, root: Path, name: str) -> None:
        self.client = RawClient(http, era, name=name)
        self.root = root
        self.name = name
        self.right = 0
        """Answers that were right, of which the first says that the project is active."""

    async def open(self) -> None:
        await self.client.open()
        await self.client.call("activate_project", project=str(self.root))

    async def work(self, over: anyio.Event) -> None:
        while not over.is_set():
            mark = f"{self.root.name}-{self.name}-{self.right}"
            (self.root / f"{self.name}.py").write_text(f"def mark() -> str:\n    return {mark!r}\n")
            found = await patiently(
                self.client, "find_symbol", name_path_pattern="mark", relative_path=f"{self.name}.py", include_body=True
            )
            (message,) = messages_in(found.text)
            text = text_of(message["result"])
            assert f"return {mark!r}" in text.replace('\\"', "'"), text
            self.right += 1


async def test_answers_are_right_and_new_while_fronts_and_database_are_killed(
    fronts: Fronts, cluster: Cluster, tmp_path: Path
) -> None:
    over = anyio.Event()
    roots = [tmp_path / colour for colour in ("red", "blue")]
    for root in roots:
        (root / ".git").mkdir(parents=True)
    async with AsyncExitStack() as stack:
        readers: list[Reader] = []
        for number, (root, era) in enumerate((root, era) for root in roots for era in ERAS):
            # One file name in both projects: an answer of the wrong one would have the other's words.
            session = {} if era == "handshake" else {"x_serena_session": f"window-{number}"}
            http = await stack.enter_async_context(fronts.http(**session))
            readers.append(Reader(http, era, root, f"mine_{era}"))
        for reader in readers:
            await reader.open()
        for name in fronts.fronts:
            await fronts.recorded(name)

        async def further() -> None:
            reached = [reader.right + 3 for reader in readers]
            with anyio.fail_after(PATIENCE_S):
                while any(reader.right < wanted for reader, wanted in zip(readers, reached, strict=True)):
                    await anyio.sleep(0.02)

        async with anyio.create_task_group() as tasks:
            for reader in readers:
                tasks.start_soon(reader.work, over)
            await further()
            # One after the other: a front that begins while there is no database knows no session of before.
            for fault in ("database", "f1", "f2"):
                if fault == "database":
                    cluster.kill()
                else:
                    await fronts.kill(fault)
                try:
                    await further()
                finally:
                    if fault == "database":
                        cluster.start()
                    else:
                        await fronts.start(fault)
                await further()
                for front in fronts.fronts.values():  # who is fetched next is in the database
                    await until(partial(writes, front))
            over.set()


def insertion(client: RawClient, file: Path, call: int) -> httpx.Request:
    """An edit that would be there twice if it were made twice."""
    arguments = {
        "name_path": "anchor",
        "relative_path": file.name,
        "project": str(file.parent),
        "body": f"def added_{call}():\n    return 2\n",
    }
    request = client.request("tools/call", {"name": "insert_after_symbol", "arguments": arguments})
    request.headers["x-serena-call"] = f"c-{call}"
    return request


async def test_an_edit_is_not_made_again_by_the_other_front_when_its_own_was_killed_before_the_answer(
    fronts: Fronts, tmp_path: Path
) -> None:
    file = project(tmp_path) / "a.py"
    file.write_text("def anchor():\n    return 1\n")
    for call, (first, other) in enumerate((("f1", "f2"), ("f2", "f1"), ("f1", "f2"))):
        async with fronts.fronts[first].http() as begun, fronts.fronts[other].http() as after:
            clients = []
            for http in (begun, after):
                http.headers["x-serena-session"] = "window"
                clients.append(RawClient(http, "modern"))

            async def send() -> None:
                with suppress(httpx.HTTPError):  # its front is killed
                    await clients[0].http.send(insertion(clients[0], file, call))  # noqa: B023

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                with anyio.fail_after(PATIENCE_S):
                    while f"added_{call}" not in file.read_text():
                        await anyio.sleep(0.001)
                await fronts.kill(first)
            answer = await clients[1].http.send(insertion(clients[1], file, call))
            (message,) = messages_in(answer.text)
            assert file.read_text().count(f"def added_{call}") == 1, message
            assert "already made" in text_of(message["result"]), message
        await fronts.start(first)


async def test_a_front_that_began_without_its_database_overwrites_no_session(
    fronts: Fronts, cluster: Cluster, tmp_path: Path
) -> None:
    root = project(tmp_path)
    body = {"arguments": {"relative_path": ".", "project": str(root)}, "session": "window"}

    def rows() -> list[Any]:
        asked = "SELECT tool_call_count, created_at, project_root FROM session WHERE id = 'window'"
        return cluster.execute(asked, fronts.database)

    async with fronts.fronts["f1"].http() as http:
        for _ in range(3):
            assert (await http.post("/api/v1/tools/list_dir", json=body)).status_code == 200

    async def is_recorded() -> bool:
        await fronts.recorded("f1")
        return [row[0] for row in rows()] == [3]

    await until(is_recorded)
    (before,) = rows()
    await fronts.kill("f1")
    cluster.kill()
    try:
        await fronts.start("f1")
        async with fronts.fronts["f1"].http() as http:
            assert (await http.post("/api/v1/tools/list_dir", json=body)).status_code == 200
    finally:
        cluster.start()

    async def is_added() -> bool:
        (now,) = rows()
        assert now[0] >= before[0]
        return now == [before[0] + 1, *before[1:]]

    await until(is_added)
