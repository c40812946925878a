"""`serena-central hooks` as people run it, beside a real server: list, check, test, log, replay."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from serena_central.cli.hooks import command
from tests.support.child import Child, Ended, run_command, serving_child

pytestmark = pytest.mark.anyio

SHELL = {"SERENA_CENTRAL_EXECUTE_SHELL": "true", "SERENA_CENTRAL_INCLUDED_OPTIONAL_TOOLS": "execute_shell_command"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hooks")


@pytest.fixture(scope="module")
def root(folder: Path) -> Path:
    root = folder / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("def total() -> int:\n    return 0\n")
    (root / "shop.py").write_text("from cart import total\n\n\ndef buy() -> int:\n    return total()\n")
    return root


@pytest.fixture(scope="module")
async def child(folder: Path, root: Path) -> AsyncGenerator[Child]:
    async with serving_child(folder, SERENA_CENTRAL_TRUSTED_ROOTS=str(root), **SHELL) as child:
        yield child


def hooks(root: Path, *lines: str, matcher: str = "Write", **more: Any) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": line, **more} for line in lines]}
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))


async def asked(folder: Path, root: Path, *words: str) -> Ended:
    return await run_command(folder, "hooks", *words, cwd=root, SERENA_CENTRAL_TRUSTED_ROOTS=str(root))


async def test_list_check_and_test_say_what_runs_and_what_is_wrong(folder: Path, root: Path) -> None:
    hooks(root, "./missing.sh", "echo $TOOL_NAME is stopped >&2; exit 2")
    listed = (await asked(folder, root, "list", "--json")).json
    assert [(one["runs"], one["matcher"]) for one in listed["hooks"]] == [
        ("./missing.sh", "Write"),
        ("echo $TOOL_NAME is stopped >&2; exit 2", "Write"),
    ]
    checked = await asked(folder, root, "check")
    assert checked.code == 2
    assert "there is no file" in checked.out
    tried = await asked(folder, root, "test", "PreToolUse", "--tool", "create_text_file", "--json")
    assert [one["outcome"] for one in tried.json["runs"]] == ["could-not-run"]
    hooks(root, "echo $TOOL_NAME is stopped >&2; exit 2")
    tried = await asked(folder, root, "test", "PreToolUse", "--tool", "create_text_file")
    assert "create_text_file is stopped" in tried.out
    logged = (await asked(folder, root, "log", "--json", "--limit", "1")).json
    assert [one["exit_code"] for one in logged] == [2]


async def test_hooks_that_are_held_back_are_listed_with_the_reason(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    (root / ".git").mkdir(parents=True)
    hooks(root, "./lost.sh", "echo x")
    listed = await run_command(folder, "hooks", "list", cwd=root)
    assert (listed.out.count("not trusted"), listed.out.count("Write")) == (2, 2)
    assert "2 hooks of the repository" in listed.out
    found = (await run_command(folder, "hooks", "list", "--json", cwd=root)).json
    assert [(one["runs"], one["active"], one["held_back"]) for one in found["hooks"]] == [
        ("./lost.sh", False, "not trusted"),
        ("echo x", False, "not trusted"),
    ]
    assert found["held_back"] == 2
    assert (await run_command(folder, "trust", "--yes", cwd=root)).code == 0
    listed = await run_command(folder, "hooks", "list", cwd=root)
    assert "held back" not in listed.out.lower()
    hooks(root, "./lost.sh", "echo y")
    listed = await run_command(folder, "hooks", "list", cwd=root)
    assert listed.out.count("changed since it was trusted") == 2
    (root / "lost.sh").write_text("#!/no/such/shell\n")
    (root / "lost.sh").chmod(0o755)
    assert (await run_command(folder, "trust", "--yes", cwd=root)).code == 0
    checked = await run_command(folder, "hooks", "check", cwd=root)
    assert checked.code == 2
    assert "Its interpreter '/no/such/shell' is missing" in checked.out


@pytest.mark.parametrize(
    "words",
    [
        ("test", "Sometimes"),
        ("test", "PreToolUse", "--input", "{"),
        ("test", "PreToolUse", "--input", "[]"),
        ("log", "--limit", "0"),
        ("replay", "Bash(git"),
        ("replay", "(["),
        ("replay", "Bash(x)", "--since", "yesterday"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    ended = CliRunner().invoke(command, [*words, "--project", str(tmp_path)])
    assert ended.exit_code == 2, ended.output
    assert ended.exception is None or isinstance(ended.exception, SystemExit)


async def test_a_replay_shows_which_calls_a_rule_would_have_stopped(child: Child, folder: Path, root: Path) -> None:
    project = str(root)
    (root / ".claude/settings.json").write_text("{}")
    for line in ("echo git push", "true && git -C . push", f"echo {'x' * 400}; git push"):
        await child.call("execute_shell_command", {"project": project, "command": line})
    rename = {"project": project, "name_path": "total", "relative_path": "cart.py", "new_name": "sum_up"}
    await child.call("rename_symbol", rename)
    ended = await asked(folder, root, "replay", "Bash(git push:*)", "--json")
    assert [one["arguments"]["command"] for one in ended.json["stopped"]] == ["true && git -C . push"]
    assert [one["arguments"]["command"][:9] for one in ended.json["unsure"]] == ["echo xxxx"]
    assert ended.json["looked_at"] == 4
    shown = await asked(folder, root, "replay", "Edit(shop.py)", "--since", "1d")
    assert "rename_symbol" in shown.out
    assert "1 of 4 recorded calls would have been stopped" in shown.out
