"""Hooks of the settings around tasks and their calls, with Claude Code's fields."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import running_central
from tests.support.tasks import over, scripted, start

pytestmark = pytest.mark.anyio

READ = {"call": "read_file", "arguments": {"relative_path": "shop.py"}}
NOTE_INPUT = "cat >> events; echo >> events"
BLOCK_ONCE = f"{NOTE_INPUT}; echo 'name the file, too' >&2; exit 2"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / ".claude" / "agents").mkdir(parents=True)
    (root / ".claude" / "agents" / "reader.md").write_text("---\nname: reader\ndescription: x\n---\nBe brief.\n")
    (root / "shop.py").write_text("def total():\n    return 1\n")
    return root


def hooks(project: Path, **by_event: tuple[str, str]) -> None:
    """Event → matcher and command."""
    found = {
        event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
        for event, (matcher, command) in by_event.items()
    }
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": found}))


def events(project: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project / "events").read_text().splitlines() if line.strip()]


async def test_subagent_hooks_and_those_of_calls_run_in_order_with_the_fields_of_claude_code(
    tmp_path: Path, project: Path
) -> None:
    names = ("SubagentStart", "PreToolUse", "PostToolUse", "SubagentStop")
    matchers = {"SubagentStart": "reader", "SubagentStop": "reader"}
    hooks(project, **{name: (matchers.get(name, "Read"), NOTE_INPUT) for name in names})
    settings = scripted(tmp_path, {"": [READ, {"text": "It is total."}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        task = await over(http, (await start(http, "look", project, agent="reader"))["id"])
        assert task["state"] == "done"
        found = events(project)
        assert [one["hook_event_name"] for one in found] == list(names)
        assert {one["session_id"] for one in found} == {task["session"]}
        begun, *_, ended = found
        assert (begun["agent_id"], begun["agent_type"], begun["cwd"]) == (task["id"], "reader", str(project))
        assert (ended["stop_hook_active"], ended["last_assistant_message"]) == (False, "It is total.")
        await over(http, (await start(http, "look", project))["id"])  # general-purpose: another matcher's
        assert len(events(project)) == len(found) + 2


async def test_a_hook_for_subagent_stop_blocks_the_end_once_and_the_task_is_given_the_reason(
    tmp_path: Path, project: Path
) -> None:
    hooks(project, SubagentStop=("", BLOCK_ONCE))
    scripts = {"name the file, too": [{"text": "total in shop.py"}], "look": [{"text": "total"}]}
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        task = await over(http, (await start(http, "look", project))["id"])
        assert (task["state"], task["text"]) == ("done", "total in shop.py")
        assert [one["stop_hook_active"] for one in events(project)] == [False, True]


async def test_where_the_runner_cannot_go_on_it_is_said(tmp_path: Path, project: Path) -> None:
    hooks(project, SubagentStop=("", BLOCK_ONCE))
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\ncat >/dev/null\necho \'{"type":"result","subtype":"success","result":"total"}\'\n')
    program.chmod(0o755)
    settings = {"agents.runner": "claude-code", "agents.runner_paths": {"claude-code": str(program)}}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        (tmp_path / "home" / "server.json").write_text(json.dumps({"url": f"{running.url}/mcp", "pid": 1}))
        task = await over(http, (await start(http, "look", project))["id"])
        assert (task["state"], task["text"]) == ("done", "total")
        lines = (await http.get(f"/api/v1/tasks/{task['id']}/output")).json()["lines"]
        notes = [line["text"] for line in lines if line["kind"] == "note"]
        assert any("name the file, too" in note for note in notes)
        assert any("claude-code can't be given more to do" in note for note in notes)
        assert len(events(project)) == 1


async def test_what_a_hook_for_subagent_start_adds_reaches_the_task(tmp_path: Path, project: Path) -> None:
    line = """echo '{"hookSpecificOutput": {"additionalContext": "mind the cart"}}'"""
    hooks(project, SubagentStart=("general-purpose", line))
    settings = scripted(tmp_path, {"": [{"text": "${instruction}"}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        task = await over(http, (await start(http, "look", project))["id"])
        assert "mind the cart" in task["text"]
        assert task["instruction"] == "look"
