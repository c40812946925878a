"""A repository that ignores all of itself: every answer says so, and the setting that it offers brings it back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


async def test_a_project_of_nothing_says_which_line_ignores_it_all_and_how_to_have_it(tmp_path: Path) -> None:
    root = tmp_path / "kernel"
    (root / ".git").mkdir(parents=True)
    (root / "mm").mkdir()
    (root / "mm" / "slab.py").write_text("def kmalloc():\n    return 0\n")
    (root / ".gitignore").write_text("*.o\n/*\n")
    async with running_parts(tmp_path) as central:
        session = session_of(central)

        async def ask(tool: str, **arguments: Any) -> list[str]:
            return (await central.caller.call(session, tool, {"project": str(root), **arguments})).blocks

        says = f"ignored by line 2 of {root}/.gitignore, '/*'. To include them, put `ignored_paths: ['!/*']` into"
        for tool, arguments in (
            ("activate_project", {}),
            ("find_symbol", {"name_path_pattern": "kmalloc"}),
            ("find_file", {"file_mask": "*.py"}),
            ("search_for_pattern", {"substring_pattern": "kmalloc"}),
        ):
            blocks = await ask(tool, **arguments)
            assert says in blocks[-1], (tool, blocks)
        (listed,) = json.loads((await central.caller.call(session, "list_projects", {})).blocks[0])
        assert says in listed["note"]
        (shown,) = central.projects.snapshots()  # what the dashboard and /api/v1/projects show
        assert shown.note == listed["note"]
        (root / ".serena").mkdir()
        (root / ".serena" / "project.yml").write_text("ignored_paths: ['!/*']\n")
        assert await ask("find_file", file_mask="*.py") == ['{"files":["mm/slab.py"]}']


async def test_a_project_of_little_says_it_where_that_may_be_missed(tmp_path: Path) -> None:
    root = tmp_path / "kernel"
    (root / ".git").mkdir(parents=True)
    for folder in ("mm", "fs", "debian"):
        (root / folder).mkdir()
        (root / folder / "code.py").write_text(f"def in_{folder}():\n    return 0\n")
    (root / ".gitignore").write_text("/*\n!/debian/\n")
    says = f"Skipped: 2 of 3 top-level folders, ignored by line 1 of {root}/.gitignore, '/*'. To include them"
    async with running_parts(tmp_path) as central:
        session, found = session_of(central), dict[str, str]()
        for tool, asked in (("activate_project", ""), ("find_symbol", "in_mm"), ("find_symbol", "in_debian")):
            arguments = {"name_path_pattern": asked} if asked else {}
            answer = await central.caller.call(session, tool, {"project": str(root), **arguments})
            found[asked] = "\n".join(answer.blocks)
        assert {asked: found[asked].count(says) for asked in found} == {"": 1, "in_mm": 1, "in_debian": 0}
        assert says in str(central.projects.snapshots()[0].note)
