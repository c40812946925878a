"""Edits around a `kill -9` of the server: asked for again under their old ids they are made once, and none is lost."""

import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.child import PATIENCE_S, Child, serving_child
from tests.support.dying import POINTS
from tests.support.mcp import RawClient, messages_in, text_of

pytestmark = pytest.mark.anyio

DYING = (sys.executable, "-m", "tests.support.dying")

IN_SHORT = ("replace:before", "replace:after", "end:after", "answer:before")
"""The steps between which something changes for who asks again."""

IN_SEVERAL_FILES = ("begin:after:1", "link:after:2", "replace:after:1", "replace:after:2")
"""The same for an edit of two files, one of each project; and where nothing is staged yet."""

OF_SEVERAL_FILES = ("link", "remove")
"""What an edit of one file does not do."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    path = tmp_path / "project" / "mod.py"
    path.write_text("def first():\n    return 1\n")
    return path


class Repeating:
    """One session that keeps its requests and sends them again, byte for byte, to whatever server there is."""

    def __init__(self, *files: Path, call_header: bool) -> None:
        """`files`: one of each project that is edited, of one name."""
        self.files = files
        self.sent: list[tuple[bytes, dict[str, str]]] = []
        self._proxy = {"x-serena-session": "proxy"} if call_header else {}
        self._client = RawClient(httpx.AsyncClient(base_url="http://nowhere"), "modern" if call_header else "handshake")

    async def open(self, http: httpx.AsyncClient) -> None:
        self._client.http = http
        await self._client.open()

    def insertion(self) -> int:
        """Makes a request that inserts a function of its own; its number."""
        number = len(self.sent)
        arguments: dict[str, Any] = {"name_path": "first", "body": f"def added{number}():\n    return 2"}
        projects = [str(file.parent) for file in self.files]
        arguments |= {"relative_path": self.files[0].name, "project": projects if len(projects) > 1 else projects[0]}
        return self.ask("insert_after_symbol", arguments)

    def ask(self, tool: str, arguments: dict[str, Any]) -> int:
        """Makes a request; its number."""
        number = len(self.sent)
        request = self._client.request("tools/call", {"name": tool, "arguments": arguments})
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "authorization")}
        if self._proxy:
            headers |= self._proxy | {"x-serena-call": f"c-{number}"}
        self.sent.append((request.content, headers))
        return number

    async def send(self, http: httpx.AsyncClient, number: int) -> str:
        """The answer. Raises httpx.TransportError where the server dies before it has come."""
        body, headers = self.sent[number]
        response = await http.post("/mcp", content=body, headers=headers)
        assert response.status_code == 200, response.text
        messages = messages_in(response.text)
        if not messages:
            raise httpx.ReadError("the answer was cut off")
        return text_of(messages[-1]["result"])

    def counts(self) -> list[int]:
        """How often each function stands in each file."""
        texts = [file.read_text() for file in self.files]
        return [text.count(f"def added{number}(") for text in texts for number in range(len(self.sent))]


@asynccontextmanager
async def served(folder: Path, die_at: str = "", **more: str) -> AsyncGenerator[tuple[Child, httpx.AsyncClient]]:
    more |= {"DIE_AT": die_at}
    repository = str(Path(__file__).parents[2])
    async with serving_child(folder, program=DYING, PYTHONPATH=repository, **more) as child, child.http() as http:
        yield child, http


async def killed_at_each(folder: Path, client: Repeating, points: Iterable[str], *, made: str = "e-") -> None:
    """A server for each point, which dies there in the first edit that it makes; each is asked all over again."""
    async with served(folder) as (_, http):
        await client.open(http)
        await client.send(http, client.insertion())
    for point in points:
        async with served(folder, point if point.count(":") > 1 else f"{point}:1") as (child, http):
            assert len({file.read_text() for file in client.files}) == 1, point
            try:
                for number in range(len(client.sent)):
                    answer = await client.send(http, number)
                    assert made in answer or "e-" in answer, (point, answer)
                await client.send(http, client.insertion())
            except httpx.TransportError:
                pass
            with anyio.fail_after(PATIENCE_S):
                assert await child.process.wait() == -signal.SIGKILL, point
        assert all(count <= 1 for count in client.counts()), (point, client.counts())


async def all_made_once(folder: Path, client: Repeating, *, made: str = "e-") -> None:
    async with served(folder) as (child, http):
        for number in range(len(client.sent)):
            answer = await client.send(http, number)
            assert made in answer or "e-" in answer, answer
        await child.end(signal.SIGKILL)
    assert client.counts() == [1] * len(client.sent) * len(client.files)


async def test_an_edit_killed_between_its_steps_and_asked_for_again_is_made_once(tmp_path: Path, file: Path) -> None:
    client = Repeating(file, call_header=False)
    await killed_at_each(tmp_path, client, IN_SHORT)
    for _ in range(2):
        await all_made_once(tmp_path, client)


class Remembering(Repeating):
    """Appends a line of its own to a memory with each request."""

    def insertion(self) -> int:
        arguments = {"memory_name": "plan", "needle": "end", "mode": "literal", "project": str(self.files[0].parent)}
        return self.ask("edit_memory", arguments | {"repl": f"def added{len(self.sent)}()\nend"})

    def counts(self) -> list[int]:
        text = (self.files[0].parent / ".serena/memories/plan.md").read_text()
        return [text.count(f"def added{number}()") for number in range(len(self.sent))]


@pytest.mark.parametrize(
    "points",
    [
        ("replace:before", "replace:after"),
        pytest.param(("begin:after", "end:after", "answer:before"), marks=pytest.mark.slow),
    ],
)
async def test_an_edit_of_a_memory_killed_between_its_steps_and_asked_for_again_is_made_once(
    tmp_path: Path, file: Path, points: tuple[str, ...]
) -> None:
    (file.parent / ".serena/memories").mkdir(parents=True)
    (file.parent / ".serena/memories/plan.md").write_text("end\n")
    client = Remembering(file, call_header=True)
    await killed_at_each(tmp_path, client, points, made="plan")
    await all_made_once(tmp_path, client, made="plan")


async def test_an_edit_of_two_projects_killed_between_its_steps_is_made_in_both_or_in_neither(
    tmp_path: Path, file: Path
) -> None:
    other = tmp_path / "other" / file.name
    (other.parent / ".git").mkdir(parents=True)
    other.write_text(file.read_text())
    client = Repeating(file, other, call_header=False)
    await killed_at_each(tmp_path, client, IN_SEVERAL_FILES)
    await all_made_once(tmp_path, client)


@pytest.mark.slow
@pytest.mark.parametrize("call_header", [False, True], ids=["handshake", "proxy"])
async def test_an_edit_killed_at_any_step_and_asked_for_again_is_made_once(
    tmp_path: Path, file: Path, call_header: bool
) -> None:
    client = Repeating(file, call_header=call_header)
    await killed_at_each(tmp_path, client, (point for point in POINTS if not point.startswith(OF_SEVERAL_FILES)))
    for _ in range(2):
        await all_made_once(tmp_path, client)


@contextmanager
def locked(database: Path) -> Generator[None]:
    """Another process's transaction, which keeps the server from opening the file."""
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


def lose(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


@pytest.mark.parametrize("fault", ["database locked", "database lost", "database corrupt", "journal lost"])
async def test_what_is_left_of_journal_and_database_tells_repetitions(tmp_path: Path, file: Path, fault: str) -> None:
    client = Repeating(file, call_header=True)
    database, journal = tmp_path / "home" / "serena-central.db", tmp_path / "home" / "edits.journal"
    async with served(tmp_path, "flush:after:1") as (child, http):
        await client.open(http)
        with suppress(httpx.TransportError):
            await client.send(http, client.insertion())
        with anyio.fail_after(PATIENCE_S):
            await child.process.wait()
    trouble: AbstractContextManager[None] = nullcontext()
    match fault:
        case "database locked":
            trouble = locked(database)
        case "database lost":
            lose(database)
        case "database corrupt":
            database.write_bytes(b"no database" * 1000)
        case _:
            lose(journal)

    with trouble:
        async with served(tmp_path) as (_, http):
            assert "e-" in await client.send(http, 0)
    async with served(tmp_path) as (_, http):
        assert "e-" in await client.send(http, 0)
        assert "edit" in await client.send(http, client.insertion())

    assert client.counts() == [1, 1]


@pytest.mark.parametrize("ahead_s", [3 * 86400, -7200])
async def test_a_clock_that_jumps_makes_no_repetition_a_new_call(tmp_path: Path, file: Path, ahead_s: int) -> None:
    client = Repeating(file, call_header=True)
    async with served(tmp_path, "answer:after:1") as (child, http):
        await client.open(http)
        with suppress(httpx.TransportError):
            await client.send(http, client.insertion())
        with anyio.fail_after(PATIENCE_S):
            await child.process.wait()
    async with served(tmp_path, CLOCK_AHEAD_S=str(ahead_s)) as (_, http):
        assert "e-" in await client.send(http, 0)

    assert client.counts() == [1]


async def test_what_a_session_saw_before_an_edit_is_guarded_after_a_kill_in_it(tmp_path: Path, file: Path) -> None:
    """The edit is of another symbol, and comes right after the look: nothing had time to be written behind."""
    file.write_text("def first():\n    return 1\n\n\ndef second():\n    return 2\n")
    project = {"project": str(file.parent)}

    def of(session: str, http: httpx.AsyncClient) -> RawClient:
        http.headers["x-serena-session"] = session
        return RawClient(http, "modern")

    async with served(tmp_path, "begin:before:1") as (_, http):
        client = of("one", http)
        await client.call("find_symbol", name_path_pattern="first", include_body=True, **project)
        with suppress(httpx.TransportError):
            await client.call("replace_symbol_body", name_path="second", body="def second():\n    return 0", **project)
    async with served(tmp_path) as (child, http):
        change = {"name_path": "first", "body": "def first():\n    return 'two'"} | project
        assert not (await of("two", http).call("replace_symbol_body", **change))["isError"]
        refused = await of("one", http).call("replace_symbol_body", **change)
        await child.end(signal.SIGKILL)

    assert refused["isError"]
    assert "was changed by session two" in text_of(refused)
