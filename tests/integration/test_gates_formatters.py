"""What a hook changes in the files of an edit belongs to that edit and its session: history, undo, conflicts."""

import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import EditConflict
from serena_central.projects.editing.undo import undo
from serena_central.store.query_results import EditFilter
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

BEFORE = "class Cart:\n    def total(self) -> int:\n        return 0\n\n    def size(self) -> int:\n        return 1\n"

FORMAT = """python3 - "$FILE_PATH" <<'END'
import pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(file.read_text().replace("'", '"').replace("return  ", "return "))
END
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    (root / "cart.py").write_text(BEFORE)
    hook(root, FORMAT)
    return root


def hook(root: Path, command: str, **more: Any) -> None:
    group = {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": command, **more}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PostToolUse": [group]}}))


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    async with running_parts(tmp_path) as central:
        yield central


async def call(central: Application, root: Path, tool: str, session: str = "s", **arguments: Any) -> str:
    asked = {"project": str(root), **arguments}
    answer = await central.caller.call(session_of(central, explicit_id=session), tool, asked)
    return "\n".join(answer.blocks)


async def read(central: Application, root: Path, name: str, session: str = "s") -> None:
    await call(central, root, "find_symbol", session, name_path_pattern=name, include_body=True)


async def replace(central: Application, root: Path, name: str, value: str, session: str = "s") -> dict[str, Any]:
    body = f"def {name.rpartition('/')[2]}(self):\n    return  {value}"
    said = await call(central, root, "replace_symbol_body", session, name_path=name, relative_path="cart.py", body=body)
    return json.loads(said.partition("\n")[0])


async def test_a_file_that_a_hook_removes_after_its_edit_is_named(central: Application, root: Path) -> None:
    hook(root, 'rm "$FILE_PATH"')
    body = "def total(self):\n    return 2"
    arguments = {"name_path": "Cart/total", "relative_path": "cart.py", "body": body}
    said = await call(central, root, "replace_symbol_body", **arguments)
    assert "After this edit 'cart.py' was removed" in said


async def test_what_a_formatter_changes_is_part_of_the_edit_and_undone_with_it(
    central: Application, root: Path
) -> None:
    """REQ-HOOKS-006"""
    await read(central, root, "Cart")
    edit = (await replace(central, root, "Cart/total", "'x'"))["edit"]
    assert 'return "x"\n' in (root / "cart.py").read_text()
    (row,) = await central.history.edits(EditFilter(limit=10))
    assert row.id == edit
    assert row.session == "s"
    await undo(edit, central.history, central.projects, by="me")
    assert (root / "cart.py").read_text() == BEFORE


async def test_what_a_formatter_changes_while_undo_waits_for_it_is_undone_as_well(
    central: Application, root: Path
) -> None:
    hook(root, """touch formats; until [ -f go ]; do sleep 0.01; done; echo "import os" >> "$FILE_PATH" """)
    await read(central, root, "Cart")
    edits = (await central.projects.open(root)).edits
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(replace, central, root, "Cart/total", "'x'")
            while not (root / "formats").exists():
                await anyio.sleep(0.01)
            (row,) = await central.history.edits(EditFilter(limit=10))
            tasks.start_soon(partial(undo, row.id, central.history, central.projects, by="me"))
            while edits.queued("cart.py") < 2:
                await anyio.sleep(0.01)
            (root / "go").touch()
    assert (root / "cart.py").read_text() == BEFORE


async def test_the_session_goes_on_editing_what_the_formatter_changed(central: Application, root: Path) -> None:
    await read(central, root, "Cart")
    for value in ("'x'", "'y'", "'z'"):
        await replace(central, root, "Cart/total", value)
        await replace(central, root, "Cart/size", value)
    text = (root / "cart.py").read_text()
    await call(central, root, "create_text_file", relative_path="cart.py", content=text + "\n\nx = 'a'\n")
    assert (root / "cart.py").read_text().count('return "z"') == 2


async def test_after_a_kill_the_formatters_changes_are_still_the_sessions_own(tmp_path: Path, root: Path) -> None:
    async with running_parts(tmp_path) as central:
        await read(central, root, "Cart")
        await replace(central, root, "Cart/total", "'x'")
    async with running_parts(tmp_path) as central:
        session = session_of(central)
        session.views.clear()
        session.views_in_store = False  # what it saw was lost
        central.views.saw(session, str(root), "cart.py", {"Cart/total": "what it was before"})
        await replace(central, root, "Cart/total", "'y'")


async def test_another_session_is_told_who_changed_what_it_saw(central: Application, root: Path) -> None:
    await read(central, root, "Cart", "other")
    await replace(central, root, "Cart/total", "'x'")
    with pytest.raises(EditConflict, match="session s "):
        await replace(central, root, "Cart/total", "'y'", "other")


async def test_several_sessions_with_one_formatter_edit_one_file_and_nothing_is_lost(
    central: Application, root: Path
) -> None:
    methods = "".join(f"\n    def m{number}(self):\n        return 0\n" for number in range(6))
    (root / "cart.py").write_text(f"class Cart:\n    pass\n{methods}")
    refused: list[str] = []

    async def work(number: int) -> None:
        session, name = f"s{number}", f"Cart/m{number}"
        await read(central, root, name, session)
        for turn in range(3):
            try:
                await replace(central, root, name, f"'{number}.{turn}'", session)
            except EditConflict as error:
                refused.append(str(error))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(work, number)
    assert refused == []
    text = (root / "cart.py").read_text()
    assert all(f'return "{number}.2"' in text for number in range(6)), text
    assert "'" not in text
    rows = await central.history.edits(EditFilter(limit=100))
    assert len(rows) == 18
    for row in rows:  # the newest first
        await undo(row.id, central.history, central.projects, by="me")
    assert (root / "cart.py").read_text() == f"class Cart:\n    pass\n{methods}"


async def test_a_formatter_in_the_background_formats_for_its_session_as_well(central: Application, root: Path) -> None:
    """REQ-HOOKS-006"""
    hook(root, f"{FORMAT}\necho formatted >&2; exit 3", **{"async": True})
    await read(central, root, "Cart")
    edit = (await replace(central, root, "Cart/total", "'x'"))["edit"]
    with anyio.fail_after(60):
        while "failed with exit code 3: 'formatted'" not in await call(
            central, root, "list_dir", relative_path=".", recursive=False
        ):
            await anyio.sleep(0.01)
    assert 'return "x"\n' in (root / "cart.py").read_text()
    hook(root, "true")
    second = (await replace(central, root, "Cart/total", "2"))["edit"]  # no conflict with what was formatted
    await undo(second, central.history, central.projects, by="me")
    await undo(edit, central.history, central.projects, by="me")
    assert (root / "cart.py").read_text() == BEFORE


async def test_a_hook_that_writes_other_files_or_removes_the_edited_one_breaks_nothing(
    central: Application, root: Path
) -> None:
    hook(root, "echo text > beside.txt")
    await call(central, root, "create_text_file", relative_path="a.txt", content="a")
    hook(root, 'rm "$FILE_PATH"')
    await call(central, root, "create_text_file", relative_path="a.txt", content="b")
    assert not (root / "a.txt").exists()
    assert (root / "beside.txt").read_text() == "text\n"
