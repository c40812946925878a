"""Every tool on a project that is wide in every way: no answer or error is longer than the default of 30,000 bytes."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import Application
from serena_central.core.errors import SerenaCentralError
from serena_central.tools import tool_run
from serena_central.tools.answer import Fitted, fit
from serena_central.tools.families import CATALOGUE
from serena_central.tools.symbol_answers import VIEWS_PER_SESSION
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

LIMIT = 30_000

FILES = 240
USERS = 400
PROJECTS = 400
LONG = "a_name_that_is_longer_than_anybody_would_like_to_read_it"

EDITS: dict[str, list[dict[str, Any]]] = {
    "replace_symbol_body": [{"name_path": "same", "body": "def same():\n    pass"}],
    "insert_after_symbol": [{"name_path": "same", "body": "def other():\n    pass"}],
    "insert_before_symbol": [{"name_path": "same", "body": "def other():\n    pass"}],
    "rename_symbol": [{"name_path": "shared", "new_name": "common", "dry_run": True}],
    "safe_delete_symbol": [{"name_path": "shared"}, {"name_path": "same"}],
    "replace_content": [{"relative_path": "many.py", "needle": "shared", "repl": "common", "mode": "literal"}],
    "replace_in_files": [{"needle": "return", "repl": "yield", "mode": "literal", "dry_run": True}],
    "create_text_file": [{"relative_path": "long.txt", "content": "x\n" * 40_000, "dry_run": True}],
    "delete_lines": [{"relative_path": "many.py", "start_line": 0, "end_line": 1500, "dry_run": True}],
    "replace_lines": [
        {"relative_path": "many.py", "start_line": 0, "end_line": 1500, "content": "x = 1\n" * 9000, "dry_run": True}
    ],
    "insert_at_line": [{"relative_path": "many.py", "line": 0, "content": "x = 1\n" * 9000, "dry_run": True}],
    "write_memory": [{"memory_name": "long", "content": "A line.\n" * 10_000}],
    "edit_memory": [{"memory_name": "long", "needle": "A line.", "repl": "One line.", "mode": "literal"}],
    "rename_memory": [{"old_name": "long", "new_name": "longer"}, {"old_name": "missing", "new_name": "one"}],
    "delete_memory": [{"memory_name": "missing"}],
}

ASKED: dict[str, list[dict[str, Any]]] = {
    "get_symbols_overview": [{"relative_path": "."}, {"relative_path": "many.py"}],
    "find_symbol": [
        {"name_path_pattern": "same"},
        {"name_path_pattern": "s", "substring_matching": True, "include_body": True},
        {"name_path_pattern": "same", "max_matches": 1},
        {"name_path_pattern": "sane"},
    ],
    "find_implementations": [{"name_path": "Base"}],
    "find_declaration": [
        {"relative_path": "many.py", "regex": r"(shared)"},
        {"relative_path": "many.py", "regex": r"from common import (shared)", "include_body": True},
    ],
    "get_symbol_context": [{"name_path": "shared"}, {"name_path": "Base"}],
    "find_all_symbols": [{}],
    "dependency_graph": [{"granularity": "symbol", "seconds": 5}],
    "get_diagnostics_for_file": [{"relative_path": "broken.py"}],
    "get_diagnostics_for_symbol": [{"name_path": "Broken", "min_severity": 4}],
    "list_dir": [{"relative_path": ".", "recursive": True}, {"relative_path": "."}],
    "find_file": [{"file_mask": "*.py"}],
    "read_file": [{"relative_path": "many.py"}],
    "search_for_pattern": [
        {"substring_pattern": "return"},
        {"substring_pattern": ".*", "multiline": True},
        {"substring_pattern": "shared", "context_lines_before": 5, "context_lines_after": 5},
    ],
    "get_call_hierarchy": [{"name_path": "shared", "depth": 3}],
    "get_type_hierarchy": [{"name_path": "Base", "depth": 3}],
    "read_memory": [{"memory_name": "huge"}, {"memory_name": "missing"}],
    "find_unused_symbols": [{"seconds": 5}],
    "check_references": [{"possible": True}],
    "find_referencing_symbols": [{"name_path": "shared"}, {"name_path": "Base"}, {"name_path": "same"}],
    "execute_shell_command": [{"command": "seq 1 100000"}],
    "route": [{"semantic_context": "shop"}],
    "switch_modes": [{"modes": ["editing"]}],
    "query_project": [
        {
            "project_name": "wide",
            "tool_name": "find_file",
            "tool_params_json": '{"file_mask": "*.py"}',
        }
    ],
    "activate_project": [{"project": "wide"}, {"project": "missing"}],
    "remove_project": [{"project": "missing"}],
    **EDITS,
}
"""Arguments with which a tool has much to say; all others are called without any."""


def wide(root: Path) -> None:
    """Many files with long names, one name in all of them, one symbol with many uses, many errors and memories."""
    bodies = ["from common import Base", f"def same():\n    return {LONG!r}\n", f"class {LONG}(Base):\n    x = 1\n"]
    for number in range(FILES):
        folder = root / f"{LONG}_{number // 4}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module_{number}.py").write_text("\n\n".join(bodies))
    (root / "common.py").write_text("class Base:\n    pass\n\n\ndef shared(one):\n    return one\n")
    uses = (f"def user_{number}():\n    return shared({number})  # {LONG}\n" for number in range(USERS))
    (root / "many.py").write_text("from common import shared\n\n\n" + "\n\n".join(uses))
    errors = (f"    x = {LONG}_{number}" for number in range(USERS))
    (root / "broken.py").write_text("class Broken:\n" + "\n".join(errors) + "\n")
    memories = root / ".serena" / "memories"
    memories.mkdir(parents=True)
    for number in range(FILES * 3):
        (memories / f"{LONG}_{number}.md").write_text("One.\n")
    (memories / "huge.md").write_text("A line.\n" * 20_000)


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Reading tools first: edits make more to look through."""
    for name in sorted(CATALOGUE.names(), key=lambda name: name in EDITS):
        for arguments in ASKED.get(name, [{}]):
            yield name, arguments


async def said(central: Application, root: Path, name: str, arguments: dict[str, Any]) -> list[str]:
    """The blocks of the answer, or the error."""
    tool = CATALOGUE.get(name)
    assert tool is not None
    project = {"project": str(root)} if tool.on_project else {}
    try:
        answer = await central.caller.call(session_of(central), name, {**project, **arguments})
    except SerenaCentralError as error:
        return [str(error)]
    return answer.blocks


async def test_no_tool_answers_with_more_than_the_default_of_30_000_bytes(tmp_path: Path) -> None:
    root = tmp_path / "wide"
    wide(root)
    optional = [name for name in CATALOGUE.names() if CATALOGUE.get(name).shown == "optional"]  # pyright: ignore
    settings = {"included_optional_tools": optional, "execute_shell": True, "trust": "always"}
    async with running_parts(tmp_path, settings) as central:
        for number in range(PROJECTS):
            other = tmp_path / f"{LONG}_{number}"
            other.mkdir()
            central.projects.check(other)
        lengths = {
            f"{name} {json.dumps(arguments)[:100]}": sum(
                len(block.encode()) for block in await said(central, root, name, arguments)
            )
            for name, arguments in calls()
        }
    assert {call: length for call, length in lengths.items() if length > LIMIT} == {}
    assert sum(length > LIMIT / 2 for length in lengths.values()) > 15  # else there was nothing to bound


async def test_a_long_answer_is_put_together_while_others_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of its many symbols the last ones are remembered, as many as a session may have."""
    root = tmp_path / "many"
    root.mkdir()
    uses = VIEWS_PER_SESSION + 300
    functions = (f"def user_{number}():\n    return shared({number})\n" for number in range(uses))
    (root / "many.py").write_text("def shared(one):\n    return one\n\n\n" + "\n\n".join(functions))
    threads: list[int] = []

    def spied(*args: Any, **options: Any) -> Fitted:
        threads.append(threading.get_ident())
        return fit(*args, **options)

    monkeypatch.setattr(tool_run, "fit", spied)
    async with running_parts(tmp_path) as central:
        session = session_of(central)
        asked = {"project": str(root), "name_path": "shared", "relative_path": "many.py"}
        first = await central.caller.call(session, "find_referencing_symbols", asked)
        seen = {place.name_path for place in session.views}
        whole = await central.caller.call(session, "find_referencing_symbols", {**asked, "max_answer_chars": 1_000_000})
    assert "user_5" in first.blocks[0]
    assert "user_5" in seen
    assert whole.blocks[0].count("content_around_reference") == uses
    assert [thread == threading.get_ident() for thread in threads] == [True, False]
    assert len(session.views) == VIEWS_PER_SESSION
    assert {f"user_{uses - VIEWS_PER_SESSION + 1}", f"user_{uses - 1}"} <= {place.name_path for place in session.views}
