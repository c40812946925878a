"""A client with dialogs asks its person whether a repository is trusted, in both eras; only a yes changes anything."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client

from serena_central.mcp_server.sdk_lane import SdkLane
from serena_central.mcp_server.trust_questions import key_of
from serena_central.projects.trust.trust_dialog import TrustQuestion
from serena_central.testing.server import Era
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import sdk_client

pytestmark = pytest.mark.anyio

YES = types.ElicitResult(action="accept", content={"trust": True})
NOT_A_YES = [
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
    types.ElicitResult(action="accept", content={"trust": False}),
]


@pytest.fixture(autouse=True)
def without_the_sdks_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question needs none."""

    async def loaded(_lane: SdkLane) -> Any:
        raise AssertionError("a plain request came to the SDK")

    monkeypatch.setattr(SdkLane, "loaded", loaded)


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"trusted_roots": []}) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "main.go").write_text("package main\n")
    name_program(root, "evil")
    return root


def name_program(root: Path, program: str) -> None:
    (root / ".serena").mkdir(exist_ok=True)
    (root / ".serena" / "project.yml").write_text(f'language_servers: {{go: {{command: "{program}"}}}}\n')


class Person:
    """Answers dialogs; `before` happens while a dialog is open."""

    def __init__(self, answer: types.ElicitResult) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.before = lambda: None

    async def __call__(self, _context: Any, asked: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(asked.message)
        self.before()
        return self.answer


async def activated(central: RunningCentral, era: Era, root: Path, person: Person | None, times: int = 1) -> str:
    """All that the model is told by its last call."""
    headers = central.authorized | {"x-serena-session": "mine"}
    options: dict[str, Any] = {"elicitation_callback": person} if person else {}
    said = ""
    async with sdk_client(central.url, era, headers, **options) as client:
        for _ in range(times):
            said = await _activate(client, root)
    return said


async def _activate(client: Client, root: Path) -> str:
    result = await client.call_tool("activate_project", {"project": str(root)})
    assert not result.is_error
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def trusted(central: RunningCentral, root: Path) -> bool:
    return central.central.dashboard.parts.trust.is_trusted(root)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_yes_trusts_what_stood_in_the_dialog(central: RunningCentral, era: Era, root: Path) -> None:
    person = Person(YES)
    said = await activated(central, era, root, person)
    (asked,) = person.asked
    assert str(root) in asked
    assert "command: evil" in asked
    assert "build scripts" in asked
    assert trusted(central, root)
    assert "'shop' is active" in said
    assert "not trusted" not in said
    (approval,) = central.central.dashboard.parts.trust.approvals()
    assert approval.by.startswith("the user, via ")


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_it_is_asked_also_where_a_server_is_not_run_at_all(central: RunningCentral, era: Era, root: Path) -> None:
    (root / "main.py").write_text("def opened(): ...\n")
    (root / ".serena" / "project.yml").write_text("language_servers: {python: basedpyright}\n")
    person = Person(YES)
    await activated(central, era, root, person)
    (asked,) = person.asked
    assert "python: basedpyright" in asked
    assert trusted(central, root)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("answer", NOT_A_YES)
async def test_anything_else_leaves_it_restricted_and_is_not_asked_again(
    central: RunningCentral, era: Era, root: Path, answer: types.ElicitResult
) -> None:
    person = Person(answer)
    said = await activated(central, era, root, person, times=2)
    assert "'shop' is active" in said
    assert len(person.asked) == 1
    assert not trusted(central, root)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_changes_while_the_dialog_is_open_is_not_trusted(
    central: RunningCentral, era: Era, root: Path
) -> None:
    person = Person(YES)
    person.before = lambda: name_program(root, "worse")
    await activated(central, era, root, person)
    assert "command: evil" in person.asked[0]
    # In the modern era the call that brings the answer is a call as any other, and asks about what is there now.
    assert trusted(central, root) is ("command: worse" in person.asked[-1])


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_of_two_dialogs_that_are_open_at_once_each_answer_is_about_its_own(
    central: RunningCentral, era: Era, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "main.go").write_text("package main\n")
    name_program(other, "evil")
    is_open = {root: anyio.Event(), other: anyio.Event()}
    is_over = anyio.Event()

    async def person(_context: Any, asked: types.ElicitRequestParams) -> types.ElicitResult:
        is_root = str(root) in asked.message
        is_open[root if is_root else other].set()
        if is_root:
            await is_open[other].wait()
            return YES
        await is_over.wait()
        return NOT_A_YES[0]

    headers = central.authorized | {"x-serena-session": "mine"}
    async with sdk_client(central.url, era, headers, elicitation_callback=person) as client:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def activate_root() -> None:
                    await _activate(client, root)
                    is_over.set()

                tasks.start_soon(activate_root)
                await is_open[root].wait()
                tasks.start_soon(_activate, client, other)
    assert trusted(central, root)
    assert not trusted(central, other)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_client_without_dialogs_is_not_asked(central: RunningCentral, era: Era, root: Path) -> None:
    said = await activated(central, era, root, None)
    assert "this repository is not trusted" in said
    assert not trusted(central, root)


@pytest.mark.parametrize("held_back", ["too much", "nothing"])
async def test_nothing_is_asked_where_nothing_is_held_back_or_it_fits_no_dialog(
    central: RunningCentral, root: Path, held_back: str
) -> None:
    if held_back == "nothing":
        (root / ".serena" / "project.yml").write_text("language_servers: {python: ty}\n")
    else:
        name_program(root, "x" * 5000)
    person = Person(YES)
    await activated(central, "handshake", root, person)
    assert person.asked == []


async def test_an_answer_that_nobody_was_asked_for_trusts_nothing(central: RunningCentral, root: Path) -> None:
    async with central.raw("modern", x_serena_session="mine") as client:
        params = {"name": "activate_project", "arguments": {"project": str(root)}}
        assert "result" in await client.ask("tools/call", params)
        trust = central.central.dashboard.parts.trust
        question = TrustQuestion(str(root), trust.standing(root).digest, "")
        answers = {key_of(question): {"action": "accept", "content": {"trust": True}}}
        assert "result" in await client.ask("tools/call", params | {"inputResponses": answers})
    assert not trusted(central, root)
