"""What a project makes of changes that concern other files than those that changed."""

from pathlib import Path

import pytest

from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


async def test_a_marker_that_comes_or_goes_moves_the_files_that_it_decides_about_and_no_others(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.ts").write_text("export function first() {}\n")
    (root / "b.py").write_text("def second(): ...\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        await project.symbols_of(["a.ts", "b.py"])
        kept = project.index.entry("b.py")
        assert kept
        (root / "deno.json").write_text("{}\n")
        found = await project.find("first")
        assert [hit.path for hit in found.hits] == ["a.ts"]
        entry = project.index.entry("a.ts")
        assert entry
        assert "deno" in entry.source
        (root / "deno.json").unlink()
        await project.find("first")
        entry = project.index.entry("a.ts")
        assert entry
        assert "deno" not in entry.source
        assert project.index.entry("b.py") is kept
