"""What a project makes of changes that concern other files than those that changed."""

import shutil
from pathlib import Path

import pytest

from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


async def test_a_marker_that_comes_or_goes_decides_who_answers_for_its_files_and_keeps_what_is_known_of_others(
    tmp_path: Path,
) -> None:
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
        assert "deno" in (project.languages.identity("a.ts") or "")
        assert "a.ts" not in project.indexer.pending_paths()  # what the syntax says stays true
        (root / "deno.json").unlink()
        await project.find("first")
        assert "deno" not in (project.languages.identity("a.ts") or "")
        assert project.index.entry("b.py") is kept


async def test_of_files_and_folders_that_are_gone_nothing_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def first(): ...\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        for number in range(3):
            folder = root / f"build{number}"
            folder.mkdir()
            (folder / "b.py").write_text("def second(): ...\n")
            (folder / "script").write_text("#!/usr/bin/env python3\n")
            assert len((await project.find("second")).hits) == 1
            shutil.rmtree(folder)
            assert not (await project.find("second")).hits
        detection, orders = project.languages.selection._detection, project.languages.orders
        assert set(detection._kinds) == {"a.py"}
        assert set(orders._orders) <= {""}
        assert len(orders.current()) == 1, "the server still runs"
