"""Hooks in the dashboard and over the API: those of a project, held back or not, their runs, and halted sessions."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

CANARY = "ghp_" + "a1B2" * 9


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".claude").mkdir(parents=True)
    return root


@pytest.fixture
async def central(tmp_path: Path, root: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"projects": [str(root)], "trusted_roots": []}) as running:
        yield running


def hooks(root: Path, *lines: str) -> None:
    groups = [{"matcher": "Write", "hooks": [{"type": "command", "command": line} for line in lines]}]
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))


async def write(central: RunningCentral, root: Path, text: str = "a") -> Any:
    asked: dict[str, Any] = {"project": str(root), "relative_path": "a.txt", "content": text}
    async with central.http() as http:
        return (await http.post("/api/v1/tools/create_text_file", json={"arguments": asked})).json()


async def get(central: RunningCentral, path: str) -> Any:
    async with central.http() as http:
        response = await http.get(f"/api/v1/{path}")
    assert response.status_code == 200, response.text
    return response.json()


def trust(central: RunningCentral, root: Path) -> None:
    decisions = central.central.trust
    decisions.approve(root, decisions.standing(root).digest, by="me")


async def test_hooks_their_runs_and_a_halted_session_are_shown_and_it_is_resumed(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    page = f"/hooks?root={quote(str(root))}"
    hooks(root, "echo '<checked>'", "echo the disk is full >&2; exit 1")
    html = shown(await visitor.see(page))
    assert "2 hooks of shop held back" in html
    assert "No hook has run" in html
    assert "No session is halted" in html
    asked = f"?project={quote(str(root))}"
    assert [one["active"] for one in (await get(central, f"hooks{asked}"))["hooks"]] == [False, False]

    trust(central, root)
    await write(central, root)
    html = shown(await visitor.see(page))
    assert "held back" not in html
    assert "echo '<checked>'" in html
    assert "the disk is full" in html
    (one, two) = (await get(central, f"hooks{asked}"))["hooks"]
    assert (one["active"], one["event"], one["matcher"], one["tier"]) == (True, "PreToolUse", "Write", "project")
    assert two["runs"] == "echo the disk is full >&2; exit 1"
    found = (await get(central, f"hook-runs{asked}"))["runs"]
    assert [(run["outcome"], run["exit_code"]) for run in found] == [("halted", 1), ("passed", 0)]
    assert len((await get(central, f"hook-runs{asked}&limit=1"))["runs"]) == 1

    ((halted),) = (await get(central, "halted"))["halted"]
    done = await visitor.act("/hooks/resume", {"session": halted["session"]})
    assert done.status_code == 303
    assert await get(central, "halted") == {"halted": []}
    assert "No session is halted" in shown(await visitor.see(page))


async def test_projects_that_nobody_knows_and_sessions_that_are_not_halted(
    central: RunningCentral, visitor: Visitor
) -> None:
    assert (await visitor.http.get("/dashboard/hooks?root=/no/where")).status_code == 404
    assert "Select a project" in shown(await visitor.see("/hooks"))
    assert (await visitor.act("/hooks/resume", {"session": "<b>"})).status_code == 303
    async with central.http() as http:
        assert (await http.get("/api/v1/hooks")).status_code == 400
        assert (await http.get("/api/v1/hooks?project=/no/where")).status_code >= 400
        assert (await http.get("/api/v1/hook-runs?project=x&limit=many")).status_code == 400


async def test_lines_of_the_log_that_others_wrote_are_left_out(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    hooks(root, "true")
    trust(central, root)
    await write(central, root)
    with (root / ".claude/logs/validation.log").open("ab") as log:
        log.write(b'[]\n{"time": 1}\nnull\n\xff\xfe\n{"time": "x", "outcome": {}}\n{')
    assert len((await get(central, f"hook-runs?project={quote(str(root))}"))["runs"]) == 1
    assert "passed" in await visitor.see(f"/hooks?root={quote(str(root))}")
