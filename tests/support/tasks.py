"""Scripts for the scripted runner, and tasks over /api."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from serena_central.store.rows import PlanRow, TaskRow
from tests.support.central import RunningCentral
from tests.support.child import PATIENCE_S


def scripted(folder: Path, scripts: dict[str, list[dict[str, Any]]], **policy: Any) -> dict[str, Any]:
    """Settings by which tasks play these scripts: expression in the instruction → steps."""
    file = folder / "scripts.json"
    file.write_text(json.dumps([{"match": match, "steps": steps} for match, steps in scripts.items()]))
    chosen = {"runner": "scripted", "script_file": str(file), **policy}
    return {f"agents.{name}": value for name, value in chosen.items()}


async def start(http: httpx.AsyncClient, instruction: str, project: Path, **asked: Any) -> dict[str, Any]:
    answer = await http.post("/api/v1/tasks", json={"instruction": instruction, "project": str(project), **asked})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def over(http: httpx.AsyncClient, task: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """The task when it is over."""
    with anyio.fail_after(patience_s):
        while True:
            found = (await http.get(f"/api/v1/tasks/{task}", params={"wait_s": 5})).json()
            if found["state"] not in ("queued", "running"):
                return found


async def until(http: httpx.AsyncClient, task: str, state: str) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_S):
        while (found := (await http.get(f"/api/v1/tasks/{task}")).json())["state"] != state:
            await anyio.sleep(0.01)
        return found


async def start_plan(http: httpx.AsyncClient, plan: dict[str, Any], project: Path) -> str:
    """The id of a plan that runs."""
    answer = await http.post("/api/v1/plans", json={"plan": plan, "project": str(project)})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def over_plan(http: httpx.AsyncClient, plan: str) -> dict[str, Any]:
    """The plan when it is over, or waits for a person."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = (await http.get(f"/api/v1/plans/{plan}", params={"wait_s": 5})).json()
            if found["state"] != "running":
                return found


def announce(running: RunningCentral, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has commands and the Python API find a server, as the command line does that starts one."""
    (folder / "home" / "server.json").write_text(json.dumps({"url": f"{running.url}/mcp", "pid": 1}))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(folder / "home"))


def past_task(root: Path, text: str = "It is in cart.py.") -> TaskRow:
    """A task that was carried out, with this text wherever others write one."""
    return TaskRow(
        id="t-past",
        at=time.time() - 600,
        started_at=time.time() - 600,
        ended_at=time.time() - 590,
        state="failed",
        instruction=text,
        agent=text,
        runner="claude-code",
        model=text,
        project_root=str(root),
        session="s-of-a-task",
        text=text,
        error=text,
        usage={"input": 1200, "output": 80},
        cost_usd=0.0123,
        cost_source="runner",
        verified={
            "calls": {text: 2},
            "edits": ["e-none"],
            "files": [text],
            "changed_otherwise": [text],
            "new_errors": [{"path": text, "line": 3, "message": text, "reference": True}],
            "broken_references": [{"path": text, "line": 3, "message": text, "reference": True}],
            "tests": [{"command": text, "exit_code": 1}],
            "notes": [text],
        },
    )


def past_plan(root: Path, text: str = "It is in cart.py.") -> PlanRow:
    """A plan that stopped, with this text wherever others write one."""
    error = {"path": text, "line": 3, "message": text, "reference": True}
    done = {"name": "map", "task": "t-past", "state": "done", "text": text, "verified": {"edits": ["e-none"]}}
    failed = {"name": text, "state": "failed", "error": text, "after": {"map": text}, "undone": ["e-none"]}
    wave = {
        "name": "discovery",
        "state": "failed",
        "transaction": True,
        "tasks": [done, failed],
        "checks": [{"name": text, "state": "failed", "says": text}],
        "verified": {
            "files": [text],
            "changed_otherwise": [text],
            "new_errors": [error],
            "tests": [{"command": text, "exit_code": 1}],
            "undetermined": [text],
        },
        "undone": ["e-none"],
        "not_undone": {"e-other": text},
        "says": text,
        "notes": [text],
        "results_file": text,
    }
    return PlanRow(
        id="p-past",
        at=time.time() - 600,
        ended_at=time.time() - 590,
        state="stopped",
        name="pricing",
        project_root=str(root),
        file=text,
        folder=str(root / "none"),
        says=text,
        cost_usd=0.0123,
        waves=[wave],
    )
