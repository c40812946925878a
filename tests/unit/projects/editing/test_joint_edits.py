"""An edit of several projects of which one fails unexpectedly."""

from pathlib import Path

import anyio
import pytest

from serena_central.editing.change import Author
from serena_central.projects.editing.edit_records import AppliedEdit
from serena_central.projects.editing.joint_edits import jointly, write_edit
from tests.support.editing import applier_in, replacing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("failing", ["a", "z"])
async def test_where_a_part_fails_unexpectedly_no_other_one_is_written(tmp_path: Path, failing: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("before")
    author = Author(session="s", tool="replace_content", call="c")
    edit = AppliedEdit(id="", at=0.0, author=author, root=str(tmp_path), files=[], patches=[])

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise RuntimeError("a defect")

    with applier_in(tmp_path / "home") as applier:

        async def write() -> None:
            await write_edit(applier, lambda _edit: None, [replacing(file, "after")], edit)

        with pytest.raises(BaseExceptionGroup) as failed:
            await jointly({Path("/m"): write, Path(f"/{failing}"): fail}, applier.planned)
        assert failed.value.subgroup(RuntimeError)
    assert file.read_text() == "before"
