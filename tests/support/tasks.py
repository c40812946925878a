"""Scripts for the scripted runner, and tasks over /api."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx

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


async def over(http: httpx.AsyncClient, task: str) -> dict[str, Any]:
    """The task when it is over."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = (await http.get(f"/api/v1/tasks/{task}", params={"wait_s": 5})).json()
            if found["state"] not in ("queued", "running"):
                return found


async def until(http: httpx.AsyncClient, task: str, state: str) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_S):
        while (found := (await http.get(f"/api/v1/tasks/{task}")).json())["state"] != state:
            await anyio.sleep(0.01)
        return found
