"""Tasks over /api, with the scripted runner: queue, depth, budgets, cancelling, grants, and a server that is killed."""

import asyncio
import gc
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest

from serena_central import sdk
from serena_central.core.rest import rest
from tests.support import upstreams
from tests.support.browser import shown, visiting
from tests.support.central import TESTS, RunningCentral, running_central
from tests.support.child import PATIENCE_S, serving_child
from tests.support.tasks import announce, over, scripted, start, until

pytestmark = pytest.mark.anyio

PYTHON = ["python3", "-c"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / "shop.py").write_text("def total():\n    return 1\n")
    return root


async def test_a_task_plays_to_its_end_with_its_text_usage_and_cost(tmp_path: Path, project: Path) -> None:
    """REQ-AGENT-001: its result is a text."""
    steps = [
        {"call": "list_dir", "arguments": {"relative_path": ".", "recursive": False}},
        {"usage": {"input": 10, "output": 5}, "cost_usd": 0.25},
        {"text": "Seen: ${last}"},
    ]
    async with running_central(tmp_path, scripted(tmp_path, {"Look": steps})) as running, running.http() as http:
        found = await over(http, (await start(http, "Look around", project))["id"])
        assert (found["state"], found["cost_usd"], found["cost_source"]) == ("done", 0.25, "runner")
        assert (found["usage"]["input"], found["usage"]["output"]) == (10, 5)
        assert "shop.py" in found["text"]
        session = running.central.sessions.get(found["session"])
        assert (session.calls, session.working_folder) == (1, str(project))
        lines = (await http.get(f"/api/v1/tasks/{found['id']}/output")).json()["lines"]
        assert [line["kind"] for line in lines] == ["tool", "text"]
        listed = (await http.get("/api/v1/tasks", params={"state": "done"})).json()["tasks"]
        assert [one["id"] for one in listed] == [found["id"]]


async def test_only_so_many_run_at_once_and_the_others_have_positions(tmp_path: Path, project: Path) -> None:
    """REQ-AGENT-001, PERF-004: ten at once, the eleventh is queued."""
    settings = scripted(tmp_path, {"hold": [{"run": ["sleep", "60"]}], "": [{"text": "done"}]}, concurrent=10)
    async with running_central(tmp_path, settings) as running, running.http() as http:
        held = [await start(http, "hold", project) for _ in range(10)]
        for one in held:
            await until(http, one["id"], "running")
        queued = [await start(http, "quick", project) for _ in range(2)]
        assert [one["position"] for one in queued] == [1, 2]
        assert rest.is_busy()  # tasks that think for long are no rest
        await http.post(f"/api/v1/tasks/{held[0]['id']}/cancel")
        assert [(await over(http, one["id"]))["state"] for one in queued] == ["done", "done"]
        for one in held[1:]:
            await http.post(f"/api/v1/tasks/{one['id']}/cancel")


async def test_gather_runs_tasks_side_by_side_and_one_failure_keeps_the_others(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-AGENT-004: each waits for the other two, so that all three run at once."""
    meet = (
        "import os,sys,time\nopen(sys.argv[1],'w')\n"
        "while len([n for n in os.listdir('.') if n.startswith('met')])<3: time.sleep(.01)"
    )
    scripts: dict[str, Any] = {
        f"module {name}": [{"run": [*PYTHON, meet, f"met-{name}"]}, {"text": f"{name} is fine"}] for name in "AB"
    }
    scripts["module C"] = [{"run": [*PYTHON, meet, "met-C"]}, {"fail": "C is broken"}]
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running:
        announce(running, tmp_path, monkeypatch)
        monkeypatch.chdir(project)
        with anyio.fail_after(PATIENCE_S):
            tasks = [sdk.Task(f"Analyze module {name}") for name in "ABC"]
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[:2] == ["A is fine", "B is fine"]
        assert isinstance(results[2], sdk.TaskFailed)
        assert "C is broken" in str(results[2])
        assert running.central.tasks.running is not None


async def test_the_example_of_the_documentation_runs_as_written(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-AGENT-001, REQ-AGENT-004"""
    text = (TESTS.parent / "docs" / "agents.md").read_text("utf-8")
    (example,) = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "gather" in one]
    settings = scripted(tmp_path, {"module": [{"text": "${instruction}: done"}]})
    async with running_central(tmp_path, settings) as running:
        announce(running, tmp_path, monkeypatch)
        ran = await anyio.run_process([sys.executable, "-c", example], cwd=project, env=dict(os.environ), check=False)
    assert ran.stdout.decode() == f"{[f'Analyze module {name}: done' for name in 'ABC']}\n", ran.stderr.decode()


@pytest.mark.slow
async def test_a_thousand_tasks_leave_memory_as_it_was(tmp_path: Path, project: Path) -> None:
    listing = {"call": "list_dir", "arguments": {"relative_path": ".", "recursive": False}}
    settings = scripted(tmp_path, {"": [listing, {"text": "${last}"}]})

    async def run(http: httpx.AsyncClient, count: int) -> int:
        """Resident bytes after so many tasks."""
        for _ in range(count // 50):
            begun = [await start(http, "look", project) for _ in range(50)]
            assert [(await over(http, one["id"]))["state"] for one in begun] == ["done"] * 50
        gc.collect()
        return psutil.Process().memory_info().rss

    async with running_central(tmp_path, settings) as running, running.http() as http:
        before = await run(http, 500)
        after = await run(http, 1000)
    assert after - before < 30_000_000, f"{(after - before) / 1e6:.1f} MB more"


async def test_a_cancelled_await_cancels_the_task(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = scripted(tmp_path, {"": [{"run": ["sleep", "60"]}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        announce(running, tmp_path, monkeypatch)
        waiting = asyncio.ensure_future(sdk.Task("hold", project=project).run())
        with anyio.fail_after(PATIENCE_S):
            while not (found := (await http.get("/api/v1/tasks")).json()["tasks"]):
                await anyio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert (await over(http, found[0]["id"]))["state"] == "cancelled"


def agent(project: Path, name: str, tools: str) -> None:
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: x\ntools: {tools}\n---\nBe brief.\n")


async def test_a_task_may_call_the_tools_of_its_agent_alone_and_its_children_no_others(
    tmp_path: Path, project: Path
) -> None:
    """REQ-INTEGRATION-003: for listing and calling alike."""
    agent(project, "reader", "Read, mcp__serena__task")
    agent(project, "writer", "Read, Edit")
    write = {"call": "create_text_file", "arguments": {"relative_path": "x.py", "content": "x = 1\n"}}
    scripts = {
        "nest": [{"call": "task", "arguments": {"instruction": "write", "agent": "writer"}}, {"text": "${last}"}],
        "write": [write, {"text": "written"}],
        "read": [{"call": "read_file", "arguments": {"relative_path": "shop.py"}}, {"text": "${last}"}],
    }
    settings = {**scripted(tmp_path, scripts), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        read = await over(http, (await start(http, "read", project, agent="reader"))["id"])
        assert "def total" in read["text"]
        refused = await over(http, (await start(http, "write", project, agent="reader"))["id"])
        assert refused["state"] == "failed"
        assert "create_text_file is not among the tools of the agent 'reader'" in refused["error"]
        nested = await over(http, (await start(http, "nest", project, agent="reader"))["id"])
        assert '"failed"' in nested["text"]
        assert not (project / "x.py").exists()
        session = running.central.sessions.get(read["session"])
        assert running.central.caller.tools_for(session) == []  # its task is over
        written = await over(http, (await start(http, "write", project, agent="writer"))["id"])
        assert (written["state"], (project / "x.py").exists()) == ("done", True)


async def test_tasks_share_the_mcp_servers_of_their_project_within_what_their_agents_allow(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-INTEGRATION-003"""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    log = tmp_path / "log.jsonl"
    upstreams.settings_of_user(tmp_path / "claude", {"one": upstreams.scripted(log=str(log))})
    agent(project, "reader", "Read, mcp__one__echo")
    scripts = {
        "echo": [{"call": "one__echo", "arguments": {"text": "hello"}}, {"text": "${last}"}],
        "who": [{"call": "one__who", "arguments": {}}, {"text": "${last}"}],
    }
    settings = {**scripted(tmp_path, scripts), **upstreams.QUICK}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        allowed = await over(http, (await start(http, "echo", project, agent="reader"))["id"])
        assert (allowed["state"], allowed["text"]) == ("done", "hello")
        refused = await over(http, (await start(http, "who", project, agent="reader"))["id"])
        assert "one__who is not among the tools of the agent 'reader'" in refused["error"]
        inherited = await over(http, (await start(http, "who", project))["id"])
        assert inherited["text"].isdigit()
    assert len(upstreams.events_in(log, "started")) == 1


async def test_a_parent_gives_its_place_to_its_children_and_depth_is_bounded(tmp_path: Path, project: Path) -> None:
    nest = [{"call": "task", "arguments": {"instruction": "nest"}}, {"text": "${last}"}]
    settings = {**scripted(tmp_path, {"nest": nest}, concurrent=1), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        top = await over(http, (await start(http, "nest", project))["id"])
        found = (await http.get("/api/v1/tasks")).json()["tasks"]
        assert sorted(one["depth"] for one in found) == [1, 2, 3]
        assert [one["state"] for one in found if one["depth"] == 3] == ["failed"]
        assert "max_depth" in next(one["error"] for one in found if one["depth"] == 3)
        assert top["state"] == "done"
        assert running.central.tasks.running is not None


@pytest.mark.parametrize(
    ("asked", "steps", "why"),
    [
        ({"timeout_s": 0.05}, [{"run": ["sleep", "60"]}], "0.05 s"),
        ({"max_tokens": 100}, [{"usage": {"input": 101}}, {"wait_s": 60}], "101 tokens"),
        ({"max_usd": 0.5}, [{"cost_usd": 0.75}, {"wait_s": 60}], "$0.75"),
    ],
)
async def test_a_task_ends_when_its_budget_is_over(
    tmp_path: Path, project: Path, asked: dict[str, Any], steps: list[dict[str, Any]], why: str
) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        found = await over(http, (await start(http, "x", project, **asked))["id"])
        assert found["state"] == "over budget"
        assert why in found["error"]


async def test_no_task_starts_when_the_day_has_cost_enough(tmp_path: Path, project: Path) -> None:
    settings = scripted(tmp_path, {"": [{"cost_usd": 2}, {"text": "x"}]}, daily_usd=1.5)
    async with running_central(tmp_path, settings) as running, running.http() as http:
        await over(http, (await start(http, "x", project))["id"])
        refused = await http.post("/api/v1/tasks", json={"instruction": "y", "project": str(project)})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "task_refused")


async def test_a_task_ends_when_the_day_has_cost_enough(tmp_path: Path, project: Path) -> None:
    settings = scripted(tmp_path, {"": [{"cost_usd": 2}, {"wait_s": 60}]}, daily_usd=1.5)
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await over(http, (await start(http, "x", project))["id"])
        assert found["state"] == "over budget"
        assert "agents.daily_usd is 1.5" in found["error"]


async def test_a_budget_of_the_day_ends_the_task_that_uses_it_up_and_refuses_the_next(
    tmp_path: Path, project: Path
) -> None:
    steps = [{"cost_usd": 0.75}, {"wait_s": 60}]
    settings = {**scripted(tmp_path, {"cheap": [{"cost_usd": 0.25}], "": steps}), "usage_budgets": {"app": 1.0}}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        assert (await over(http, (await start(http, "cheap", project))["id"]))["state"] == "done"
        found = await over(http, (await start(http, "x", project))["id"])
        assert found["state"] == "over budget"
        assert "$1.00 of today's $1.00 for app" in found["error"]
        refused = await http.post("/api/v1/tasks", json={"instruction": "y", "project": str(project)})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "task_refused")
        assert "usage_budgets" in refused.json()["error"]["message"]


async def test_a_task_is_warned_before_a_budget_of_the_day_is_used_up(tmp_path: Path, project: Path) -> None:
    settings = {**scripted(tmp_path, {"": [{"cost_usd": 0.9}, {"text": "x"}]}), "usage_budgets": {"day": 1.0}}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        for notes in ([], ["$0.90 of today's $1.00 for all projects are spent."]):
            task = await over(http, (await start(http, "x", project))["id"])
            lines = (await http.get(f"/api/v1/tasks/{task['id']}/output")).json()["lines"]
            assert [line["text"] for line in lines if line["kind"] == "note"] == notes


async def test_cancel_ends_the_whole_tree_and_its_processes(tmp_path: Path, project: Path) -> None:
    stubborn = (
        "import os,signal,time\nfor n in (2,15): signal.signal(n,signal.SIG_IGN)\n"
        "open('pid','w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    scripts = {
        "parent": [{"call": "task", "arguments": {"instruction": "child"}}],
        "child": [{"run": [*PYTHON, stubborn]}],
    }
    settings = {**scripted(tmp_path, scripts), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        parent = await start(http, "parent", project)
        with anyio.fail_after(PATIENCE_S):
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await anyio.sleep(0.01)
        await http.post(f"/api/v1/tasks/{parent['id']}/cancel", params={"by": "me"})
        found = {one["instruction"]: one for one in (await http.get("/api/v1/tasks")).json()["tasks"]}
        assert {one["state"] for one in found.values()} == {"cancelled"}
        assert "me" in found["parent"]["error"]
        assert not psutil.pid_exists(int((project / "pid").read_text()))


async def test_without_a_runner_a_task_is_refused_with_how_to_get_one(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_central(tmp_path, {"agents.runner": "scripted"}) as running, running.http() as http:
        refused = await http.post("/api/v1/tasks", json={"instruction": "x", "project": str(project)})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "no_runner")
        assert "agents.script_file" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"instruction": " "}, 400),
        ({"instruction": "x", "agent": "nobody"}, 409),
        ({"instruction": "x", "runner": "nobody"}, 409),
        ({"instruction": "x", "timeout_s": -1}, 400),
        ({"instruction": "x", "unknown": {}}, 400),
        ({}, 400),
    ],
)
async def test_wrong_requests_are_refused(tmp_path: Path, project: Path, body: dict[str, Any], status: int) -> None:
    async with running_central(tmp_path, scripted(tmp_path, {"": [{"text": "x"}]})) as running, running.http() as http:
        answer = await http.post("/api/v1/tasks", json={"project": str(project), **body})
        assert answer.status_code == status, answer.text
        assert (await http.get("/api/v1/tasks/t-none")).status_code == 404
        assert (await http.post("/api/v1/tasks/t-none/cancel")).status_code == 404


async def test_the_tool_is_listed_where_it_is_enabled(tmp_path: Path, project: Path) -> None:
    async def names(running: RunningCentral) -> set[str]:
        async with running.http() as http:
            return {one["name"] for one in (await http.get("/api/v1/tools")).json()["tools"]}

    async with running_central(tmp_path) as running:
        assert not {"task", "task_result"} & await names(running)
        assert running.central.tasks.running is None
    async with running_central(tmp_path, {"task_tool": True}) as running:
        assert {"task", "task_result"} <= await names(running)


async def test_a_background_task_is_asked_about_by_who_started_it(tmp_path: Path, project: Path) -> None:
    """REQ-AGENT-001: not waited for."""
    settings = {**scripted(tmp_path, {"": [{"text": "done"}]}), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http(x_serena_project=str(project)) as http:

        async def call(session: str, tool: str, **arguments: Any) -> Any:
            body = {"arguments": arguments, "session": session}
            return (await http.post(f"/api/v1/tools/{tool}", json=body)).json()

        begun = json.loads((await call("me", "task", instruction="x", background=True))["blocks"][0])
        refused = await call("other", "task_result", task=begun["task"])
        assert refused["error"]["kind"] == "invalid_arguments"
        ended = json.loads((await call("me", "task_result", task=begun["task"], wait_s=30))["blocks"][0])
        assert (ended["state"], ended["text"]) == ("done", "done")


async def test_a_killed_server_leaves_no_process_and_its_tasks_are_failed_afterwards(
    tmp_path: Path, project: Path
) -> None:
    hold = "import os,time\nopen('pid','w').write(str(os.getpid()))\ntime.sleep(60)"
    settings = scripted(tmp_path, {"hold": [{"run": [*PYTHON, hold]}], "": [{"text": "done"}]}, concurrent=1)
    more = {f"SERENA_CENTRAL_{key.upper().replace('.', '_')}": str(value) for key, value in settings.items()}
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        held, queued = await start(http, "hold", project), await start(http, "later", project)
        with anyio.fail_after(PATIENCE_S):
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await anyio.sleep(0.01)
        await child.end(signal.SIGKILL)
        with anyio.fail_after(PATIENCE_S):
            while psutil.pid_exists(int((project / "pid").read_text())):
                await anyio.sleep(0.01)
    async with serving_child(tmp_path, **more) as child, child.http() as http:
        for one, state in ((held, "running"), (queued, "queued")):
            found = (await http.get(f"/api/v1/tasks/{one['id']}")).json()
            assert (found["state"], state in found["error"]) == ("failed", True)
        assert (await over(http, (await start(http, "again", project))["id"]))["state"] == "done"


async def test_two_servers_with_one_database_leave_each_others_tasks_alone(tmp_path: Path, project: Path) -> None:
    hold = {"run": ["sh", "-c", "while [ ! -e go ]; do sleep .01; done"]}
    settings = scripted(tmp_path, {"": [hold, {"text": "done"}]}) | {
        "database_url": f"sqlite:///{tmp_path / 'shared.db'}",
        "trusted_roots": [str(tmp_path)],
    }
    async with (
        running_central(tmp_path / "1", {**settings, "front_name": "f1"}) as first,
        running_central(tmp_path / "2", {**settings, "front_name": "f2"}) as second,
        first.http() as one,
        second.http() as other,
    ):
        begun = await start(one, "go", project)
        await until(one, begun["id"], "running")
        assert begun["session"].startswith("f1.")
        listed = (await other.get("/api/v1/tasks")).json()["tasks"]
        assert [task["state"] for task in listed] == ["running"]
        (project / "go").touch()
        assert (await over(one, begun["id"]))["text"] == "done"


async def test_a_killed_program_fails_its_task_and_leaves_nothing_behind(tmp_path: Path, project: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nsleep 600 &\necho $! > child\necho $$ > pid\nwait\n")
    program.chmod(0o755)
    settings = {"agents.runner": "claude-code", "agents.runner_paths": {"claude-code": str(program)}}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        (tmp_path / "home" / "server.json").write_text(json.dumps({"url": f"{running.url}/mcp", "pid": 1}))
        begun = await start(http, "x", project)
        with anyio.fail_after(PATIENCE_S):
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await anyio.sleep(0.01)
        os.kill(int((project / "pid").read_text()), signal.SIGKILL)
        found = await over(http, begun["id"])
        assert found["state"] == "failed"
        assert "Claude Code ended with exit code" in found["error"]
        assert not psutil.pid_exists(int((project / "child").read_text()))


async def test_half_a_surrogate_pair_and_broken_utf_8_cost_the_text_of_a_task_nothing_else(
    tmp_path: Path, project: Path
) -> None:
    """What is left of an emoji where a program cuts a text; and it must not be in the way of other tasks' lists."""
    said = {"type": "text", "text": "an emoji: \ud83d"}
    used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "echo \ud83d"}}
    events = [
        {"type": "assistant", "message": {"id": "m", "content": [said, used]}},
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "cut \ud83d, BYTE, 😀",
            "session_id": "x",
        },
    ]
    output = "".join(f"{json.dumps(event)}\n" for event in events).encode().replace(b"BYTE", b"\xff")
    (tmp_path / "output").write_bytes(output)
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    program.chmod(0o755)
    settings = {"agents.runner": "claude-code", "agents.runner_paths": {"claude-code": str(program)}}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        (tmp_path / "home" / "server.json").write_text(json.dumps({"url": f"{running.url}/mcp", "pid": 1}))
        found = await over(http, (await start(http, "x", project))["id"])
        assert (found["state"], found["text"]) == ("done", "cut ?, \ufffd, 😀")
        (listed,) = (await http.get("/api/v1/tasks")).json()["tasks"]
        assert listed["id"] == found["id"]


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "result", "subtype": "success", "result": "fine", "total_cost_usd": NaN, "usage": {}}',
        '{"type": "result", "subtype": "success", "result": "fine", "total_cost_usd": 1e999, "usage": {}}',
        '{"type": "result", "subtype": "success", "total_cost_usd": -50, "usage": {"input_tokens": -7}}',
        '{"type": "result", "subtype": "success", "result": "fine", "total_cost_usd": 1%s}' % ("0" * 400),
        '{"type": "assistant", "message": {"id": {"a": [1]}, "content": [{"type": "tool_use", "id": [1], "name": 5}]}}',
        '{"type": "result", "subtype": "error", "is_error": true, "errors": 5}',
        '{"type": ["result"], "session_id": {"a": 1}}',
    ],
)
async def test_what_a_program_prints_costs_neither_its_task_nor_the_budgets_their_sums(
    tmp_path: Path, project: Path, line: str
) -> None:
    program = tmp_path / "claude"
    end = '{"type": "result", "subtype": "success", "result": "fine"}'
    program.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{line}'\necho '{end}'\n")
    program.chmod(0o755)
    settings = {"agents.runner": "claude-code", "agents.runner_paths": {"claude-code": str(program)}}
    async with running_central(tmp_path, settings=settings) as central, central.http() as http:
        task = (await start(http, "go", project))["id"]
        found = await over(http, task)
        assert (found["state"], found["text"], found["cost_usd"]) in [("done", "fine", None), ("failed", "", None)]
        assert "Internal error" not in found["error"]
        assert min(found["usage"].values(), default=0) >= 0


async def test_a_server_that_stops_ends_its_tasks_and_says_so(tmp_path: Path, project: Path) -> None:
    hold = "import os,time\nopen('pid','w').write(str(os.getpid()))\ntime.sleep(60)"
    settings = scripted(tmp_path, {"hold": [{"run": [*PYTHON, hold]}]})
    async with running_central(tmp_path, settings) as running, running.http() as http:
        held = await start(http, "hold", project)
        with anyio.fail_after(PATIENCE_S):
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await anyio.sleep(0.01)
    assert not psutil.pid_exists(int((project / "pid").read_text()))
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = (await http.get(f"/api/v1/tasks/{held['id']}")).json()
        assert (found["state"], found["error"]) == ("cancelled", "The server stopped.")
        assert found["verified"]["notes"] == ["What it did is not determined: the server stopped."]


async def test_a_result_has_what_the_server_saw_and_its_edits_can_be_undone(tmp_path: Path, project: Path) -> None:
    edit = {"call": "create_text_file", "arguments": {"relative_path": "new.py", "content": "x = 1\n"}}
    steps = [edit, {"run": [*PYTHON, "open('beside.txt', 'w').write('x')"]}, {"text": "I changed nothing."}]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        found = await over(http, (await start(http, "x", project))["id"])
        seen = found["verified"]
        assert (found["text"], seen["files"], seen["changed_otherwise"]) == (
            "I changed nothing.",
            ["new.py"],
            ["beside.txt"],
        )
        assert seen["calls"] == {"create_text_file": 1}
        assert len(seen["edits"]) == 1
        undone = await http.post(f"/api/v1/sessions/{found['session']}/undo", params={"since": 0})
        assert undone.json()["undone"] == seen["edits"]
        assert not (project / "new.py").exists()


async def test_pages_show_tasks_as_a_tree_with_results_and_cancel_them(tmp_path: Path, project: Path) -> None:
    scripts = {
        "top": [{"call": "task", "arguments": {"instruction": "below <b>"}}, {"text": "All <i>done"}],
        "below": [{"text": "done"}],
        "hold": [{"run": ["sleep", "60"]}],
    }
    settings = {**scripted(tmp_path, scripts), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http, visiting(running) as visitor:
        assert "No tasks." in await visitor.see("/tasks")
        top = await over(http, (await start(http, "top", project))["id"])
        held = await until(http, (await start(http, "hold", project))["id"], "running")
        page = await visitor.see("/tasks")
        assert page.index(">hold<") < page.index(">top<") < page.index("↳ ")
        assert "below &lt;b&gt;" in page
        one = await visitor.see(f"/tasks/{top['id']}")
        assert "All &lt;i&gt;done" in one
        assert "task 1" in shown(one)
        assert (await visitor.http.get("/dashboard/tasks/t-none")).status_code == 404
        await visitor.act("/tasks/cancel", {"task": held["id"]})
        assert (await over(http, held["id"]))["state"] == "cancelled"
