"""The condition `symbol(references > N)` of a hook, by a language server that does not tell all."""

import json
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import HookBlocked
from tests.support.central import running_parts, session_of
from tests.support.scripted import REFERENCES, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

LOADS = {"kind": "log", "pattern": "load", "trouble": "^cannot load", "grace_s": 30, "cap_s": 30}


def with_hook(root: Path) -> None:
    hook = {"type": "command", "command": "exit 2", "if": "symbol(references > 20)"}
    (root / ".claude").mkdir()
    settings = {"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [hook]}]}}
    (root / ".claude/settings.json").write_text(json.dumps(settings))


def said(line: str) -> list[dict[str, Any]]:
    return [{"method": "window/logMessage", "params": {"type": 3, "message": line}}]


def places(path: Path, count: int) -> list[dict[str, Any]]:
    return [
        {
            "uri": path.as_uri(),
            "range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}},
        }
        for line in range(count)
    ]


async def edit(central: Application, root: Path) -> None:
    asked = {
        "project": str(root),
        "name_path": "Cart/total",
        "relative_path": "cart.py",
        "body": "def total(self): ...",
    }
    await central.caller.call(session_of(central), "replace_symbol_body", asked)


@pytest.mark.parametrize(("outside", "blocked"), [(20, False), (21, True)])
async def test_references_outside_the_project_count(tmp_path: Path, outside: int, blocked: bool) -> None:
    scripted_ty(tmp_path)
    other = tmp_path / "library.py"
    other.write_text("total\n" * outside)
    root = scripted_project(tmp_path, answers={REFERENCES: places(other, outside)})
    with_hook(root)
    async with running_parts(tmp_path, {"edit_diagnostics_s": 0}) as central:
        if not blocked:
            await edit(central, root)
            return
        with pytest.raises(HookBlocked):
            await edit(central, root)


@pytest.mark.parametrize(("line", "blocked"), [("loaded", False), ("cannot load it", True)])
async def test_references_that_may_be_missing_meet_it(tmp_path: Path, line: str, blocked: bool) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, answers={REFERENCES: []}, say=said(line))
    with_hook(root)
    async with running_parts(
        tmp_path, {"edit_diagnostics_s": 0, "language_servers": {"ty": {"readiness": LOADS}}}
    ) as central:
        if not blocked:
            await edit(central, root)
            return
        with pytest.raises(HookBlocked):
            await edit(central, root)
