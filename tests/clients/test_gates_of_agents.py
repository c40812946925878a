"""Real coding agents meet the hooks of a project's settings: a block, a second try after the fix, a halted session."""

import json
import re
import subprocess
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.agents import CLAUDE_CODE, CODEX, GEMINI, Agent, run_agent
from tests.clients.test_agents import connect, done, held, project_in, run
from tests.support.child import Child, run_command, serving_child
from tests.support.models import Call, Request, Text, scripted_model

pytestmark = pytest.mark.anyio

HOOKED = pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX, GEMINI], ids=lambda agent: agent.name)
"""opencode has no hooks that a configuration file could hold."""

TEST = "python3 -m unittest -q test_cart"
COMMIT = "git commit -qm first"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = project_in(tmp_path, "shop", "cart.py")
    (project / ".git").rmdir()
    (project / ".gitignore").write_text(".*\n__pycache__\n")
    for words in ("init -q", "config user.email a@example.org", "config user.name A", "add ."):
        subprocess.run(["git", *words.split()], cwd=project, check=True)
    return project


@pytest.fixture
async def child(tmp_path: Path, project: Path) -> AsyncGenerator[Child]:
    """A server on which the project's hooks are trusted."""
    async with serving_child(tmp_path, SERENA_CENTRAL_TRUSTED_ROOTS=str(project)) as child:
        yield child


def hooks(project: Path, **events: list[dict[str, Any]]) -> None:
    (project / ".claude").mkdir(exist_ok=True)
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": events}))


def command(matcher: str, line: str) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": line}]}


def commits(project: Path) -> str:
    return subprocess.run(["git", "log", "--all", "--format=%s"], cwd=project, capture_output=True, text=True).stdout


@HOOKED
async def test_a_commit_is_blocked_and_made_after_the_tests_have_passed(
    agent: Agent, child: Child, project: Path, tmp_path: Path
) -> None:
    gate = f"{TEST} 2>/dev/null || {{ echo fix the tests first >&2; exit 2; }}"
    hooks(project, PreToolUse=[command("Bash(git commit:*)", gate)])
    (project / "test_cart.py").write_text("import unittest\n\nraise NotImplementedError\n")

    def fixed(request: Request) -> Call:
        assert "fix the tests first" in request.results[-1].text, request.results
        assert commits(project) == ""
        return agent.shell("printf 'import unittest\\n' > test_cart.py")

    await connect(agent, tmp_path)
    done(await run_command(tmp_path, "hook", "install", agent.name, "--gates"))
    last = await run(agent, project, [agent.shell(COMMIT), fixed, agent.shell(COMMIT), Text("Done.")])
    assert commits(project) == "first\n", last.results


@HOOKED
async def test_an_edit_is_blocked_made_when_it_is_right_and_a_halted_session_resumed(
    agent: Agent, child: Child, project: Path, tmp_path: Path
) -> None:
    """Calls of our tools: their hooks run with the call, and need nothing installed in the client."""
    scan = (
        "case $(cat) in *AKIA*) echo this is a key >&2; exit 2 ;; *enough*) echo the disk is full >&2; exit 1 ;; esac"
    )
    hooks(project, PreToolUse=[command("Write", scan)])
    if agent is CLAUDE_CODE:
        wanted = "select:mcp__serena__insert_after_symbol,mcp__serena__find_symbol"
        agent = replace(agent, preparing=(Call("ToolSearch", {"query": wanted, "max_results": 5}),))

    def write(text: str) -> Call:
        body = f'KEY = "{text}"'
        return agent.call("insert_after_symbol", name_path="Cart", relative_path="cart.py", body=body)

    def fixed(request: Request) -> Call:
        assert "this is a key" in request.results[-1].text, request.results
        assert "KEY" not in (project / "cart.py").read_text()
        return write("none")

    async def resumed(request: Request) -> Call:
        """Both the call whose hook ended with 1 and the next one were answered with the reason and the way out."""
        for result in request.results[-2:]:
            assert "the disk is full" in result.text, request.results
            assert result.failed is not False
        found = re.search(r"serena-central resume ([\w-]+)", request.results[-1].text)
        assert found
        done(await run_command(tmp_path, "resume", found[1]))
        return agent.find("Cart")

    await connect(agent, tmp_path)
    steps = [write("AKIA"), fixed, write("enough"), agent.find("Cart"), resumed, Text("Done.")]
    last = await run(agent, project, [*agent.preparing, *steps])
    assert 'KEY = "none"' in (project / "cart.py").read_text()
    held(last, "cart.py")


@HOOKED
async def test_a_hook_of_a_native_tool_halts_the_session_with_all_its_calls(
    agent: Agent, child: Child, project: Path, tmp_path: Path
) -> None:
    """Claude Code and Gemini end the turn. Codex has no answer for that before a tool: all its calls are denied."""
    (project / "Makefile").write_text("all:\n\ttouch made\n")
    hooks(project, PreToolUse=[command("Bash(make:*)", "echo the disk is full >&2; exit 1")])
    await connect(agent, tmp_path)
    done(await run_command(tmp_path, "hook", "install", agent.name, "--gates"))
    script = [agent.shell("make"), agent.shell("touch made"), agent.find("Cart"), Text("Done.")]
    async with scripted_model(script) as model:
        ended = await run_agent(agent, project.parent, project, model.url)
    assert not (project / "made").exists(), ended
    results = model.requests[-1].results
    assert len(results) == (3 if agent is CODEX else 0), results
    assert all("the disk is full" in result.text for result in results), results
    async with child.http() as http:
        (halted,) = (await http.get("/api/v1/halted")).json()["halted"]
        done(await run_command(tmp_path, "resume", halted["session"]))
        assert (await http.get("/api/v1/halted")).json() == {"halted": []}
