"""Tasks on the messages API: a scripted model behind the official SDK, real tools, real hooks."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.central import running_central
from tests.support.models import Call, Refusal, Request, Script, ScriptedModel, Text, scripted_model
from tests.support.models.script import Turn
from tests.support.tasks import over, scripted, start, until

pytestmark = pytest.mark.anyio

LISTING = Call("list_dir", {"relative_path": ".", "recursive": False})

KEY = "sk-Xylophone"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".claude" / "agents").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "shop.py").write_text("class Cart:\n    pass\n")
    (root / "CLAUDE.md").write_text("The password of the cellar is Marimba.\n")
    finder = "---\nname: finder\ndescription: Finds\ntools: list_dir\nmodel: haiku\n---\nYou are the finder.\n"
    (root / ".claude" / "agents" / "finder.md").write_text(finder)
    return root


@asynccontextmanager
async def tasks(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    *,
    input_tokens: Callable[[Request], int] = lambda _request: 1,
    **policy: Any,
) -> AsyncGenerator[tuple[ScriptedModel, httpx.AsyncClient]]:
    """A server whose tasks run on this model."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with scripted_model(script, input_tokens=input_tokens) as model:
        chosen = {"runner": "messages", "messages_base_url": model.url, **policy}
        settings = {f"agents.{name}": value for name, value in chosen.items()}
        async with running_central(folder, settings) as running:
            # The address is announced by the command line that starts a server.
            announced = {"url": f"{running.url}/mcp", "pid": 1}
            (folder / "home" / "server.json").write_text(json.dumps(announced))
            async with running.http() as http:
                yield model, http


async def lines_of(http: httpx.AsyncClient, task: str) -> list[tuple[str, str]]:
    found = (await http.get(f"/api/v1/tasks/{task}/output")).json()["lines"]
    return [(line["kind"], line["text"]) for line in found]


async def test_a_task_calls_the_tools_of_its_agent_and_sees_memory_and_nothing_else(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-AGENT-001, REQ-AGENT-007: by what the model received."""
    script = [LISTING, Call("find_symbol", {"name_path_pattern": "Cart"}), Text("It is in shop.py.")]
    async with tasks(tmp_path, monkeypatch, script) as (model, http):
        said = {"arguments": {"project": str(project), "relative_path": "."}, "session": "parent"}
        await http.post("/api/v1/tools/list_dir", json=said)
        asked = {"agent": "finder", "called_by": "parent"}
        found = await over(http, (await start(http, "Where is the cart?", project, **asked))["id"])
        assert (found["state"], found["text"]) == ("done", "It is in shop.py."), found
        assert (found["usage"]["input"], found["usage"]["output"]) == (3, 3)
        assert found["cost_source"] == "estimated"
        assert found["cost_usd"] > 0
        assert found["verified"]["calls"]["list_dir"] == 1
        assert ("text", "It is in shop.py.") in await lines_of(http, found["id"])
    last = model.requests[-1]
    assert last.model == "claude-haiku-5-5"
    assert list(last.tools) == ["list_dir"]
    listed, refused = last.results
    assert "shop.py" in listed.text
    assert (refused.failed, "not among the tools of the agent 'finder'" in refused.text) == (True, True)
    assert last.prompts == ["Where is the cart?"]
    assert "You are the finder." in last.system
    assert "Marimba" in last.system
    assert any(KEY in value for value in last.headers.values())
    assert KEY not in json.dumps(last.body)


async def test_a_refused_request_is_sent_again_and_one_that_is_wrong_ends_the_task(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-AGENT-004: HTTP 429 is waited for."""
    refusals = [Refusal(429, "slow down")]

    def answer(request: Request) -> Turn:
        if "wrong" in request.prompts[0]:
            return Refusal(400, f"no such model, {KEY}")
        return refusals.pop() if refusals else Text("done")

    async with tasks(tmp_path, monkeypatch, answer) as (_, http):
        found = await over(http, (await start(http, "x", project))["id"])
        assert (found["state"], found["text"]) == ("done", "done")
        assert any("HTTP 429; asked again after" in text for _, text in await lines_of(http, found["id"]))
        failed = await over(http, (await start(http, "wrong", project))["id"])
        assert failed["state"] == "failed"
        assert "400" in failed["error"]
        assert KEY not in json.dumps(failed)


def compacting(request: Request) -> Turn:
    """Lists, summarises when it is asked to, and ends when it has a summary."""
    if "about to be compacted" in request.prompts[-1]:
        assert request.body["tool_choice"] == {"type": "none"}
        return Text("The cart is in shop.py.")
    if "What you have done so far" in request.prompts[0]:
        assert "The cart is in shop.py." in request.prompts[0]
        assert len(request.body["messages"]) == 1
        return Text("Done after a summary.")
    return Text("Done without a summary.") if request.turns > 1 else LISTING


def hook(project: Path, line: str) -> None:
    hooks = {"PreCompact": [{"hooks": [{"type": "command", "command": line}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


@pytest.mark.parametrize(("code", "text"), [(0, "Done after a summary."), (2, "Done without a summary.")])
async def test_a_conversation_is_compacted_at_its_threshold_unless_a_hook_stops_it(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, code: int, text: str
) -> None:
    """REQ-AGENT-007"""
    hook(project, f"cat > seen.json; echo keep it all >&2; exit {code}")
    policy = {"compact_at_tokens": 1000}
    async with tasks(tmp_path, monkeypatch, compacting, input_tokens=lambda _: 2000, **policy) as (_, http):
        found = await over(http, (await start(http, "Where is the cart?", project))["id"])
        assert (found["state"], found["text"]) == ("done", text), found
        assert json.loads((project / "seen.json").read_text())["trigger"] == "auto"
        notes = [text for kind, text in await lines_of(http, found["id"]) if kind == "note"]
        assert any(("keep it all" if code else "Compacted") in note for note in notes), notes


async def test_a_conversation_is_compacted_on_request(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-AGENT-007: `/compact`."""
    clients: list[httpx.AsyncClient] = []
    hook(project, "cat > seen.json")

    async def answer(request: Request) -> Turn:
        if request.turns == 0 and "What you have done so far" not in request.prompts[0]:
            (task,) = (await clients[0].get("/api/v1/tasks", params={"state": "running"})).json()["tasks"]
            assert (await clients[0].post(f"/api/v1/tasks/{task['id']}/compact")).status_code == 200
        return compacting(request)

    async with tasks(tmp_path, monkeypatch, answer) as (_, http):
        clients.append(http)
        found = await over(http, (await start(http, "Where is the cart?", project))["id"])
        assert found["text"] == "Done after a summary.", found
        assert json.loads((project / "seen.json").read_text())["trigger"] == "manual"
        refused = await http.post(f"/api/v1/tasks/{found['id']}/compact")
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "task_refused")


async def test_other_runners_are_not_asked_to_compact(tmp_path: Path, project: Path) -> None:
    settings = scripted(tmp_path, {"": [{"run": ["sleep", "60"]}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        held = await until(http, (await start(http, "hold", project))["id"], "running")
        refused = await http.post(f"/api/v1/tasks/{held['id']}/compact")
        assert "scripted compacts conversations by itself" in refused.json()["error"]["message"]


async def test_budgets_end_a_task_between_its_turns(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tasks(tmp_path, monkeypatch, lambda _: LISTING, input_tokens=lambda _: 600) as (model, http):
        found = await over(http, (await start(http, "x", project, max_tokens=1000))["id"])
        assert (found["state"], len(model.requests)) == ("over budget", 2)


async def test_without_a_key_in_the_environment_it_is_no_runner(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    async with running_central(tmp_path, {"agents.runner": "messages"}) as running, running.http() as http:
        refused = await http.post("/api/v1/tasks", json={"instruction": "x", "project": str(project)})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "no_runner")
        assert "ANTHROPIC_API_KEY" in refused.json()["error"]["message"]
