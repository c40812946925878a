"""Tasks carried out by the real coding agents on a scripted model: what reaches the model, and what the result has."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.agents import AGENT_S, CLAUDE_CODE, CODEX, GEMINI, INSTALLED, NODE, NOWHERE, Agent
from tests.support.central import running_central
from tests.support.models import Call, Text, scripted_model
from tests.support.tasks import over, start

pytestmark = pytest.mark.anyio

PASSWORD = "Xylophone"

RUNNERS = [CLAUDE_CODE, CODEX, GEMINI]

PROGRAMS = {
    "codex": INSTALLED / "@openai" / "codex" / "bin" / "codex.js",
    "gemini": INSTALLED / "@google" / "gemini-cli" / "bundle" / "gemini.js",
}
"""Scripts of Node, which is on the PATH of tasks."""

RESOURCES = {"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}

STARTED = "started-beside"
"""What the user's other MCP server writes, which no task may start."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".claude" / "agents").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "shop.py").write_text("class Cart:\n    pass\n")
    (root / "CLAUDE.md").write_text(f"The password of the cellar is {PASSWORD}.\n")
    finder = "---\nname: finder\ndescription: Finds\ntools: list_dir\n---\nYou are the finder.\n"
    (root / ".claude" / "agents" / "finder.md").write_text(finder)
    return root


def prepared(agent: Agent, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The environment of the agent's user; settings by which tasks run it."""
    home = folder / "user"
    home.mkdir()
    agent.settings(home)
    program = Path(agent.command(url)[0])
    if agent is not CLAUDE_CODE:
        program = folder / agent.name
        program.write_text(f'#!/bin/sh\nexec {NODE}/node {PROGRAMS[agent.name]} "$@"\n')
        program.chmod(0o755)
        configure(agent, home, url)
    for name, value in {
        "HOME": str(home),
        "PATH": f"{NODE}:/usr/bin:/bin",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        "A_SECRET": "hunter22",
        **agent.variables(home, url),
    }.items():
        monkeypatch.setenv(name, value)
    return {"agents.runner": agent.name, "agents.runner_paths": {agent.name: str(program)}}


def configure(agent: Agent, home: Path, url: str) -> None:
    """Files of a user who has MCP servers already, one by the name of ours."""
    beside = {"command": "touch", "args": [str(home / STARTED)]}
    if agent is GEMINI:
        file = home / ".gemini" / "settings.json"
        servers = {"serena": {"command": "false"}, "beside": beside}
        more = {"mcpServers": servers, "model": {"name": "gemini-2.5-pro"}}
        settings = json.dumps({**json.loads(file.read_text()), **more}, indent=2)
        file.write_text(f"// mine\n{settings}")
        (home / ".gemini" / "GEMINI.md").write_text("I like cats.\n")
        return
    flags = iter(map(str, agent.command(url)))
    given = [next(flags) for flag in flags if flag == "-c"]
    servers = f"""
[mcp_servers.serena]
command = "false"
[mcp_servers."be.side"]
command = "touch"
args = [{str(home / STARTED)!r}]
"""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("\n".join(given) + servers)


def own(agent: Agent, tool: str) -> str:
    """How the agent names our tool to its model in a task. The user's own Codex has a server `serena` already."""
    return agent.tools.format(tool).replace("serena__", "serena_task__" if agent is CODEX else "serena__")


@pytest.mark.parametrize("agent", RUNNERS, ids=lambda agent: agent.name)
async def test_a_task_calls_our_tools_as_its_agent_and_inherits_memory_alone(
    agent: Agent, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = Call(own(agent, "list_dir"), {"relative_path": ".", "recursive": False})
    script = [listing, Text("The cart is in shop.py.")]
    async with scripted_model(script) as model:
        settings = prepared(agent, tmp_path, model.url, monkeypatch)
        async with running_central(tmp_path, settings) as running, running.http(x_serena_session="parent") as http:
            announced = {"url": f"{running.url}/mcp", "pid": 1}
            (tmp_path / "home" / "server.json").write_text(json.dumps(announced))
            said = {"arguments": {"project": str(project), "relative_path": "."}, "session": "parent"}
            await http.post("/api/v1/tools/list_dir", json=said)
            asked = {"agent": "finder", "called_by": "parent", "max_usd": 5.0}
            found = await over(http, (await start(http, "Where is the cart?", project, **asked))["id"], AGENT_S)
            assert (found["state"], found["text"]) == ("done", "The cart is in shop.py."), found
            assert found["usage"]["output"] > 0
            assert found["resume_id"]
            calls = (await http.get("/api/v1/calls", params={"session": found["session"]})).json()["calls"]
            assert "list_dir" in {call["tool"] for call in calls}
            lines = (await http.get(f"/api/v1/tasks/{found['id']}/output")).json()["lines"]
            assert {"tool", "text"} <= {line["kind"] for line in lines}
    last = model.requests[-1]
    sent = json.dumps(last.body)
    assert PASSWORD in sent
    assert "You are the finder." in sent
    assert "shop.py" in last.results[-1].text
    assert "hunter22" not in sent
    # Those of Codex read our resources, which is a call of ours like any other.
    assert set(last.tools) - RESOURCES == {own(agent, "list_dir")}
    assert not (tmp_path / "user" / STARTED).exists()


@pytest.mark.parametrize("agent", RUNNERS, ids=lambda agent: agent.name)
async def test_a_task_runs_nothing_that_a_repository_brings_which_is_not_trusted(
    agent: Agent, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {ran}"}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    for folder in (".codex", ".gemini"):
        (project / folder).mkdir()
    beside = {"command": "touch", "args": [str(ran)]}
    (project / ".gemini" / "settings.json").write_text(json.dumps({"hooks": hooks, "mcpServers": {"x": beside}}))
    (project / ".codex" / "config.toml").write_text(f"[mcp_servers.x]\ncommand = 'touch'\nargs = ['{ran}']\n")
    async with scripted_model([Text("Done.")]) as model:
        settings = {**prepared(agent, tmp_path, model.url, monkeypatch), "trusted_roots": []}
        async with running_central(tmp_path, settings) as running, running.http() as http:
            announced = {"url": f"{running.url}/mcp", "pid": 1}
            (tmp_path / "home" / "server.json").write_text(json.dumps(announced))
            found = await over(http, (await start(http, "Where is the cart?", project))["id"], AGENT_S)
    assert not ran.exists()
    if agent is GEMINI:
        assert (found["state"], model.requests) == ("failed", [])
        assert f"serena-central trust {project}" in found["error"]
    else:
        assert (found["state"], found["text"]) == ("done", "Done."), found
        assert PASSWORD in json.dumps(model.requests[-1].body)


@pytest.mark.parametrize("agent", RUNNERS, ids=lambda agent: agent.name)
async def test_a_runner_that_is_not_installed_is_an_error_with_how_to_get_it(
    agent: Agent, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = prepared(agent, tmp_path, NOWHERE, monkeypatch)
    settings["agents.runner_paths"] = {agent.name: str(tmp_path / "nowhere")}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        refused = await http.post("/api/v1/tasks", json={"instruction": "x", "project": str(project)})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "no_runner")
        assert "install" in refused.json()["error"]["message"]
