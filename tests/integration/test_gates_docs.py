"""The examples of docs/gates.md do what the page says; and the commands about hooks."""

import json
import re
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.claude_config.reading import read_text
from serena_central.claude_config.tiers import Tier, TierFile
from serena_central.core.errors import HookBlocked
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs/gates.md").read_text()
EXAMPLES = dict(re.findall(r"```json ([a-z-]+)\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".claude").mkdir(parents=True)
    (root / "cart.py").write_text("def total() -> int:\n    return 0\n")
    (root / "shop.py").write_text("from cart import total\n\n\ndef buy() -> int:\n    return total() + total()\n")
    (root / "test_cart.py").write_text("import unittest\n")
    (root / ".gitignore").write_text(".claude/\n__pycache__/\n")
    for words in ("init -q", "config user.email a@example.org", "config user.name A", "add ."):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    settings = {"execute_shell": True, "included_optional_tools": ["execute_shell_command"]}
    async with running_parts(tmp_path, settings) as central:
        yield central


def use(root: Path, example: str) -> None:
    (root / ".claude/settings.json").write_text(EXAMPLES[example])


async def call(central: Application, root: Path, tool: str, **arguments: Any) -> str:
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return "\n".join(answer.blocks)


async def run(central: Application, root: Path, line: str) -> str:
    return await call(central, root, "execute_shell_command", command=line)


async def write(central: Application, root: Path, name: str, text: str) -> str:
    return await call(central, root, "create_text_file", relative_path=name, content=text)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_has_no_problems(example: str, tmp_path: Path) -> None:
    file = TierFile(Tier.PROJECT, tmp_path / "settings.json", tmp_path)
    assert read_text(file, EXAMPLES[example], {}).problems == ()


async def test_the_commit_gate(central: Application, root: Path) -> None:
    use(root, "commit-gate")
    with pytest.raises(HookBlocked):
        await run(central, root, "git commit -qam x")
    await run(central, root, "python3 -m unittest -q test_cart || true")
    with pytest.raises(HookBlocked):
        await run(central, root, "git commit -qam x")
    await run(central, root, "python3 -m unittest -h > /dev/null")
    await run(central, root, "git commit -qam x")


async def test_the_formatter(central: Application, root: Path) -> None:
    use(root, "formatter")
    await write(central, root, "a.txt", "text  \nmore\t\n")
    assert (root / "a.txt").read_text() == "text\nmore\n"


async def test_the_secret_scan(central: Application, root: Path) -> None:
    use(root, "secret-scan")
    with pytest.raises(HookBlocked, match="AWS key"):
        await write(central, root, "a.txt", "AKIA" + "A" * 16)
    assert not (root / "a.txt").exists()
    await write(central, root, "a.txt", "none")


async def test_the_symbol_gate(central: Application, root: Path) -> None:
    use(root, "symbol-gate")
    body = "def {}() -> int:\n    return 1"
    with pytest.raises(HookBlocked, match="maintainers"):
        await call(
            central, root, "replace_symbol_body", name_path="total", relative_path="cart.py", body=body.format("total")
        )
    await call(central, root, "replace_symbol_body", name_path="buy", relative_path="shop.py", body=body.format("buy"))


async def test_the_pipeline(central: Application, root: Path) -> None:
    """REQ-HOOKS-008: four stages, and validation.log."""
    use(root, "pipeline")
    assert "print(" in await write(central, root, "cart.py", "def total() -> int:\n    print(1)\n    return 0\n")
    with pytest.raises(HookBlocked, match="an earlier stage"):
        await run(central, root, "git commit -qam x")
    log = (root / ".claude/logs/validation.log").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in log] == ["passed", "blocked"]
    await write(central, root, "cart.py", "def total() -> int:\n    return 0\n")
    test = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self) -> None:\n        pass\n"
    await write(central, root, "test_cart.py", test)
    await run(central, root, "git commit -qam x")
    assert json.loads((root / ".claude/logs/validation.log").read_text().splitlines()[-1])["outcome"] == "passed"
