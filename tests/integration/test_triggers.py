"""REQ-AGENT-003: agents whose descriptions ask to be used after a tool, for clients and in tasks."""

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.central import RunningCentral, running_central, session_of
from tests.support.child import PATIENCE_S
from tests.support.tasks import over, scripted, start, until

pytestmark = pytest.mark.anyio

READ = {"call": "read_file", "arguments": {"relative_path": "shop.py"}}


def write(name: str) -> dict[str, Any]:
    return {"call": "create_text_file", "arguments": {"relative_path": name, "content": "x = 1\n"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / "shop.py").write_text("def total():\n    return 1\n")
    return root


def agent(project: Path, name: str, description: str) -> Path:
    file = project / ".claude" / "agents" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\nBe brief.\n")
    return file


async def called(running: RunningCentral, step: dict[str, Any], project: Path, **facts: Any) -> list[str]:
    """The notes of a call of a client that is not ours."""
    session = session_of(running.central, **{"working_folder": str(project)} | facts)
    answer = await running.central.caller.call(session, step["call"], step["arguments"])
    return [note for note in answer.notes if "The agent" in note]


async def tasks_of(http: httpx.AsyncClient, agent: str) -> list[dict[str, Any]]:
    return [one for one in (await http.get("/api/v1/tasks")).json()["tasks"] if one["agent"] == agent]


async def test_req_agent_003_a_task_that_edits_has_the_agent_run_and_one_that_reads_has_not(
    tmp_path: Path, project: Path
) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    scripts = {
        "^You are started automatically": [READ, {"text": "Seen: ${instruction}"}],
        "^edit": [write("new.py"), {"text": "${last}"}],
        "^read": [READ, {"text": "${last}"}],
    }
    async with running_central(tmp_path, scripted(tmp_path, scripts, concurrent=1)) as running, running.http() as http:
        read = await over(http, (await start(http, "read", project))["id"])
        assert (read["state"], await tasks_of(http, "reviewer")) == ("done", [])
        edited = await over(http, (await start(http, "edit", project))["id"])
        (review,) = await tasks_of(http, "reviewer")
        assert (review["state"], review["parent"], review["depth"]) == ("done", edited["id"], 2)
        assert "'new.py'" in review["instruction"]
        lines = (await http.get(f"/api/v1/tasks/{edited['id']}/output")).json()["lines"]
        assert lines[0]["kind"] == "tool"


async def test_the_agents_report_comes_with_the_answer_of_the_call_framed(tmp_path: Path, project: Path) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    scripts = {"^You are started": [{"text": "line one\nline two"}], "^hold": [{"wait_s": 60}]}
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        held = await until(http, (await start(http, "hold", project))["id"], "running")
        session = running.central.sessions.get(held["session"])
        answer = await running.central.caller.call(session, "create_text_file", write("a.py")["arguments"])
        first, opened, *lines, closed = answer.notes
        assert "What the agent 'reviewer' reported after these code changes" in first
        assert (opened[:3], lines, closed[:3]) == ("<<<", ["line one", "line two"], ">>>")
        assert [one["state"] for one in await tasks_of(http, "reviewer")] == ["done"]
        await http.post(f"/api/v1/tasks/{held['id']}/cancel")


async def test_what_a_trigger_started_triggers_nothing_and_an_agent_does_not_trigger_itself(
    tmp_path: Path, project: Path
) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    agent(project, "formatter", "Automatically formats after each edit")
    nested = {"call": "task", "arguments": {"instruction": "below", "agent": ""}}
    scripts = {
        "says: MUST BE USED": [write("reviewed.py"), nested],
        "says: Automatically": [write("formatted.py"), nested],
        "^below": [{**write("below.py"), "may_fail": True}, {"text": "done"}],
        "^edit": [write("new.py")],
        "^again": [write("again.py")],
    }
    settings = {**scripted(tmp_path, scripts), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        await over(http, (await start(http, "edit", project))["id"])
        assert (project / "below.py").exists()
        found = (await http.get("/api/v1/tasks")).json()["tasks"]
        # Each agent once for the one edit; each of them started one task, whose edits and theirs triggered nothing.
        assert sorted(str(one["agent"]) for one in found) == ["None", "None", "None", "formatter", "reviewer"]
        for file in ("reviewed.py", "formatted.py"):
            (project / file).unlink()
        await over(http, (await start(http, "again", project, agent="reviewer"))["id"])
        assert len(await tasks_of(http, "reviewer")) == 2  # by name, not by its own edit
        assert len(await tasks_of(http, "formatter")) == 2


async def test_the_runs_of_one_session_are_bounded_and_what_fails_is_noted_once(tmp_path: Path, project: Path) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    edits = [write(f"new{number}.py") for number in range(6)]
    scripts = {"^You are started": [{"fail": "no\nmodel"}], "^edit": [*edits, {"text": "${last}"}]}
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        edited = await over(http, (await start(http, "edit", project))["id"])
        assert (edited["state"], len(edited["verified"]["edits"])) == ("done", 6)
        assert [one["state"] for one in await tasks_of(http, "reviewer")] == ["failed"] * 3


async def test_other_clients_get_a_suggestion_once_for_each_agent(tmp_path: Path, project: Path) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    settings = scripted(tmp_path, {"": [{"text": "x"}]})
    async with running_central(tmp_path, settings) as running:
        assert await called(running, READ, project) == []
        (note,) = await called(running, write("a.py"), project)
        assert "'reviewer' is to be used after code changes" in note
        assert "serena-central task run --agent reviewer" in note
        assert await called(running, write("b.py"), project) == []
        agent(project, "linter", "always invoke after edits")  # definitions are watched
        (note,) = await called(running, write("c.py"), project)
        assert "'linter'" in note
        assert len(await called(running, write("d.py"), project, explicit_id="other")) == 2
        assert running.central.tasks.running is None


async def test_a_suggestion_names_the_tool_where_it_can_be_called(tmp_path: Path, project: Path) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    async with running_central(tmp_path, {"task_tool": True}) as running:
        (note,) = await called(running, write("a.py"), project)
        assert "task(agent='reviewer'" in note


@pytest.mark.parametrize(("mode", "notes", "tasks"), [("off", 0, 0), ("run", 1, 1), ("suggest", 1, 0)])
async def test_the_setting_decides_for_clients(
    tmp_path: Path, project: Path, mode: str, notes: int, tasks: int
) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    settings = scripted(tmp_path, {"": [{"text": "x"}]}, triggers=mode)
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await called(running, write("a.py"), project)
        assert len(found) == notes
        listed = await tasks_of(http, "reviewer")
        assert len(listed) == tasks
        for one in listed:
            assert one["id"] in found[0]
            assert (await over(http, one["id"]))["state"] == "done"


async def test_agents_of_a_repository_that_nobody_trusts_trigger_nothing(tmp_path: Path, project: Path) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    async with running_central(tmp_path, {"trusted_roots": []}) as running:
        assert await called(running, write("a.py"), project) == []


async def test_a_person_and_a_dry_run_trigger_nothing_and_without_a_runner_it_is_said(
    tmp_path: Path, project: Path
) -> None:
    agent(project, "reviewer", "MUST BE USED after code changes")
    settings = {"agents.runner": "scripted", "agents.triggers": "run"}
    async with running_central(tmp_path, settings) as running:
        session = session_of(running.central, working_folder=str(project))
        planned = {**write("a.py"), "arguments": {**write("a.py")["arguments"], "dry_run": True}}
        assert await called(running, planned, project) == []
        made = await running.central.caller.call(session, "create_text_file", write("b.py")["arguments"], person=True)
        assert not any("The agent" in note for note in made.notes)
        (note,) = await called(running, write("c.py"), project)
        assert "was not run" in note
        assert "agents.script_file" in note
        assert (project / "c.py").exists()


async def test_a_call_where_no_agents_are_loads_nothing_of_triggers(tmp_path: Path, project: Path) -> None:
    async with running_central(tmp_path) as running:
        with anyio.fail_after(PATIENCE_S):
            assert await called(running, write("a.py"), project) == []
        assert running.central.caller._triggers is None
