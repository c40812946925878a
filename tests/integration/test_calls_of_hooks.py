"""Hooks that call the server that runs them, by its command line."""

import json
import shlex
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from tests.support.child import PROGRAM, Child, serving_child

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Child]:
    folder = tmp_path_factory.mktemp("serving")
    async with serving_child(folder, SERENA_CENTRAL_TRUSTED_ROOTS=tempfile.gettempdir()) as child:
        yield child


@pytest.mark.parametrize(
    ("event", "tool", "said"),
    [
        ("PreToolUse", "create_text_file", "would call each other without end"),
        ("PostToolUse", "create_text_file", "whose files the server holds"),
        ("PostToolUse", "replace_content", "whose files the server holds"),
        ("PreToolUse", "find_symbol", '"total"'),
        ("PostToolUse", "find_symbol", '"total"'),
    ],
)
async def test_a_call_by_a_hook_is_answered_at_once(
    child: Child, tmp_path: Path, event: str, tool: str, said: str
) -> None:
    """It would start the hook again, or wait for it."""
    arguments = {
        "create_text_file": {"relative_path": "note.txt", "content": "other"},
        "replace_content": {"relative_path": "note.txt", "needle": "one", "repl": "two", "mode": "literal"},
        "find_symbol": {"name_path_pattern": "total"},
    }[tool]
    root, output = tmp_path / "shop", tmp_path / "output"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    (root / "cart.py").write_text("def total() -> int:\n    return 0\n")
    given = shlex.quote(json.dumps({"project": str(root), **arguments}))
    call = f"SERENA_CENTRAL_HOME={child.folder / 'home'} {PROGRAM} call {tool} --arguments {given} > {output} 2>&1 || :"
    group = {"matcher": "Write", "hooks": [{"type": "command", "command": f"echo run >> {output}.runs; {call}"}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {event: [group]}}))
    runs = tmp_path / "output.runs"
    asked = {"project": str(root), "relative_path": "note.txt", "content": "one"}
    assert "edit" in await child.call("create_text_file", asked)
    assert said in output.read_text()
    assert runs.read_text() == "run\n"
    assert (root / "note.txt").read_text() == "one"


async def test_a_hook_for_the_start_of_sessions_can_read(child: Child, tmp_path: Path) -> None:
    """What it calls begins no session that it would run for."""
    root, output = tmp_path / "shop", tmp_path / "output"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    call = f"SERENA_CENTRAL_HOME={child.folder / 'home'} {PROGRAM} call list_memories --project {root} > {output} 2>&1"
    group = {"hooks": [{"type": "command", "command": f"echo run >> {output}.runs; {call}"}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"SessionStart": [group]}}))
    assert "memories" in await child.call("list_memories", {"project": str(root)})
    assert "memories" in output.read_text()
    assert (tmp_path / "output.runs").read_text() == "run\n"


async def test_a_call_by_a_hook_is_known_within_another_call(child: Child, tmp_path: Path) -> None:
    """query_project calls the tool around which the hook runs."""
    root, output = tmp_path / "shop", tmp_path / "output"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    (root / "cart.py").write_text("def total() -> int:\n    return 0\n")
    params = {"name_path_pattern": "total"}
    arguments = {"project_name": str(root), "tool_name": "find_symbol", "tool_params_json": json.dumps(params)}
    given = shlex.quote(json.dumps(arguments))
    call = f"SERENA_CENTRAL_HOME={child.folder / 'home'} {PROGRAM} call query_project --arguments {given}"
    hook = {"type": "command", "command": f"echo run >> {output}.runs; {call} > {output} 2>&1 || :"}
    group = {"matcher": "mcp__.*__find_symbol", "hooks": [hook]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    assert await child.call("find_symbol", {"project": str(root), **params})
    assert "would call each other without end" in output.read_text()
    assert (tmp_path / "output.runs").read_text() == "run\n"


async def test_what_a_server_starts_that_a_hook_started_is_no_call_of_the_hook(tmp_path: Path) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    async with serving_child(tmp_path, SERENA_CENTRAL_HOOK="holding") as child:
        await child.call(
            "create_text_file", {"project": str(tmp_path / "shop"), "relative_path": "a.py", "content": "x"}
        )
        started = psutil.Process(child.process.pid).children(recursive=True)
        assert started
        assert not any("SERENA_CENTRAL_HOOK" in one.environ() for one in started)
