"""What text edits leave alone: lines that moved unseen, files that others rewrote, stale occurrences."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import EditConflict, InvalidArguments, PathRefused
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

OPTIONAL = ["delete_lines", "replace_lines", "insert_at_line", "replace_in_files"]


class Desk:
    """A project with one file, and two sessions that work on it."""

    def __init__(self, central: Application, root: Path) -> None:
        self.central = central
        self.root = root
        self.file = root / "a.txt"
        self.file.write_text("one\ntwo\nthree\n")

    async def call(self, session: str, tool: str, **arguments: Any) -> Any:
        asked = {"project": str(self.root), **arguments}
        if tool != "replace_in_files":
            asked.setdefault("relative_path", "a.txt")
        answer = await self.central.caller.call(session_of(self.central, explicit_id=session), tool, asked)
        try:
            return json.loads(answer.blocks[0])
        except ValueError:
            return answer.blocks[0]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    (tmp_path / "project").mkdir()
    with anyio.fail_after(60):
        async with running_parts(tmp_path, {"included_optional_tools": OPTIONAL}) as central:
            yield Desk(central, tmp_path / "project")


async def test_lines_that_moved_since_they_were_read_are_not_touched(desk: Desk) -> None:
    await desk.call("one", "read_file")
    await desk.call("two", "insert_at_line", line=0, content="zero")
    with pytest.raises(EditConflict, match="session two"):
        await desk.call("one", "delete_lines", start_line=1, end_line=1)
    await desk.call("one", "read_file")
    await desk.call("one", "delete_lines", start_line=1, end_line=1)
    assert desk.file.read_text() == "zero\ntwo\nthree\n"


async def test_a_session_knows_what_it_wrote_itself(desk: Desk) -> None:
    await desk.call("one", "read_file")
    await desk.call("one", "delete_lines", start_line=0, end_line=0)
    await desk.call("one", "delete_lines", start_line=0, end_line=0)
    assert desk.file.read_text() == "three\n"


async def test_an_edit_says_which_other_names_of_a_file_keep_the_old_text(desk: Desk) -> None:
    (desk.root / "b.txt").hardlink_to(desk.file)
    session = session_of(desk.central)
    asked = {"project": str(desk.root), "relative_path": "a.txt", "content": "new\n"}
    first = await desk.central.caller.call(session, "create_text_file", asked)
    second = await desk.central.caller.call(session, "create_text_file", {**asked, "content": "newer\n"})

    assert (desk.root / "b.txt").read_text() == "one\ntwo\nthree\n"
    assert "Other hard links to a.txt keep the old text" in str(first.blocks)
    assert "hard link" not in str(second.blocks)


async def test_a_file_that_somebody_rewrote_is_not_overwritten(desk: Desk) -> None:
    await desk.call("one", "read_file")
    desk.file.write_text("from an editor\n")
    with pytest.raises(EditConflict, match=r"outside this server.*Re-read the file"):
        await desk.call("one", "create_text_file", content="mine\n")
    assert desk.file.read_text() == "from an editor\n"
    await desk.call("two", "create_text_file", content="mine\n")
    assert desk.file.read_text() == "mine\n"


async def test_a_file_with_a_byte_order_mark_keeps_one_whatever_it_is_given(desk: Desk) -> None:
    desk.file.write_bytes("\ufeffone\r\n".encode())
    await desk.call("one", "create_text_file", content="\ufefftwo\n")
    assert desk.file.read_bytes() == "\ufefftwo\r\n".encode()


async def test_only_the_wanted_occurrences_are_replaced(desk: Desk) -> None:
    desk.file.write_text("x x\nx\n")
    asked = {"needle": "x", "repl": "y", "mode": "literal"}
    found = await desk.call("one", "replace_in_files", **asked, dry_run=True)
    ids = [one["id"] for one in found["occurrences"]]
    done = await desk.call("one", "replace_in_files", **asked, occurrence_ids=[ids[0], ids[2]])
    assert (done["count"], desk.file.read_text()) == (2, "y x\ny\n")


async def test_occurrences_of_a_file_that_changed_are_stale(desk: Desk) -> None:
    other = desk.root / "b.txt"
    other.write_text("one\n")
    asked = {"needle": "one", "repl": "1", "mode": "literal"}
    found = await desk.call("one", "replace_in_files", **asked, dry_run=True)
    other.write_text("one more\n")
    with pytest.raises(InvalidArguments, match="no longer exist"):
        await desk.call("one", "replace_in_files", **asked, occurrence_ids=[one["id"] for one in found["occurrences"]])
    assert (desk.file.read_text(), other.read_text()) == ("one\ntwo\nthree\n", "one more\n")


async def test_files_that_are_no_text_are_left_out_and_told(desk: Desk) -> None:
    (desk.root / "b.bin").write_bytes(b"one\0two")
    answer = await desk.central.caller.call(
        session_of(desk.central),
        "replace_in_files",
        {"needle": "one", "repl": "1", "mode": "literal", "project": str(desk.root)},
    )
    assert json.loads(answer.blocks[0])["count"] == 1
    assert answer.blocks[1] == "Not searched: 1 files that cannot be read as text."


async def test_ignored_files_are_not_written(desk: Desk) -> None:
    (desk.root / ".git").mkdir()
    (desk.root / ".gitignore").write_text("*.log\n")
    with pytest.raises(PathRefused, match="ignored"):
        await desk.call("one", "create_text_file", relative_path="x.log", content="x")
    assert not (desk.root / "x.log").exists()


async def test_an_edit_of_many_files_says_of_how_many_the_errors_are_known(desk: Desk) -> None:
    for number in range(10):
        (desk.root / f"mod{number}.py").write_text("old = 1\n")
    asked = {"needle": "old", "repl": "new", "mode": "literal", "project": str(desk.root)}
    answer = await desk.central.caller.call(session_of(desk.central, explicit_id="one"), "replace_in_files", asked)
    assert all((desk.root / f"mod{number}.py").read_text() == "new = 1\n" for number in range(10))
    assert "Diagnostics were checked in 8 of the 10 edited files." in "\n".join(answer.blocks).splitlines()
