"""What else may refer to a symbol, while the symbols of other files are not known yet."""

from pathlib import Path

import pytest

from serena_central.analysis.objections import reason_to_keep
from serena_central.projects import build
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

FILES = {
    "base.py": "class Base:\n    def run(self) -> int:\n        return 0\n",
    "middle.py": "from base import Base\n\n\nclass Middle(Base):\n    pass\n",
    "child.py": "from middle import Middle\n\n\nclass Child(Middle):\n    def run(self) -> int:\n        return 1\n",
    "other.py": "class Other:\n    def run(self) -> int:\n        return 2\n",
    "use.py": (
        "from base import Base\nfrom other import Other\n\n\n"
        "def use(base: Base, other: Other) -> int:\n    return base.run() + other.run()\n"
    ),
}


async def test_a_call_through_a_base_is_told_although_only_the_symbols_own_file_has_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.INDEXING, "gives_way_s", 3600.0)
    root = tmp_path / "root"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        with project.indexer.priority.caller():  # the background waits
            project.indexer.ask_again()
            await project.indexer.ensure(["child.py"])
            assert [path for path in FILES if path in project.index] == ["child.py"]
            run = await project.find_one("Child/run", "child.py")
            found = await project.navigation.references.of(run)
        assert found.references == []
        assert found.possible is not None
        assert [(one.path, one.line, one.why) for one in found.possible.first] == [("use.py", 5, "same hierarchy")]


async def test_the_protocol_that_a_method_belongs_to_is_known_although_its_file_has_not_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.INDEXING, "gives_way_s", 3600.0)
    root = tmp_path / "root"
    root.mkdir()
    (root / "protocols.py").write_text(
        "from typing import Protocol\n\n\nclass Runs(Protocol):\n    def _run(self) -> int: ...\n"
    )
    (root / "job.py").write_text("class Job:\n    def _run(self) -> int:\n        return 1\n")
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        with project.indexer.priority.caller():  # the background waits
            project.indexer.ask_again()
            await project.indexer.ensure(["job.py"])
            run = await project.find_one("Job/_run", "job.py")
            assert "protocols.py" not in project.index
            assert await reason_to_keep(project, run) == "it implements an interface member"
