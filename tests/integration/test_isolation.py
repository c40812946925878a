"""Sessions never see each other's project, and share one language server where they work on the same."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp.client import Client

from tests.support.central import RunningCentral
from tests.support.mcp import Era, sdk_client, text_of

pytestmark = pytest.mark.anyio

COLOURS = ("red", "blue")
ROUNDS = 17
AT_ONCE = 12

Call = Callable[[str, dict[str, Any]], Awaitable[str]]
"""One client's tool call: the answer's first block; an error fails the test."""

ASKED: dict[str, dict[str, Any]] = {
    "find_symbol": {"name_path_pattern": "Paint/mix", "include_body": True},
    "get_symbols_overview": {"relative_path": "paint.py", "depth": 2},
    "find_referencing_symbols": {"name_path": "Paint/mix", "relative_path": "paint.py"},
    "search_for_pattern": {"substring_pattern": "def mix", "context_lines_after": 1},
    "read_file": {"relative_path": "paint.py"},
    "find_declaration": {"relative_path": "use.py", "regex": r"Paint\(\)\.(mix)", "include_body": True},
    "get_symbol_context": {"name_path": "Paint/mix"},
    "find_file": {"file_mask": "paint.py"},
    "get_diagnostics_for_file": {"relative_path": "use.py"},
}
"""The same words for both projects."""

COLOURLESS = ("find_file",)
"""What these answer is the same in both projects."""


def a_project(folder: Path, colour: str) -> Path:
    """A project that defines the same names as any other, at other lines, with its colour in all that differs."""
    root = folder / colour
    root.mkdir()
    above = "\n" * len(colour)
    (root / "paint.py").write_text(
        f'{above}class Paint:\n    {colour} = 1\n\n    def mix(self) -> str:\n        return "{colour}"\n'
    )
    (root / "use.py").write_text(
        f'from paint import Paint\n\n\ndef use() -> str:\n    {colour}: int = "{colour}"\n'
        f'    return Paint().mix() + "{colour}"\n'
    )
    return root


@asynccontextmanager
async def by_sdk(central: RunningCentral, era: Era, session: str) -> AsyncGenerator[Call]:
    headers = central.authorized | {"x-serena-session": session}
    async with sdk_client(central.url, era, headers) as client:
        assert isinstance(client, Client)

        async def call(tool: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(tool, arguments)
            text = result.content[0].text
            assert not result.is_error, text
            return text

        yield call


@asynccontextmanager
async def by_hand(central: RunningCentral, era: Era, session: str) -> AsyncGenerator[Call]:
    async with central.raw(era, x_serena_session=session) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> str:
            result = await client.call(tool, **arguments)
            assert not result["isError"], text_of(result)
            return text_of(result)

        yield call


@pytest.mark.parametrize("connect", [by_sdk, by_hand], ids=["official client", "plain HTTP"])
@pytest.mark.parametrize("eras", [("handshake", "modern"), ("modern", "handshake")], ids=" and ".join)
async def test_two_sessions_never_get_an_answer_from_the_others_project(
    central: RunningCentral, tmp_path: Path, connect: Any, eras: tuple[Era, Era]
) -> None:
    async with AsyncExitStack() as stack:
        calls: dict[str, Call] = {}
        for colour, era in zip(COLOURS, eras, strict=True):
            root = a_project(tmp_path, colour)
            calls[colour] = await stack.enter_async_context(connect(central, era, f"session-{colour}"))
            await calls[colour]("activate_project", {"project": str(root)})
        answers: dict[tuple[str, str], list[str]] = {}
        places = anyio.CapacityLimiter(AT_ONCE)

        async def ask(colour: str, tool: str) -> None:
            async with places:
                answer = await calls[colour](tool, ASKED[tool])
            answers.setdefault((colour, tool), []).append(answer)

        # All at once, in an order that alternates between the sessions; then one by one, alternating as well.
        async with anyio.create_task_group() as tasks:
            for _ in range(ROUNDS):
                for tool in ASKED:
                    for colour in COLOURS:
                        tasks.start_soon(ask, colour, tool)
        for tool in ASKED:
            for colour in COLOURS:
                await ask(colour, tool)
    for (colour, tool), given in answers.items():
        (only,) = set(given)
        assert len(given) == ROUNDS + 1
        (other,) = set(COLOURS) - {colour}
        assert tool in COLOURLESS or colour in only, f"{tool}: {only}"
        assert other not in only, f"{tool}: {only}"
    assert len(answers) == len(ASKED) * len(COLOURS)


async def test_a_call_that_names_a_project_leaves_the_sessions_own_as_it_is(
    central: RunningCentral, tmp_path: Path
) -> None:
    red, blue = (a_project(tmp_path, colour) for colour in COLOURS)
    async with by_hand(central, "modern", "one") as one, by_hand(central, "handshake", "two") as two:
        await one("activate_project", {"project": str(red)})
        await two("activate_project", {"project": str(red)})

        async def ask(call: Call, project: Path | None, colour: str) -> None:
            named = {"project": str(project)} if project else {}
            assert f'return "{colour}"' in await call("read_file", {"relative_path": "paint.py", **named})

        async with anyio.create_task_group() as tasks:
            for _ in range(25):
                tasks.start_soon(ask, one, blue, "blue")
                tasks.start_soon(ask, one, None, "red")
                tasks.start_soon(ask, two, None, "red")
        both = json.loads(await two("read_file", {"relative_path": "paint.py", "project": [str(red), str(blue)]}))
    assert {name: [colour for colour in COLOURS if colour in text] for name, text in both.items()} == {
        "red": ["red"],
        "blue": ["blue"],
    }


async def test_four_sessions_on_one_project_share_one_language_server(central: RunningCentral, tmp_path: Path) -> None:
    root = a_project(tmp_path, "red")
    ways = [(by_sdk, "handshake"), (by_sdk, "modern"), (by_hand, "handshake"), (by_hand, "modern")]
    before = set(language_servers())
    async with AsyncExitStack() as stack:
        calls = [
            await stack.enter_async_context(connect(central, era, f"session-{number}"))
            for number, (connect, era) in enumerate(ways)
        ]

        async def work(call: Call) -> None:
            await call("activate_project", {"project": str(root)})
            for _ in range(5):
                await call("find_referencing_symbols", ASKED["find_referencing_symbols"])

        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(work, call)
        async with central.http() as http:
            (server,) = (await http.get("/api/v1/servers")).json()["servers"]
            sessions = (await http.get("/api/v1/sessions")).json()["sessions"]
        assert [set(language_servers()) - before, server["attached"]] == [{server["pid"]}, 4]
        assert sorted(one["session_id"] for one in sessions) == [f"session-{number}" for number in range(4)]
        assert {one["active_project_root"] for one in sessions} == {str(root)}


def language_servers() -> list[int]:
    """Pids of ty below this process, which is the server's own."""
    found: list[int] = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() == "ty":
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found
