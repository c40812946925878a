"""Files whose names are not UTF-8: noted where they are left out, shown, and read by the form they are shown in."""

import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import PathError
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

CAFE = os.fsdecode(b"caf\xe9.py")
LEFT_OUT = "Skipped: 1 entry whose names are not UTF-8 ('caf\\xe9.py')"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "plain.py").write_text("def total() -> int:\n    return 0\n")
    (root / CAFE).write_text("def total() -> int:\n    return 1\n")
    return root


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    settings = {"included_optional_tools": ["replace_in_files", "delete_lines"]}
    async with running_parts(tmp_path, settings) as running:
        yield running


async def ask(central: Application, root: Path, tool: str, **arguments: Any) -> tuple[str, str]:
    """The answer and its notes."""
    answer = await central.caller.call(session_of(central), tool, {"project": str(root), **arguments})
    return answer.blocks[0], "\n".join(answer.blocks[1:])


async def test_every_answer_that_lacks_them_says_so_as_long_as_they_are_there(central: Application, root: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find_file", {"file_mask": "*.py"}),
        ("search_for_pattern", {"substring_pattern": "total"}),
        ("find_symbol", {"name_path_pattern": "total"}),
        ("get_symbols_overview", {"relative_path": "."}),
        ("find_all_symbols", {}),
        ("replace_in_files", {"needle": "total", "repl": "sum", "mode": "literal", "dry_run": True}),
    ]
    for tool, arguments in calls:
        answer, notes = await ask(central, root, tool, **arguments)
        assert "plain.py" in answer
        assert LEFT_OUT in notes, (tool, notes)
    (root / CAFE).unlink()
    assert (await ask(central, root, *calls[0][:1], **calls[0][1]))[1] == ""
    (root / os.fsdecode(b"d\xff")).mkdir()
    (root / os.fsdecode(b"d\xff") / "x.py").touch()
    (root / "deep").mkdir()
    (root / "deep" / CAFE).touch()
    assert "Skipped: 2 entries" in (await ask(central, root, "find_file", file_mask="*"))[1]
    (root / ".gitignore").write_text("deep/\n")
    assert "Skipped: 1 entry" in (await ask(central, root, "find_file", file_mask="*"))[1]


async def test_they_are_shown_and_read_in_the_form_that_is_shown(central: Application, root: Path) -> None:
    listed, _ = await ask(central, root, "list_dir", relative_path=".")
    assert json.loads(listed)["files"] == ["caf\\xe9.py", "plain.py"]
    read, _ = await ask(central, root, "read_file", relative_path="caf\\xe9.py")
    assert read == "def total() -> int:\n    return 1\n"
    found, _ = await ask(central, root, "search_for_pattern", substring_pattern="total", skip_ignored_files=False)
    assert set(json.loads(found)) == {"caf\\xe9.py", "plain.py"}
    (root / "caf\\xe9.py").write_text("a backslash\n")
    read, _ = await ask(central, root, "read_file", relative_path="caf\\xe9.py")
    assert read == "a backslash\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_symbols_overview", {}),
        ("replace_content", {"needle": "1", "repl": "2", "mode": "literal"}),
        ("create_text_file", {"content": "x = 1\n"}),
        ("delete_lines", {"start_line": 0, "end_line": 0}),
        ("find_symbol", {"name_path_pattern": "total"}),
    ],
)
async def test_what_can_not_be_done_with_them_is_refused(
    central: Application, root: Path, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(PathError, match="not UTF-8"):
        await ask(central, root, tool, relative_path="caf\\xe9.py", **arguments)
    assert (root / CAFE).read_text() == "def total() -> int:\n    return 1\n"
