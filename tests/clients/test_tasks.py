"""Tasks carried out by the real coding agents on a scripted model: what reaches the model, and what the result has."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.agents import CLAUDE_CODE, NODE, NOWHERE, Agent
from tests.support.central import running_central
from tests.support.models import Text, scripted_model
from tests.support.tasks import over, start

pytestmark = pytest.mark.anyio

PASSWORD = "Xylophone"

RUNNERS = [CLAUDE_CODE]


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
    return {"agents.runner": agent.name, "agents.runner_paths": {agent.name: str(agent.command(url)[0])}}


@pytest.mark.parametrize("agent", RUNNERS, ids=lambda agent: agent.name)
async def test_a_task_calls_our_tools_as_its_agent_and_inherits_memory_alone(
    agent: Agent, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [agent.call("list_dir", relative_path=".", recursive=False), Text("The cart is in shop.py.")]
    async with scripted_model(script) as model:
        settings = prepared(agent, tmp_path, model.url, monkeypatch)
        async with running_central(tmp_path, settings) as running, running.http(x_serena_session="parent") as http:
            announced = {"url": f"{running.url}/mcp", "pid": 1}
            (tmp_path / "home" / "server.json").write_text(json.dumps(announced))
            said = {"arguments": {"project": str(project), "relative_path": "."}, "session": "parent"}
            await http.post("/api/v1/tools/list_dir", json=said)
            asked = {"agent": "finder", "called_by": "parent", "max_usd": 5.0}
            found = await over(http, (await start(http, "Where is the cart?", project, **asked))["id"])
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
    assert {name for name in last.tools if "list_dir" in name} == set(last.tools)


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
