"""Checks and conditions that only this server can decide, in front of a real commit, on a real language server."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import HookBlocked
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

FILES = {
    "cart.py": "class Cart:\n    def total(self) -> int:\n        return 0\n\n\ndef _inner() -> int:\n    return 1\n",
    "shop.py": "from cart import Cart\n\n\ndef buy() -> int:\n    return Cart().total()\n\n\nprint(buy())\n",
    "old.py": "import cart\n\nprint(missing_already)\n",
    ".gitignore": ".claude/\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    for words in ("init -q", "config user.email a@example.org", "config user.name A", "add ."):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    settings = {"execute_shell": True, "included_optional_tools": ["execute_shell_command"]}
    async with running_parts(tmp_path, settings) as central:
        yield central


def gate(root: Path, *checks: dict[str, Any]) -> None:
    group = {"matcher": "Bash(git commit:*)", "hooks": [{"type": "check", **check} for check in checks]}
    write(root, group)


def write(root: Path, group: dict[str, Any]) -> None:
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))


async def call(central: Application, root: Path, tool: str, session: str = "s", **arguments: Any) -> str:
    asked = {"project": str(root), **arguments}
    answer = await central.caller.call(session_of(central, explicit_id=session), tool, asked)
    return "\n".join(answer.blocks)


async def commit(central: Application, root: Path) -> str:
    return await call(central, root, "execute_shell_command", command="git commit -qm x --allow-empty -a")


async def write_cart(central: Application, root: Path, text: str) -> None:
    await call(central, root, "create_text_file", relative_path="cart.py", content=text)


@pytest.mark.parametrize("check", ["no-new-errors", "no-broken-references"])
async def test_a_commit_is_stopped_by_what_the_session_broke_and_by_nothing_older(
    central: Application, root: Path, check: str
) -> None:
    gate(root, {"check": check})
    await write_cart(central, root, FILES["cart.py"].replace("total", "sum"))
    with pytest.raises(HookBlocked, match=r"shop\.py:4") as blocked:
        await commit(central, root)
    assert "missing_already" not in str(blocked.value)
    await write_cart(central, root, FILES["cart.py"])
    await commit(central, root)


async def test_a_commit_is_stopped_by_symbols_that_nothing_uses_any_more(central: Application, root: Path) -> None:
    gate(root, {"check": "no-unused-symbols"})
    await write_cart(central, root, FILES["cart.py"] + "\n\ndef _forgotten() -> int:\n    return 2\n")
    with pytest.raises(HookBlocked, match="_forgotten") as blocked:
        await commit(central, root)
    assert "_inner" not in str(blocked.value)
    await write_cart(central, root, FILES["cart.py"])
    await commit(central, root)


async def test_a_commit_waits_for_tests_after_the_last_change(central: Application, root: Path) -> None:
    gate(root, {"check": "tests-fresh", "command": "python3 -c:*"})
    with pytest.raises(HookBlocked, match="no run of"):
        await commit(central, root)
    for line in (
        "python3 -c 'exit(1)'",
        "python3 -c 'exit(1)' || true",
        "python3 -c 'exit(1)'; true",
        "echo python3 -c",
        "command -v python3 -c",
        "! python3 -c 'exit(1)'",
        "trap 'python3 -c 1' EXIT",
        "alias python=python3 && env --help python3 -c",
        "python3 -c 'exit(0)' --version",
    ):
        await call(central, root, "execute_shell_command", command=line)
        with pytest.raises(HookBlocked, match="no run of"):
            await commit(central, root)
    await call(central, root, "execute_shell_command", command="cd . && python3 -c 'exit(0)'")
    await commit(central, root)
    (root / "shop.py").write_text(FILES["shop.py"] + "\n")
    with pytest.raises(HookBlocked, match=r"shop\.py changed since"):
        await commit(central, root)


async def test_what_changes_while_tests_run_is_not_tested(central: Application, root: Path, tmp_path: Path) -> None:
    gate(root, {"check": "tests-fresh", "command": "cat:*"})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(call, central, root, "execute_shell_command", command=f"cat {pipe}"))
        async with await anyio.open_file(pipe, "w"):  # the command runs until this is closed
            await write_cart(central, root, FILES["cart.py"] + "\n")
    with pytest.raises(HookBlocked, match=r"cart\.py changed since"):
        await commit(central, root)
    await call(central, root, "execute_shell_command", command="cat cart.py")
    await commit(central, root)


async def test_a_condition_looks_at_the_symbol_that_an_edit_names(central: Application, root: Path) -> None:
    hook = {"type": "command", "command": "exit 2", "if": "symbol(public, references > 0)"}
    write(root, {"matcher": "Edit", "hooks": [hook]})
    body = "def _inner() -> int:\n    return 2"
    await call(central, root, "replace_symbol_body", name_path="_inner", relative_path="cart.py", body=body)
    with pytest.raises(HookBlocked):
        await call(
            central,
            root,
            "replace_symbol_body",
            name_path="Cart/total",
            relative_path="cart.py",
            body="def total(self) -> int:\n    return 2",
        )


async def test_a_condition_looks_at_who_has_edited_a_file(central: Application, root: Path) -> None:
    write(
        root, {"matcher": "Write", "hooks": [{"type": "command", "command": "exit 2", "if": "edited-by-other-session"}]}
    )
    await write_cart(central, root, FILES["cart.py"] + "\n")
    await write_cart(central, root, FILES["cart.py"])
    with pytest.raises(HookBlocked):
        await call(central, root, "create_text_file", "other", relative_path="cart.py", content="")
    await call(central, root, "create_text_file", "other", relative_path="new.py", content="")


async def test_so_it_does_where_a_file_was_edited_through_a_project_inside(central: Application, root: Path) -> None:
    write(
        root, {"matcher": "Write", "hooks": [{"type": "command", "command": "exit 2", "if": "edited-by-other-session"}]}
    )
    (root / "inner").mkdir()
    await call(central, root / "inner", "create_text_file", relative_path="new.py", content="x = 1\n")
    with pytest.raises(HookBlocked):
        await call(central, root, "create_text_file", "other", relative_path="inner/new.py", content="")
