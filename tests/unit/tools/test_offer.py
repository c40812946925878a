"""What a session is offered: settings and modes forbid, contexts keep lists short, optional tools wait."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import InvalidArguments, MemoryChanged, ToolRefused
from serena_central.sessions.session import Session
from tests.support.central import running_central, running_parts, session_of
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def central_in(folder: Path, **settings: Any) -> AsyncGenerator[Application]:
    with anyio.fail_after(60):
        async with running_parts(folder, settings) as central:
            yield central


def names(central: Application, session: Session) -> set[str]:
    return {tool.name for tool in central.caller.tools_for(session)}


async def switch(central: Application, session: Session, *modes: str) -> str:
    answer = await central.caller.call(session, "switch_modes", {"modes": list(modes)})
    return answer.blocks[0]


async def test_a_mode_hides_tools_and_refuses_them(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        session = session_of(central)
        assert "write_memory" in names(central, session)
        told = await switch(central, session, "interactive", "no-memories")
        assert told.startswith("Modes: interactive, no-memories.\n")
        assert "There are no memories in this conversation." in told
        assert not {"write_memory", "onboarding"} & names(central, session)
        with pytest.raises(ToolRefused, match="not available in the mode 'no-memories'"):
            await central.caller.call(session, "write_memory", {"memory_name": "a", "content": "b"})
        await switch(central, session)
        assert "write_memory" in names(central, session)


async def test_modes_survive_a_restart(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        await switch(central, session_of(central), "planning")
    async with central_in(tmp_path) as central:
        config = await central.caller.call(session_of(central), "get_current_config", {})
        assert json.loads(config.blocks[0])["modes"] == ["planning"]


async def test_unknown_modes_and_shared_sessions_are_refused(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        with pytest.raises(InvalidArguments, match=r"no mode 'fast'\. Modes: editing, "):
            await switch(central, session_of(central), "fast")
        with pytest.raises(ToolRefused, match="Several clients may share this session"):
            await switch(central, session_of(central, explicit_id=None), "planning")


async def test_the_clients_name_picks_the_context(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        claude = session_of(central, explicit_id="a", client_name="claude-code")
        other = session_of(central, explicit_id="b", client_name="somebody")
        asked = session_of(central, explicit_id="c", client_name="somebody", context="claude-code")
        assert "read_file" in names(central, other)
        assert "read_file" not in names(central, claude) | names(central, asked)
        project = tmp_path / "project"
        project.mkdir()
        (project / "a.txt").write_text("text")
        answer = await central.caller.call(claude, "read_file", {"relative_path": "a.txt", "project": str(project)})
        assert answer.blocks[0] == "text"


async def test_an_optional_tool_that_changes_something_must_be_included(tmp_path: Path) -> None:
    async with central_in(tmp_path) as central:
        with pytest.raises(ToolRefused, match="included_optional_tools"):
            await central.caller.call(session_of(central), "remove_project", {"project": str(tmp_path)})
    async with central_in(tmp_path, included_optional_tools=["remove_project"]) as central:
        assert "remove_project" in names(central, session_of(central))


async def test_the_active_projects_settings_count(tmp_path: Path) -> None:
    (tmp_path / "project/.serena").mkdir(parents=True)
    (tmp_path / "project/.serena/project.yml").write_text(
        "excluded_tools: [find_file]\nincluded_optional_tools: [find_all_symbols]\ndefault_modes: [planning]\n"
    )
    async with central_in(tmp_path) as central:
        session = session_of(central)
        assert "find_file" in names(central, session)
        await central.caller.call(session, "activate_project", {"project": str(tmp_path / "project")})
        assert "find_file" not in names(central, session)
        assert "find_all_symbols" in names(central, session)
        config = await central.caller.call(session, "get_current_config", {})
        assert json.loads(config.blocks[0])["modes"] == ["planning"]


async def test_instructions_are_short_and_name_what_matters(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with central_in(tmp_path) as central:
        session = session_of(central, client_name="claude-code")
        await central.caller.call(session, "activate_project", {"project": str(tmp_path / "project")})
        before = await central.caller.call(session, "check_onboarding_performed", {})
        await central.caller.call(session, "write_memory", {"memory_name": "commands", "content": "make"})
        after = await central.caller.call(session, "check_onboarding_performed", {})
        text = (await central.caller.call(session, "initial_instructions", {})).blocks[0]
        assert "Call onboarding" in before.blocks[0]
        assert "Memories: 'commands'" in after.blocks[0]
        assert "Memories: 'commands'" in text
        assert "Active project: 'project'" in text
        assert "Use your own tools for shell commands" in text
        assert len(text) <= 2500


async def test_two_sessions_do_not_overwrite_each_others_memory(tmp_path: Path) -> None:
    project = {"project": str(tmp_path)}
    async with central_in(tmp_path / "central") as central:
        first, second = (session_of(central, explicit_id=name) for name in "ab")
        write = {"memory_name": "plan", **project}
        await central.caller.call(first, "write_memory", {**write, "content": "first"})
        with pytest.raises(MemoryChanged, match=r"current content is .*\n<<< \w+\nfirst\n>>> "):
            await central.caller.call(second, "write_memory", {**write, "content": "second"})
        await central.caller.call(second, "write_memory", {**write, "content": "first and second"})
        with pytest.raises(MemoryChanged, match="first and second"):
            await central.caller.call(first, "edit_memory", {**write, "needle": "f", "repl": "g", "mode": "literal"})
        (told,) = (await central.caller.call(first, "read_memory", write)).blocks
        assert "\nfirst and second\n>>> " in told


async def test_old_prompts_ask_other_projects(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.txt").write_text("text")
    async with central_in(tmp_path) as central:
        session = session_of(central)
        asked = {"project_name": str(tmp_path / "other"), "tool_name": "find_file"}
        answer = await central.caller.call(
            session, "query_project", {**asked, "tool_params_json": '{"file_mask": "*.txt"}'}
        )
        assert json.loads(answer.blocks[0]) == {"files": ["a.txt"]}
        assert (await central.caller.call(session, "list_queryable_projects", {})).blocks == ['["other"]']
        with pytest.raises(InvalidArguments, match="not a JSON object"):
            await central.caller.call(session, "query_project", {**asked, "tool_params_json": "[1"})
        with pytest.raises(ToolRefused, match="tools that read a project"):
            await central.caller.call(session, "query_project", {**asked, "tool_name": "write_memory"})


async def test_plain_schemas_hold_numbers_and_no_alternatives(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with running_central(tmp_path) as running, running.raw("handshake", x_serena_context="codex") as client:
        listed = (await client.ask("tools/list"))["result"]["tools"]
        text = json.dumps(listed)
        assert '"integer"' not in text
        assert "anyOf" not in text
        schema = next(tool for tool in listed if tool["name"] == "find_symbol")["inputSchema"]
        assert schema["properties"]["depth"]["type"] == "number"
        asked = {"name_path_pattern": "x", "depth": 1.0, "project": str(tmp_path / "project")}
        assert text_of(await client.call("find_symbol", **asked)) == "[]"


async def test_names_of_modes_and_contexts_that_are_not_there_are_reported_once_in_a_session(tmp_path: Path) -> None:
    settings = {"default_modes": ["planing"]}
    async with running_central(tmp_path, settings) as running:
        asked = {"x_serena_context": "idea", "x_serena_modes": "planning,no-memory"}
        async with running.raw("handshake", **asked) as client:
            first = json.dumps(await client.call("get_current_config"))
            assert "There is no mode 'no-memory', so it has no effect. Modes: editing, interactive, no-mem" in first
            assert "There is no context 'idea', so 'agent' counts. Contexts: agent, chatgpt, claude-code" in first
            assert "There is no" not in json.dumps(await client.call("get_current_config"))
        async with running.raw("handshake") as client:
            assert "There is no mode 'planing'" in json.dumps(await client.call("get_current_config"))


async def test_names_of_tools_that_are_not_there_are_reported_once_in_a_session(tmp_path: Path) -> None:
    settings = {
        "excluded_tools": ["rename_symbl", "read_file", "github__*"],
        "included_optional_tools": ["qqq"],
        "tool_timeouts_s": {"find_symbols": 3},
    }
    async with running_central(tmp_path, settings) as running, running.raw("handshake") as client:
        first = json.dumps(await client.call("get_current_config"))
        assert "There is no tool 'rename_symbl', which excluded_tools names. Is rename_symbol meant?" in first
        assert "There is no tool 'qqq', which included_optional_tools names. `serena-central call --help`" in first
        assert "There is no tool 'find_symbols', which tool_timeouts_s names. Is find_symbol meant?" in first
        assert "'read_file', which" not in first
        assert "github" not in first
        assert "There is no" not in json.dumps(await client.call("get_current_config"))


async def test_a_client_is_told_when_its_tools_change(tmp_path: Path) -> None:
    async with running_central(tmp_path) as running, running.raw("handshake") as client:
        headers = {**client.headers("", {}), "accept": "text/event-stream"}
        async with client.http.stream("GET", "/mcp", headers=headers) as stream:
            await client.call("switch_modes", modes=["planning"])
            with anyio.fail_after(60):
                told = [line async for line in _until(stream.aiter_lines(), "notifications/tools/list_changed")]
        assert told


async def _until(lines: AsyncIterator[str], wanted: str) -> AsyncGenerator[str]:
    async for line in lines:
        if wanted in line:
            yield line
            return
