"""What an agent may open over MCP, and what no tool of it changes: folders of other programs, and git's own files."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import RunningCentral, running_central
from tests.support.child import run_command, serving_child
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio

OPTIONAL = ["replace_in_files", "insert_at_line", "delete_lines", "replace_lines"]


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"allowed_roots": [], "included_optional_tools": OPTIONAL}) as running:
        yield running


async def told(client: RawClient, tool: str, **arguments: Any) -> str:
    return text_of(await client.call(tool, **arguments))


async def test_an_agents_call_opens_no_folder_that_nobody_made_a_project(
    central: RunningCentral, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    (plain / "deep").mkdir(parents=True)
    (plain / "x.py").write_text("x = 1\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("activate_project", {"project": str(plain)}),
        ("find_file", {"file_mask": "*", "project": str(plain)}),
        ("find_file", {"file_mask": "*", "project": [str(plain)]}),
        ("create_text_file", {"relative_path": "y.py", "content": "", "project": str(plain)}),
        ("query_project", {"project_name": str(plain), "tool_name": "onboarding", "tool_params_json": "{}"}),
        ("remove_project", {"project": str(plain)}),
    ]
    async with central.raw("modern", x_serena_session="elsewhere", x_serena_project=str(tmp_path / "home")) as agent:
        for tool, arguments in calls:
            answer = await told(agent, tool, **arguments)
            assert "is not opened for an agent" in answer or "is an optional tool" in answer, answer
        async with central.http() as scripts:
            body = {"arguments": {"file_mask": "*", "project": str(plain)}}
            assert (await scripts.post("/api/v1/tools/find_file", json=body)).status_code == 403
        assert central.central.projects.known_names() == []
        async with central.http(x_serena_person="yes") as person:
            assert (await person.post("/api/v1/tools/find_file", json=body)).status_code == 200
        assert "x.py" in await told(agent, "find_file", file_mask="*", project=str(plain))


@pytest.mark.parametrize("works_in", ["plain", "plain/deep"])
async def test_an_agent_opens_the_folder_that_its_client_works_in(
    central: RunningCentral, tmp_path: Path, works_in: str
) -> None:
    (tmp_path / "plain/deep").mkdir(parents=True)
    async with central.raw("modern", x_serena_session="a", x_serena_project=str(tmp_path / works_in)) as agent:
        assert "is active" in await told(agent, "activate_project", project=str(tmp_path / "plain"))


async def test_the_servers_own_home_and_gits_are_no_projects(central: RunningCentral, tmp_path: Path) -> None:
    hooks = tmp_path / "app/.git/hooks"
    (hooks / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(hooks)
    home = tmp_path / "home"
    for root in (home, home / "cache", Path(os.environ["SERENA_HOME"]), hooks, tmp_path / "link", Path("/etc")):
        async with central.raw("modern", x_serena_session="a", x_serena_project=str(root)) as agent:
            assert "can't be a project" in await told(agent, "activate_project", project=str(root))
        async with central.http(x_serena_person="yes") as person:
            body = {"arguments": {"file_mask": "*", "project": str(root)}}
            assert (await person.post("/api/v1/tools/find_file", json=body)).status_code == 403


def repository(folder: Path) -> Path:
    root = folder / "app"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "x.py").write_text("def f() -> int:\n    return 1\n")
    (root / "tree").mkdir()
    (root / "tree/.git").write_text("gitdir: ../.git/worktrees/tree\n")
    (root / ".GIT").mkdir()
    (root / ".GIT/config").write_text("[core]\n")
    (root / "shortcut").symlink_to(".git")
    return root


def state_of(root: Path) -> dict[str, bytes]:
    files = [file for top in (".git", ".GIT", "tree") for file in (root / top).rglob("*") if file.is_file()]
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


GITS = [".git/config", ".git/hooks/pre-commit", ".GIT/config", "tree/.git", "./x/../.git/config", "shortcut/config"]
GITS += [".git", ".git /config", ".git./config", "git~1/config", ".git::$INDEX_ALLOCATION/config", "sub/.git/config"]


@pytest.mark.parametrize("path", GITS)
async def test_no_tool_reads_or_changes_what_is_gits(central: RunningCentral, tmp_path: Path, path: str) -> None:
    root = repository(tmp_path)
    before = state_of(root)
    async with central.raw("modern", x_serena_session="a") as agent:
        assert "is active" in await told(agent, "activate_project", project=str(root))
        for relative_path in (path, str(root / path)):
            at = {"relative_path": relative_path}
            literal = {"needle": "core", "repl": "core]\n\tfsmonitor = evil\n[x", "mode": "literal"}
            answers = [
                await told(agent, "create_text_file", **at, content="[core]\n\tfsmonitor = evil\n"),
                await told(agent, "replace_content", **at, **literal),
                await told(agent, "replace_in_files", **at, **literal),
                await told(agent, "insert_at_line", **at, line=0, content="x\n"),
                await told(agent, "read_file", **at),
                await told(agent, "list_dir", **at),
                await told(agent, "search_for_pattern", **at, substring_pattern="core"),
                await told(agent, "get_symbols_overview", **at),
            ]
            for answer in answers:
                assert "belongs to git" in answer, answer
        everything = await told(agent, "search_for_pattern", substring_pattern="core", skip_ignored_files=False)
        listed = await told(agent, "list_dir", relative_path=".", recursive=True)
        assert ".git/" not in (everything + listed).casefold()
    assert state_of(root) == before


async def test_memories_and_undo_do_not_reach_gits_files(central: RunningCentral, tmp_path: Path) -> None:
    root = repository(tmp_path)
    (root / ".serena").mkdir()
    (root / ".serena/memories").symlink_to("../.git/hooks")
    before = state_of(root)
    async with central.raw("modern", x_serena_session="a") as agent:
        await told(agent, "activate_project", project=str(root))
        assert "is a symlink" in await told(agent, "write_memory", memory_name="pre-commit", content="evil")
        assert "is a symlink" in await told(agent, "rename_memory", old_name="a", new_name="b")
        assert "is not a valid memory name" in await told(agent, "write_memory", memory_name=".git/x", content="evil")
        made = await told(agent, "create_text_file", relative_path="moved/x.py", content="x = 1\n")
        edit = json.loads(made)["edit"]
        # The folder becomes git's own behind our back: taking the edit back must not follow.
        (root / "moved/x.py").unlink()
        (root / "moved").rmdir()
        (root / "moved").symlink_to(".git")
        (root / ".git/x.py").write_text("x = 1\n")
    async with central.http() as person:
        assert (await person.post(f"/api/v1/edits/{edit}/undo")).status_code in (400, 404, 409)
    assert (root / ".git/x.py").read_text() == "x = 1\n"
    (root / ".git/x.py").unlink()
    assert state_of(root) == before


async def test_a_persons_command_line_opens_what_an_agent_may_not(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "x.py").write_text("x = 1\n")
    none = {"SERENA_CENTRAL_ALLOWED_ROOTS": ""}
    async with serving_child(tmp_path, **none) as child, child.http() as agent:
        body = {"arguments": {"relative_path": ".", "project": str(plain)}}
        refused = await agent.post("/api/v1/tools/list_dir", json=body)
        assert refused.status_code == 403
        asked = ("call", "list_dir", "--relative-path", ".", "--project", str(plain))
        assert all(part in refused.text for part in asked[:4])
        assert (await run_command(tmp_path, *asked)).code == 0
        assert (await agent.post("/api/v1/tools/list_dir", json=body)).status_code == 200
    async with serving_child(tmp_path, "--project", str(plain), **none) as child, child.http() as agent:
        assert (await agent.post("/api/v1/tools/list_dir", json=body)).status_code == 200
