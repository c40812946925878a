"""Clients that send no header of ours and keep no connection (modern SDKs by default): they may share a session."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ListRootsResult, Root

from tests.support.central import RunningCentral, running_central
from tests.support.mcp import sdk_client, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
async def central(folder: Path) -> AsyncGenerator[RunningCentral]:
    for name in ("shop", "store"):
        (folder / name / ".git").mkdir(parents=True)
        (folder / name / f"{name}.txt").write_text(name)
    async with running_central(folder) as running:
        yield running


async def test_a_session_that_may_be_shared_is_not_shown_what_it_is_refused(central: RunningCentral) -> None:
    own = {"activate_project", "switch_modes"}
    async with central.raw("modern") as shared, central.raw("modern", x_serena_session="mine") as mine:
        listed = {tool["name"] for tool in (await shared.ask("tools/list"))["result"]["tools"]}
        assert own <= {tool["name"] for tool in (await mine.ask("tools/list"))["result"]["tools"]}
        refused = await shared.call("find_file", file_mask="*")
    assert "find_file" in listed
    assert not own & listed
    assert "project=" in text_of(refused)
    assert "activate_project" not in text_of(refused)


async def test_the_instructions_fit_both_kinds_of_sessions(central: RunningCentral) -> None:
    async with central.raw("modern") as client:
        instructions = (await client.ask("server/discover"))["result"]["instructions"]
    assert "project=" in instructions
    assert "activate_project, where that is listed" in instructions


async def test_a_modern_client_is_asked_for_its_roots_where_nothing_else_tells_the_project(
    central: RunningCentral, folder: Path
) -> None:
    asked: list[Path] = []

    async def roots_of(root: Path) -> Any:
        asked.append(root)
        return ListRootsResult(roots=[Root(uri=root.as_uri())])

    for name in ("shop", "store"):
        root = folder / name
        async with sdk_client(
            central.url, "modern", central.authorized, list_roots_callback=lambda _context, root=root: roots_of(root)
        ) as client:
            found = await client.call_tool("find_file", {"file_mask": "*.txt"})
            assert found.structured_content == {"result": {"files": [f"{name}.txt"]}}
            named = await client.call_tool("find_file", {"file_mask": "*.txt", "project": "nowhere"})
            assert named.is_error
    assert asked == [folder / "shop", folder / "store"]


async def test_a_client_whose_roots_are_no_folders_gets_the_error(central: RunningCentral) -> None:
    async def no_roots(_context: Any) -> Any:
        return ListRootsResult(roots=[])

    async with sdk_client(central.url, "modern", central.authorized, list_roots_callback=no_roots) as client:
        refused = await client.call_tool("find_file", {"file_mask": "*.txt"})
    assert refused.is_error
