"""Hooks of the settings around clients' own tools: `serena-hook gate` as a client runs it, before a real server."""

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.child import PATIENCE_S, Child, environment, run_command, serving_child

pytestmark = pytest.mark.anyio

HOOK = (sys.executable, "-I", "-m", "serena_central.hook")

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification", "PreCompact"),
    *("SubagentStop", "Stop", "SessionEnd"),
)


@pytest.fixture(scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Child]:
    """One server for all: each test has a project and a conversation of its own."""
    trusted = str(tmp_path_factory.getbasetemp())
    folder = tmp_path_factory.mktemp("serving")
    async with serving_child(folder, SERENA_CENTRAL_TRUSTED_ROOTS=f"{trusted}/*/shop") as child:
        yield child


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop/.git").mkdir(parents=True)
    return tmp_path / "shop"


def hooks(root: Path, **events: list[dict[str, Any]]) -> None:
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": events}))


def command(matcher: str, line: str, **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": line, **more}]}


async def gate(home: Path, root: Path, event: str, client: str, **said: Any) -> Any:
    given = {"session_id": str(root), "cwd": str(root), "hook_event_name": event, **said}
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            [*HOOK, "gate", event, "--client", client],
            input=json.dumps(given).encode(),
            check=False,
            env=environment(home),
        )
    assert ended.returncode == 0, ended
    return json.loads(ended.stdout) if ended.stdout else None


def denial(client: str, answer: Any) -> str:
    """The reason of a refusal in a client's form."""
    if client == "gemini":
        assert answer["decision"] == "deny"
        return answer["reason"]
    if client == "cursor":
        assert answer["permission"] == "deny"
        assert answer["user_message"] == answer["agent_message"]
        return answer["agent_message"]
    output = answer["hookSpecificOutput"]
    assert output["permissionDecision"] == "deny"
    return output["permissionDecisionReason"]


SHELLS = {
    "claude-code": "Bash",
    "codex": "Bash",
    "gemini": "run_shell_command",
    "cursor": "Shell",
    "vscode": "run_in_terminal",
}


@pytest.mark.parametrize("client", SHELLS)
async def test_a_commit_of_each_client_is_blocked_until_its_condition_holds(
    child: Child, root: Path, client: str
) -> None:
    hooks(root, PreToolUse=[command("Bash(git commit:*)", "[ -f ok ] || { echo run the tests >&2; exit 2; }")])
    said: dict[str, Any] = {"tool_name": SHELLS[client], "tool_input": {"command": "true && git commit -m x"}}
    assert "run the tests" in denial(client, await gate(child.folder, root, "PreToolUse", client, **said))
    (root / "ok").touch()
    assert await gate(child.folder, root, "PreToolUse", client, **said) is None
    assert (
        await gate(child.folder, root, "PreToolUse", client, tool_name=SHELLS[client], tool_input={"command": "ls"})
        is None
    )


async def test_each_of_the_nine_events_runs_its_hooks_once_and_in_order(child: Child, root: Path) -> None:
    """REQ-HOOKS-001"""
    hooks(root, **{event: [command("", 'echo "$HOOK_EVENT" >> order')] for event in EVENTS})
    for event in EVENTS:
        tool = {"tool_name": "Read", "tool_input": {"file_path": "a.txt"}} if event.endswith("ToolUse") else {}
        await gate(child.folder, root, event, "codex", **tool)
    assert (root / "order").read_text().split() == list(EVENTS)


async def test_a_hook_at_a_stop_gets_what_the_agent_said_last(child: Child, root: Path) -> None:
    """REQ-HOOKS-004"""
    names = ("CONVERSATION_SUMMARY", "CLAUDE_SESSION_ID", "PROJECT_ROOT")
    lines = " ".join(f'"${name}"' for name in names)
    hooks(root, Stop=[command("", f"printf '%s\\n' {lines} > seen")])
    said = "the cart is done; $(touch canary)"
    await gate(child.folder, root, "Stop", "claude-code", last_assistant_message=said)
    assert not (root / "seen").exists()  # Claude Code runs it by itself
    await gate(child.folder, root, "Stop", "codex", last_assistant_message=said)
    summary, session, project = (root / "seen").read_text().splitlines()
    assert (summary, project) == (said, str(root))
    assert session
    assert not (root / "canary").exists()


async def test_files_of_an_edit_and_feedback_after_it(child: Child, root: Path) -> None:
    hooks(root, PostToolUse=[command("Edit|Write", 'echo "$FILE_PATH" >> seen; echo too long >&2; exit 2')])
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** Add File: b.py\n+c\n*** End Patch"
    answer = await gate(
        child.folder, root, "PostToolUse", "codex", tool_name="apply_patch", tool_input={"command": patch}
    )
    assert answer["decision"] == "block"
    assert "too long" in answer["reason"]
    answer = await gate(
        child.folder, root, "PostToolUse", "gemini", tool_name="write_file", tool_input={"file_path": "c.py"}
    )
    assert answer["decision"] == "deny"
    assert (root / "seen").read_text().split() == [f"{root}/a.py", f"{root}/c.py"]


async def test_a_stage_that_failed_after_a_clients_edit_stops_its_commit(child: Child, root: Path) -> None:
    hooks(
        root,
        PostToolUse=[command("Edit|Write", "[ -f fixed ] || { echo too long >&2; exit 2; }")],
        PreToolUse=[command("Bash(git commit:*)", "echo tests >> order")],
    )
    edit: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"file_path": "a.py"}}
    commit: dict[str, Any] = {"tool_name": "run_shell_command", "tool_input": {"command": "git commit -m x"}}
    (root / "a.py").touch()
    assert (await gate(child.folder, root, "PostToolUse", "gemini", **edit))["decision"] == "deny"
    assert "an earlier stage" in denial("gemini", await gate(child.folder, root, "PreToolUse", "gemini", **commit))
    assert not (root / "order").exists()
    (root / "fixed").touch()
    assert await gate(child.folder, root, "PostToolUse", "gemini", **edit) is None
    assert await gate(child.folder, root, "PreToolUse", "gemini", **commit) is None
    assert (root / "order").read_text() == "tests\n"


async def test_what_changes_while_a_clients_tests_run_is_not_tested(child: Child, root: Path) -> None:
    check = {"type": "check", "check": "tests-fresh", "command": "make test"}
    hooks(root, PreToolUse=[{"matcher": "Bash(git commit:*)", "hooks": [check]}])

    async def tell(event: str, line: str, **more: Any) -> Any:
        return await gate(
            child.folder, root, event, "claude-code", tool_name="Bash", tool_input={"command": line}, **more
        )

    await tell("PreToolUse", "make test", tool_use_id="1")
    (root / "cart.py").touch()
    await tell("PreToolUse", "make test", tool_use_id="2")  # at the same time; it fails, which is not reported
    await tell("PostToolUse", "make test", tool_use_id="1")
    assert "cart.py changed since" in denial("claude-code", await tell("PreToolUse", "git commit"))
    for event in ("PreToolUse", "PostToolUse"):
        await tell(event, "make test")  # a client that does not tell which call it is
    assert await tell("PreToolUse", "git commit") is None
    (root / "cart.py").write_text("x = 1\n")
    await tell("PostToolUse", "make test")  # it began before the server
    assert "cart.py changed since" in denial("claude-code", await tell("PreToolUse", "git commit"))


@pytest.mark.parametrize("unfinished", [{"backgroundTaskId": "b1"}, {"interrupted": True}])
async def test_tests_that_a_client_has_not_seen_end_have_not_succeeded(
    child: Child, root: Path, unfinished: dict[str, Any]
) -> None:
    check = {"type": "check", "check": "tests-fresh", "command": "make test"}
    hooks(root, PreToolUse=[{"matcher": "Bash(git commit:*)", "hooks": [check]}])
    run: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "make test"}}
    commit: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "git commit"}}
    for ended in (unfinished, {"interrupted": False}):
        await gate(child.folder, root, "PreToolUse", "claude-code", **run)
        await gate(child.folder, root, "PostToolUse", "claude-code", tool_response=ended, **run)
        answer = await gate(child.folder, root, "PreToolUse", "claude-code", **commit)
        assert (answer is None) == (ended is not unfinished)


async def test_what_runs_elsewhere_is_not_run_twice(child: Child, root: Path) -> None:
    """A call of our own tools runs its hooks itself; Claude Code runs hooks with plain matchers itself."""
    hooks(root, PreToolUse=[command("", "echo x >> runs; exit 2")])
    own: dict[str, Any] = {"tool_name": "mcp__serena__find_symbol", "tool_input": {}}
    assert await gate(child.folder, root, "PreToolUse", "codex", **own) is None
    other: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert await gate(child.folder, root, "PreToolUse", "claude-code", **other) is None
    assert not (root / "runs").exists()
    assert await gate(child.folder, root, "PreToolUse", "codex", **other)


async def test_a_halted_session_is_resumed_by_the_command(child: Child, root: Path) -> None:
    hooks(root, PreToolUse=[command("Bash", "exit 1")])
    said: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    answer = await gate(child.folder, root, "PreToolUse", "codex", **said)
    assert "continue" not in answer  # it would run the tool
    assert "halted" in denial("codex", answer)
    assert (await gate(child.folder, root, "UserPromptSubmit", "codex"))["continue"] is False
    hooks(root, PreToolUse=[command("Bash", "exit 0")])
    reason = denial("codex", await gate(child.folder, root, "PreToolUse", "codex", **said))
    session = reason.rpartition("resume ")[2]
    assert (await run_command(child.folder, "resume", session)).code == 0
    assert await gate(child.folder, root, "PreToolUse", "codex", **said) is None


async def test_without_a_server_a_tool_runs_and_that_is_said_once(tmp_path: Path, root: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    said: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "git commit"}}
    assert "not running" in (await gate(tmp_path, root, "PreToolUse", "claude-code", **said))["systemMessage"]
    assert await gate(tmp_path, root, "PreToolUse", "claude-code", **said) is None
