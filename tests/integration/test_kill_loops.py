"""Random kills of a server under load, and kills between the renames of one operation: nothing twice, lost or mixed."""

import random
import signal
import sys
from collections import Counter
from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.child import PATIENCE_S, serving_child
from tests.support.kills import Editor, load, lost, settle, twice
from tests.support.mcp import RawClient, messages_in, text_of
from tests.support.servers import SERVERS_HOME

pytestmark = pytest.mark.anyio

DYING = (sys.executable, "-m", "tests.support.dying")

SEED = 14


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """In a home that has the core language servers."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "servers").symlink_to(SERVERS_HOME / "servers")
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
async def test_sessions_that_edit_while_their_server_is_killed(
    tmp_path: Path, project: Path, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    files = [project / f"m{number}.py" for number in range(3)]
    for file in files:
        file.write_text("def first():\n    return 1\n")
    editors = [Editor(f"e{number}", files, chance) for number in range(8)]
    for number in range(kills):
        async with serving_child(tmp_path) as child, child.http() as http, anyio.create_task_group() as tasks:
            for editor in editors if number == 0 else ():
                await editor.open(http)
            tasks.start_soon(load, editors, http)
            await anyio.sleep(0.05 + 3 * chance.random() ** 2)  # the moment of the kill is what is random
            await child.end(signal.SIGKILL)
        assert twice(files) == []
    async with serving_child(tmp_path) as child, child.http() as http:
        await settle(editors, http)

    outcomes = sum((editor.outcomes for editor in editors), Counter[str]())
    with capsys.disabled():
        print(f"\n{kills} kills: {dict(outcomes)}")  # noqa: T201 (the figures are what a long run is for)
    assert [refusal for editor in editors for refusal in editor.refused if "was changed by" in refusal] == []
    assert twice(files) == []
    assert lost(editors, files) == []


class Renaming:
    """One session that renames a function of many files to and fro, and sends again what was not answered."""

    def __init__(self, project: Path, files: int) -> None:
        self.files = [project / f"used{number}.py" for number in range(files)]
        self.home = project / "home.py"
        self.home.write_text("def name0():\n    return 1\n")
        for file in self.files:
            file.write_text("from home import name0\n\nprint(name0())\n")
        self._client = RawClient(httpx.AsyncClient(base_url="http://nowhere"), "modern")
        self._headers = {"x-serena-session": "proxy"}
        self.number = 0
        self._sent: httpx.Request | None = None

    async def rename(self, http: httpx.AsyncClient) -> str:
        """Sends the newest request, again if it was not answered. Raises httpx.TransportError."""
        if self._sent is None:
            arguments = {"name_path": f"name{self.number}", "new_name": f"name{self.number + 1}"}
            arguments |= {"relative_path": "home.py", "project": str(self.home.parent)}
            self._sent = self._client.request("tools/call", {"name": "rename_symbol", "arguments": arguments})
        dropped = ("host", "authorization")
        headers = {name: value for name, value in self._sent.headers.items() if name not in dropped}
        headers |= self._headers | {"x-serena-call": f"c-{self.number}"}
        response = await http.post("/mcp", content=self._sent.content, headers=headers)
        messages = messages_in(response.text)
        if not messages:
            raise httpx.ReadError("the answer was cut off")
        answer = text_of(messages[-1]["result"])
        assert not messages[-1]["result"]["isError"], answer
        self.number, self._sent = self.number + 1, None
        return answer

    def state(self) -> str:
        """`old`, `new`, or what is mixed."""
        names = {
            number
            for file in (self.home, *self.files)
            for number in (self.number, self.number + 1)
            if f"name{number}" in file.read_text()
        }
        left = [path.name for path in self.home.parent.iterdir() if path.name.startswith(".serena")]
        if len(names) != 1 or left:
            return f"mixed: {names}, {left}"
        return "old" if names == {self.number} else "new"


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.slow)])
async def test_kills_between_the_renames_of_one_operation_leave_all_or_nothing(
    tmp_path: Path, project: Path, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    renaming = Renaming(project, files=6)
    states: Counter[str] = Counter()
    for number in range(kills):
        # Seven files: as many renames, so that an even share of the kills comes between two of them.
        point = f"replace:{chance.choice(('before', 'after'))}:{chance.randint(1, 7)}" if number else "replace:after:3"
        repository = str(Path(__file__).parents[2])
        async with (
            serving_child(tmp_path, program=DYING, DIE_AT=point, PYTHONPATH=repository) as child,
            child.http() as http,
        ):
            states[renaming.state() if number else "old"] += 1
            try:
                while True:
                    await renaming.rename(http)
            except httpx.TransportError:
                with anyio.fail_after(PATIENCE_S):
                    assert await child.process.wait() == -signal.SIGKILL
    async with serving_child(tmp_path) as child, child.http() as http:
        states[renaming.state()] += 1
        await renaming.rename(http)
        assert renaming.state() == "old"  # the name that the newest rename gave

    with capsys.disabled():
        print(f"\n{kills} kills between renames: {dict(states)}")  # noqa: T201
    assert set(states) <= {"old", "new"}
