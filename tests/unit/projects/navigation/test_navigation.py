"""References of a symbol as a project tells them."""

from pathlib import Path

import pytest

from serena_central.projects import build
from serena_central.projects.navigation import project_places
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio


async def test_places_are_told_although_the_symbols_around_them_are_not_known_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_places, "HOLDERS_S", 0.0)
    monkeypatch.setattr(build.INDEXING, "gives_way_s", 3600.0)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def shared() -> int:\n    return 1\n")
    (root / "b.py").write_text("from a import shared\n\n\ndef user() -> int:\n    return shared()\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        with project.indexer.priority.caller():  # the background waits
            project.indexer.ask_again()
            found = await project.navigation.references.of(await project.find_one("shared", "a.py"))
        assert [(use.path, use.range.start.line0) for use in found.references] == [("b.py", 0), ("b.py", 4)]
        assert [use.holder for use in found.references] == [None, None]
        assert [(gap.files, "not read yet" in gap.reason) for gap in found.gaps] == [(1, True)]
        monkeypatch.undo()
        found = await project.navigation.references.of(await project.find_one("shared", "a.py"))
        assert [use.holder.name_path if use.holder else None for use in found.references] == [None, "user"]
        assert not found.gaps
