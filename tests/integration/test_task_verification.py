"""What a task's result carries of its work, seen by the server with a real language server."""

import json
from pathlib import Path
from typing import Any

import pytest

from serena_central.gates import log
from tests.support.central import running_central
from tests.support.tasks import over, scripted, start

pytestmark = pytest.mark.anyio

FILES = {
    "cart.py": "def total() -> int:\n    return 0\n\n\ndef tax() -> int:\n    return missing_rate\n",
    "shop.py": "from cart import total\n\n\ndef buy() -> int:\n    return total()\n",
    "old.py": "print(missing_already)\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


def edit(symbol: str, body: str) -> dict[str, Any]:
    return {
        "call": "replace_symbol_body",
        "arguments": {"name_path": symbol, "relative_path": "cart.py", "body": body},
    }


def places(errors: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(one["path"], one["line"]) for one in errors]


async def test_a_result_has_new_and_fixed_errors_and_broken_references(tmp_path: Path, root: Path) -> None:
    steps = [
        edit("tax", "def tax() -> int:\n    return 2"),
        edit("total", "def whole() -> int:\n    return 0"),
        {"text": "All references are intact."},
    ]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        found = await over(http, (await start(http, "x", root))["id"])
        assert (found["state"], found["text"]) == ("done", "All references are intact."), found["error"]
        seen = found["verified"]
        assert places(seen["new_errors"]) == [("shop.py", 0)]
        assert places(seen["broken_references"]) == [("shop.py", 0)]
        assert places(seen["fixed_errors"]) == [("cart.py", 5)]
        assert "missing_rate" in seen["fixed_errors"][0]["message"]
        assert (seen["undated"], seen["tests"], seen.get("notes")) == ([], [], None)


async def test_the_log_of_hooks_is_no_change_of_somebody_else(tmp_path: Path, root: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": "echo >&2 seen"}]}
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"SessionStart": [hook]}}))
    steps = [{"call": "list_dir", "arguments": {"relative_path": "."}}, {"text": "done"}]
    settings = {**scripted(tmp_path, {"": steps}), "trust": "always"}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        found = await over(http, (await start(http, "x", root))["id"])
        assert (root / log.FOLDER_OF_LOGS / log.NAME).exists()
        assert found["verified"]["changed_otherwise"] == []


async def test_errors_that_an_edit_repaired_again_are_not_new(tmp_path: Path, root: Path) -> None:
    steps = [
        edit("total", "def whole() -> int:\n    return 0"),
        edit("whole", "def total() -> int:\n    return 5"),
    ]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        seen = (await over(http, (await start(http, "x", root))["id"]))["verified"]
        assert (seen["new_errors"], seen["fixed_errors"], seen["undated"]) == ([], [], [])


async def test_errors_in_files_that_the_runner_changed_itself_stand_apart(tmp_path: Path, root: Path) -> None:
    write = "open('old.py','a').write('print(unheard)\\n'); open('new.py','w').write('print(neither)\\n')"
    steps = [{"run": ["python3", "-c", write]}]
    async with running_central(tmp_path, scripted(tmp_path, {"": steps})) as running, running.http() as http:
        seen = (await over(http, (await start(http, "x", root))["id"]))["verified"]
        assert seen["changed_otherwise"] == ["new.py", "old.py"]
        assert places(seen["undated"]) == [("old.py", 0), ("old.py", 1)]
        assert places(seen["new_errors"]) == [("new.py", 0)]


async def test_runs_of_tests_are_listed_with_their_exit_codes(tmp_path: Path, root: Path) -> None:
    (root / "Makefile").write_text("test:\n\t@exit 3\ncheck:\n\t@true\n")
    steps = [
        {"call": "execute_shell_command", "arguments": {"command": "make -s test"}},
        {"call": "execute_shell_command", "arguments": {"command": "echo make test"}},
        {"call": "execute_shell_command", "arguments": {"command": "command -v make test"}},
        {"call": "execute_shell_command", "arguments": {"command": "! make -s test"}},
        {"run": ["make", "-s", "check"]},
    ]
    settings = scripted(tmp_path, {"": steps}) | {
        "execute_shell": True,
        "included_optional_tools": ["execute_shell_command"],
    }
    async with running_central(tmp_path, settings) as running, running.http() as http:
        seen = (await over(http, (await start(http, "x", root))["id"]))["verified"]
        assert seen["tests"] == [
            {"command": "make -s test", "exit_code": 2},
            {"command": "! make -s test", "exit_code": None},
            {"command": "make -s check", "exit_code": 0},
        ]
