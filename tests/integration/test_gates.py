"""Hooks of the settings around calls: the rows of the requirements, with real commands and a real git repository."""

import json
import shlex
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import HookBlocked, SerenaCentralError, SessionHalted
from serena_central.gates.decisions import Decision, decision_of
from serena_central.tools.gating import MOST_AT_ONCE
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

SHELL = {"execute_shell": True, "included_optional_tools": ["execute_shell_command"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "user.email", "a@example.org")
    git(root, "config", "user.name", "A")
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    (root / ".gitignore").write_text(".claude/\nseen/\n")
    git(root, "add", ".")
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path, SHELL) as central:
        yield central


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def hooks(root: Path, **events: list[dict[str, Any]]) -> None:
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": events}))


def command(matcher: str, *lines: str, **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": line, **more} for line in lines]}


async def call(central: Application, root: Path, tool: str, session: str = "s", **arguments: Any) -> str:
    asked = {"project": str(root), **arguments}
    answer = await central.caller.call(session_of(central, explicit_id=session), tool, asked)
    return "\n".join(answer.blocks)


async def shell(central: Application, root: Path, line: str) -> str:
    return await call(central, root, "execute_shell_command", command=line)


def commits(root: Path) -> int:
    return len(git(root, "log", "--format=%h", "--all").split()) if list((root / ".git/refs/heads").iterdir()) else 0


COMMIT_GATE = command("Bash(git commit:*)", "[ -f tests-passing ] || { echo run the tests first >&2; exit 2; }")


@pytest.mark.parametrize(
    "line",
    [
        "git commit -m x",
        "true && git commit -m x",
        "GIT_PAGER=cat git commit -m x",
        "git -C . commit -m x",
        "git -c core.pager=cat commit -m x",
        "env git commit -m x",
        "env A=1 git commit -m x",
        'sh -c "git commit -m x"',
        "cd . ; git commit -m x",
        "(git commit -m x)",
        "/usr/bin/git commit -m x",
        "if true; then git commit -m x; fi",
        "echo $(git commit -m x)",
    ],
)
async def test_a_commit_is_blocked_however_it_is_written_until_its_condition_holds(
    central: Application, root: Path, line: str
) -> None:
    """REQ-HOOKS-005"""
    hooks(root, PreToolUse=[COMMIT_GATE])
    with pytest.raises(HookBlocked, match="run the tests first"):
        await shell(central, root, line)
    assert commits(root) == 0
    await shell(central, root, "touch tests-passing")
    await shell(central, root, line)
    assert commits(root) == 1


async def test_other_commands_pass_a_commit_gate(central: Application, root: Path) -> None:
    hooks(root, PreToolUse=[COMMIT_GATE])
    for line in ("git status", "echo git commit", "git log --oneline || true"):
        await shell(central, root, line)


async def test_exit_code_0_goes_on_2_blocks_until_it_is_fixed_and_another_halts(
    central: Application, root: Path
) -> None:
    """REQ-HOOKS-003"""
    hooks(root, PreToolUse=[command("Bash(ls:*)", "echo run the tests first >&2; exit $(cat code)")])
    (root / "code").write_text("2")
    with pytest.raises(HookBlocked, match="run the tests first"):
        await shell(central, root, "ls > ran")
    assert not (root / "ran").exists()
    (root / "code").write_text("0")
    assert "run the tests first" not in await shell(central, root, "ls > ran")
    assert (root / "ran").exists()
    (root / "code").write_text("3")
    with pytest.raises(SessionHalted, match="run the tests first"):
        await shell(central, root, "ls")
    with pytest.raises(SessionHalted):
        await shell(central, root, "true")


async def test_any_other_exit_code_halts_the_session_until_it_is_resumed(tmp_path: Path, root: Path) -> None:
    """REQ-HOOKS-003"""
    hooks(root, PreToolUse=[command("Bash(make:*)", "echo the disk is full >&2; exit 1")])
    async with running_parts(tmp_path, SHELL) as central:
        with pytest.raises(SessionHalted, match=r"the disk is full.*serena-central resume s\b"):
            await shell(central, root, "make")
        with pytest.raises(SessionHalted):
            await call(central, root, "list_dir", relative_path=".", recursive=False)
        await call(central, root, "list_dir", session="another", relative_path=".", recursive=False)
    async with running_parts(tmp_path, SHELL) as central:  # a restart lifts nothing
        assert list(central.gating.halted()) == ["s"]
        with pytest.raises(SessionHalted):
            await call(central, root, "list_dir", relative_path=".", recursive=False)
        assert central.gating.resume("s", "a person")
        assert not central.gating.resume("s", "a person")
        await call(central, root, "list_dir", relative_path=".", recursive=False)


async def test_a_hook_gets_what_it_is_about_in_its_environment_and_its_input(central: Application, root: Path) -> None:
    """REQ-HOOKS-004; CONVERSATION_SUMMARY comes with clients' Stop, in test_gates_of_clients."""
    report = 'printf "%s\\n" "$FILE_PATH" "$TOOL_NAME" "$PROJECT_ROOT" "$CLAUDE_SESSION_ID" > seen; '
    report += 'printf "%s" "$TOOL_ARGS" > arguments; cat > input'
    hooks(root, PreToolUse=[command("Edit|Write", report)])
    await call(central, root, "create_text_file", relative_path="new.txt", content="text")
    assert (root / "seen").read_text().split("\n")[:-1] == [f"{root}/new.txt", "create_text_file", str(root), "s"]
    assert json.loads((root / "arguments").read_text())["content"] == "text"
    said = json.loads((root / "input").read_text())
    assert said["hook_event_name"] == "PreToolUse"
    assert said["tool_input"]["file_path"] == f"{root}/new.txt"
    assert "Write" in said["stands_for"]


HOSTILE = ["a; rm -rf canary", "$(rm canary)", "`rm canary`", "a'b\"c", "a\nrm canary", "--help", "é\u202e", "*"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_and_arguments_are_inert(central: Application, root: Path, name: str) -> None:
    """REQ-HOOKS-004"""
    (root / "canary").write_text("alive")
    line = 'printf "%s" "$FILE_PATH" > got; printf "%s" "$TOOL_ARGS" > arguments'
    hooks(
        root, PreToolUse=[command("Write", line)], PostToolUse=[command("Write", 'test -f "$FILE_PATH" && : > after')]
    )
    text = f"{name}; $(rm canary) `rm canary` ' \" \n"
    await call(central, root, "create_text_file", relative_path=f"{name}.txt", content=text)
    assert (root / "canary").read_text() == "alive"
    assert (root / "got").read_text() == f"{root}/{name}.txt"
    assert json.loads((root / "arguments").read_text())["content"] == text
    assert (root / "after").exists()


async def test_a_nul_and_a_text_too_long_for_a_variable_are_in_the_input(central: Application, root: Path) -> None:
    hooks(root, PreToolUse=[command("Write", 'cat > input; printf "%s" "${TOOL_ARGS-none}" > arguments')])
    await call(central, root, "create_text_file", relative_path="big.txt", content="x" * 300_000)
    assert (root / "arguments").read_text() == "none"
    assert len(json.loads((root / "input").read_text())["tool_input"]["content"]) == 300_000
    with pytest.raises(SerenaCentralError, match="NUL"):
        await call(central, root, "create_text_file", relative_path="nul.txt", content="a\0b")


@pytest.mark.parametrize(
    ("line", "more", "remedy"),
    [
        ("no-such-program --fix", {}, "not found"),
        ("./.claude/hooks/missing.sh", {}, "Create it"),
        ("./.claude/hooks/plain.sh", {}, "chmod +x"),
        (
            "./.claude/hooks/lost.sh",
            {},
            "Its interpreter '/no/such/shell' is missing. Install it, or correct the first line",
        ),
        ("./.claude/hooks/lost.sh", {"args": ["x"]}, "Its interpreter '/no/such/shell' is missing"),
        ("./.claude/hooks/env.sh", {}, "Its interpreter 'no-such-program' is missing"),
        ("./.claude/hooks/dos.sh", {}, "with LF alone"),
        ("sleep 60", {"timeout": 0.2}, "raise its timeout"),
        ("kill -SEGV $$", {}, "killed by signal 11"),
        ("kill -KILL $$", {}, "killed by signal 9"),
        ("no-such-program", {"args": ["--fix"]}, "Install the program"),
    ],
)
async def test_a_hook_that_cannot_run_blocks_before_a_tool_and_is_noted_after_it(
    central: Application, root: Path, line: str, more: dict[str, Any], remedy: str
) -> None:
    """REQ-HOOKS-007, REL-003"""
    (root / ".claude/hooks").mkdir(parents=True)
    (root / ".claude/hooks/plain.sh").write_text("#!/bin/sh\nexit 0\n")
    firsts = {"lost": "#!/no/such/shell -e\n", "env": "#!/usr/bin/env -S A=1 no-such-program\n", "dos": "#!/bin/sh\r\n"}
    for name, first in firsts.items():
        script = root / f".claude/hooks/{name}.sh"
        script.write_bytes(first.encode())
        script.chmod(0o755)
    hooks(root, PreToolUse=[command("Write", line, **more)])
    with pytest.raises(HookBlocked, match="could not run") as blocked:
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert remedy in str(blocked.value)
    assert not (root / "a.txt").exists()
    hooks(root, PostToolUse=[command("Write", line, **more)])
    said = await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert remedy in said
    assert (root / "a.txt").read_text() == "a"


async def test_output_without_end_is_read_and_bounded(central: Application, root: Path) -> None:
    flood = "head -c 100000000 /dev/zero | tr '\\0' x"
    hooks(root, PreToolUse=[command("Write", flood, f"{flood} >&2; exit 2")])
    with pytest.raises(HookBlocked) as blocked:
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert len(str(blocked.value)) < 10_000


async def test_a_decision_that_was_cut_off_lets_nothing_pass(central: Application, root: Path) -> None:
    denial = {"reason": "x" * 300_000, "decision": "block"}
    (root / "denial.json").write_text(json.dumps(denial))
    hooks(root, PreToolUse=[command("Write", "cat denial.json")])
    with pytest.raises(HookBlocked, match="its output has more than 256 KB"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert not (root / "a.txt").exists()


async def test_a_decision_behind_much_output_lets_nothing_pass(central: Application, root: Path) -> None:
    noise = "head -c 300000 /dev/zero | tr '\\0' x"
    hooks(root, PreToolUse=[command("Write", f'{noise}; echo; echo \'{{"decision": "block"}}\'; {noise}')])
    with pytest.raises(HookBlocked, match="its output has more than 256 KB"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert not (root / "a.txt").exists()


async def test_no_more_than_some_hooks_run_in_the_background_at_once(central: Application, root: Path) -> None:
    waiting = "echo x >> started; until [ -f go ]; do sleep 0.05; done; echo x >> ended"
    hooks(root, PostToolUse=[command("Bash", waiting, **{"async": True})])
    for _ in range(MOST_AT_ONCE + 2):
        await shell(central, root, "true")
    with anyio.fail_after(60):
        while not (root / "started").exists() or (root / "started").read_text().count("x") < MOST_AT_ONCE:
            await anyio.sleep(0.02)
    await shell(central, root, "sleep 0.5")
    assert (root / "started").read_text().count("x") == MOST_AT_ONCE
    (root / "go").touch()
    with anyio.fail_after(60):
        while not (root / "ended").exists() or (root / "ended").read_text().count("x") < MOST_AT_ONCE + 3:
            await anyio.sleep(0.02)


async def test_hooks_run_in_the_order_of_their_files_and_the_first_that_blocks_is_the_last(
    central: Application, root: Path
) -> None:
    """REQ-HOOKS-002"""
    lines = ["echo 1 >> order", "echo 2 >> order; exit 2", "echo 3 >> order"]
    hooks(root, PreToolUse=[command("Write", *lines)])
    with pytest.raises(HookBlocked):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert (root / "order").read_text() == "1\n2\n"
    logged = [json.loads(line) for line in (root / ".claude/logs/validation.log").read_text().splitlines()]
    assert [(line["outcome"], line["exit_code"]) for line in logged] == [("passed", 0), ("blocked", 2)]
    assert logged[0]["hook"].startswith(f"{root}/.claude/settings.json:1:")


async def test_a_stage_that_failed_after_an_edit_stops_the_stages_before_a_commit(
    central: Application, root: Path
) -> None:
    """REQ-HOOKS-008"""
    syntax = 'python3 -m py_compile "$FILE_PATH" 2>/dev/null || { echo wrong syntax >&2; exit 2; }'
    hooks(
        root,
        PostToolUse=[command("Edit|Write", syntax, "echo lint >> order")],
        PreToolUse=[command("Bash(git commit:*)", "echo tests >> order", "echo scan >> order")],
    )
    said = await call(central, root, "create_text_file", relative_path="new.py", content="def f(:\n")
    assert "wrong syntax" in said
    with pytest.raises(HookBlocked, match="wrong syntax"):
        await shell(central, root, "git commit -m x")
    assert not (root / "order").exists()
    await call(central, root, "create_text_file", relative_path="new.py", content="def f(): ...\n")
    await shell(central, root, "git commit -m x")
    assert (root / "order").read_text() == "lint\ntests\nscan\n"


def says(**output: Any) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', **output}})}'"


def prints(output: str) -> str:
    return f"printf '%s' {shlex.quote(output)}"


@pytest.mark.parametrize(
    "output",
    [
        '{"hookSpecificOutput": {"permissionDecision": "deny",}}',
        "{'permissionDecision': 'deny'}",  # Python
        "{ hookSpecificOutput: { permissionDecision: 'deny' } }",  # Node
        "{'checked': 3}\n{'decision': 'block'}",
        '{"continue": "false"}',
        '{"hookSpecificOutput": "deny"}',
        '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": "true"}}',
        "{'line': 1}\n" * 120 + '{"decision": "block"}',
    ],
)
async def test_a_decision_that_cannot_be_read_is_no_leave_to_go_on(
    central: Application, root: Path, output: str
) -> None:
    hooks(root, PreToolUse=[command("Bash", prints(output))])
    with pytest.raises(HookBlocked, match="what it decides is unknown"):
        await shell(central, root, "true")


@pytest.mark.parametrize(
    "output",
    [
        'checking …\n{"permissionDecision": "deny", "reason": "not today"}\ndone',
        '{"checked": 3, "reason": "size"}\n{"decision": "block", "reason": "not today"}',
        '\ufeff{"decision": "block", "reason": "not today"}',
        '{"line": 1}\n' * 120 + '{"decision": "block", "reason": "not today"}',
        '{"decision": "approve"}\n{"decision": "block", "reason": "not today"}\n{"decision": "approve"}',
        'checking 9 %\rchecking 99 %\r{"decision": "block", "reason": "not today"}',
    ],
)
async def test_a_decision_counts_among_other_output(central: Application, root: Path, output: str) -> None:
    hooks(root, PreToolUse=[command("Bash", prints(output))])
    with pytest.raises(HookBlocked, match="says: 'not today'"):
        await shell(central, root, "true")


@pytest.mark.parametrize(
    "output",
    [
        "{'checked': 3}, to be continue: d",
        "rules.py:2 |     'decision': 1,",
        'RULES = {\n    "decision": "deny",\n}',
        'checking …\n{"continue": true, "suppressOutput": true}',
        '{"continue": null}',
    ],
)
async def test_output_that_decides_nothing_lets_a_tool_run(central: Application, root: Path, output: str) -> None:
    hooks(root, PreToolUse=[command("Bash", prints(output))])
    await shell(central, root, "true")


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
def test_notes_for_the_model_decide_nothing(event: str) -> None:
    notes = 'Decided so far:\n{"decision": "accepted"}'
    assert decision_of(notes, event) == Decision(context=notes)


def test_a_decision_at_a_stop_that_cannot_be_read_keeps_nobody_from_stopping() -> None:
    decision = decision_of("{'continue': False}", "Stop")
    assert (decision.permission, decision.stop) == ("", False)
    assert "what it decides is unknown" in decision.context


@pytest.mark.parametrize(
    ("decision", "said"),
    [("Deny", "no reason"), ("refuse", "none of allow"), (True, "none of allow"), (False, "none of allow")],
)
async def test_a_decision_that_is_none_stops_the_tool(
    central: Application, root: Path, decision: object, said: str
) -> None:
    """Whoever wrote it wanted to decide, and to go on would be to decide otherwise."""
    hooks(root, PreToolUse=[command("Write", says(permissionDecision=decision))])
    with pytest.raises(HookBlocked, match=said):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")


@pytest.mark.parametrize("decision", ["Allow", "defer", "", None])
async def test_a_decision_to_go_on_does(central: Application, root: Path, decision: object) -> None:
    hooks(root, PreToolUse=[command("Write", says(permissionDecision=decision))])
    await call(central, root, "create_text_file", relative_path="a.txt", content="a")


async def test_json_decides_changes_the_input_and_adds_context(central: Application, root: Path) -> None:
    hooks(root, PreToolUse=[command("Write", says(permissionDecision="deny", permissionDecisionReason="not today"))])
    with pytest.raises(HookBlocked, match="not today"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    hooks(root, PreToolUse=[command("Write", says(permissionDecision="ask", permissionDecisionReason="large"))])
    with pytest.raises(HookBlocked, match="consent"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    hooks(root, PreToolUse=[command("Write", says(updatedInput={"content": "b"}, additionalContext="mind the gap"))])
    assert "mind the gap" in await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert (root / "a.txt").read_text() == "b"
    hooks(root, PreToolUse=[command("Write", says(updatedInput={"no_such": 1}))])
    with pytest.raises(HookBlocked, match="no_such"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="c")
    hooks(root, PreToolUse=[command("Write", 'echo \'{"continue": false, "stopReason": "enough"}\'')])
    with pytest.raises(SessionHalted, match="enough"):
        await call(central, root, "create_text_file", relative_path="a.txt", content="c")


async def test_a_rule_about_paths_holds_for_every_file_of_an_edit(central: Application, root: Path) -> None:
    (root / "shop.py").write_text("from cart import Cart\n\n\ndef buy() -> int:\n    return Cart().total()\n")
    hooks(
        root,
        PreToolUse=[command("Edit(shop.py)", 'echo "$FILE_PATH" >> seen-before; exit 2')],
        PostToolUse=[command("Edit", 'echo "$FILE_PATH" >> seen-after')],
    )
    renaming = {"name_path": "Cart/total", "relative_path": "cart.py", "new_name": "sum"}
    with pytest.raises(HookBlocked):
        await call(central, root, "rename_symbol", **renaming)
    assert (root / "seen-before").read_text() == f"{root}/shop.py\n"
    assert "total" in (root / "cart.py").read_text()
    hooks(root, PostToolUse=[command("Edit", 'echo "$FILE_PATH" >> seen-after')])
    await call(central, root, "rename_symbol", **renaming)
    assert sorted((root / "seen-after").read_text().split()) == [f"{root}/cart.py", f"{root}/shop.py"]


async def test_conditions_say_for_which_uses_a_hook_runs(central: Application, root: Path) -> None:
    hooks(
        root,
        PreToolUse=[
            {
                "matcher": "Bash|Write",
                "hooks": [
                    {"type": "command", "command": "echo rm >> seen", "if": "Bash(rm:*)"},
                    {"type": "command", "command": "echo src >> seen", "if": "path(src/**)"},
                ],
            }
        ],
    )
    await shell(central, root, "ls")
    await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    assert not (root / "seen").exists()
    await shell(central, root, "ls; rm -f x")
    await call(central, root, "create_text_file", relative_path="src/a.txt", content="a")
    assert (root / "seen").read_text() == "rm\nsrc\n"


async def test_hooks_of_a_repository_that_nobody_trusts_never_run(tmp_path: Path, root: Path) -> None:
    hooks(root, PreToolUse=[command("", "touch ran")], PostToolUse=[command("", "touch ran")])
    async with running_parts(tmp_path, {**SHELL, "trusted_roots": []}) as central:
        await call(central, root, "create_text_file", relative_path="a.txt", content="a")
        assert not (root / "ran").exists()
        standing = central.trust.standing(root)
        central.trust.approve(root, standing.digest, by="me")
        await call(central, root, "create_text_file", relative_path="a.txt", content="b")
        assert (root / "ran").exists()
        (root / "ran").unlink()
        hooks(root, PreToolUse=[command("", "touch ran; true")])
        await call(central, root, "create_text_file", relative_path="a.txt", content="c")
        assert not (root / "ran").exists()
