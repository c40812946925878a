"""What the history keeps of an edit that grows after its call was answered."""

from pathlib import Path

import pytest

from serena_central.editing.change import Author
from serena_central.editing.patch import FilePatch
from serena_central.projects.editing.edit_records import AppliedEdit, ChangedFile
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


async def test_an_edit_that_a_hook_adds_to_keeps_the_answer_of_its_call(tmp_path: Path) -> None:
    author = Author(session="s", client="c", tool="t", call="c-1", repeat="k-1")
    files, patches = [ChangedFile(path="a.py")], [FilePatch(path="a.py")]
    edit = AppliedEdit(id="e-1", at=1.0, author=author, root=str(tmp_path), files=files, patches=patches)
    async with running_parts(tmp_path) as central:
        central.history.applied(edit)
        await central.history.parts(edit.id)  # the row is written
        central.history.answered(author.call, ["made"])
        await central.history.amended(edit)
        row = await central.history.edit(edit.id, exact=True)
    assert row is not None
    assert row.answer == '["made"]'
