"""What else may refer to a symbol, while the symbols of other files are not known yet."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from serena_central.analysis.keep_rules import OVERRIDING_UNKNOWN
from serena_central.analysis.objections import REGISTERED_UNKNOWN, reason_to_keep
from serena_central.projects import build
from serena_central.projects.navigation import possible_references
from serena_central.projects.project import Project
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


@asynccontextmanager
async def having_read(path: str, files: Mapping[str, str], folder: Path) -> AsyncGenerator[Project]:
    """A project of which the symbols of one file are known; the background waits."""
    root = folder / "root"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    async with running_parts(folder) as central:
        project = await central.projects.open(root)
        with pytest.MonkeyPatch.context() as patch, project.indexer.priority.caller():
            patch.setattr(build.INDEXING, "gives_way_s", 3600.0)
            project.indexer.ask_again()
            await project.indexer.ensure([path])
            assert [one for one in files if one in project.index] == [path]
            yield project


async def test_a_call_through_a_base_is_told_although_only_the_symbols_own_file_has_been_read(tmp_path: Path) -> None:
    async with having_read("child.py", FILES, tmp_path) as project:
        found = await project.navigation.references.of(await project.find_one("Child/run", "child.py"))
    assert found.references == []
    assert found.possible is not None
    assert [(one.path, one.line, one.why) for one in found.possible.first] == [("use.py", 5, "same hierarchy")]


async def test_members_of_a_name_are_unknown_rather_than_none_while_files_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with having_read(
        "child.py", FILES | {"base.py": "class Base:\n    def go(self): ...\n"}, tmp_path
    ) as project:
        run = await project.find_one("Child/run", "child.py")
        with monkeypatch.context() as at_once:
            at_once.setattr(possible_references, "SYMBOLS_S", 0.0)
            assert await project.navigation.possible.kin_called(run, "go") is None
        kin = await project.navigation.possible.kin_called(run, "go")
        assert [(one.path, one.name_path) for one in kin or ()] == [("base.py", "Base/go")]


@pytest.mark.parametrize(
    ("files", "name_path", "reason", "unknown"),
    [
        (
            {
                "named.py": "from typing import Protocol\n\n\nclass Runs(Protocol):\n    def _run(self) -> int: ...\n",
                "own.py": "class Job:\n    def _run(self) -> int:\n        return 1\n",
            },
            *("Job/_run", "an interface has a member of the same name", OVERRIDING_UNKNOWN),
        ),
        (
            {
                "named.py": "class Base:\n    def _run(self): ...\n",
                "own.py": "from named import Base\n\n\nclass Job(Base):\n    def _run(self): ...\n",
            },
            *("Job/_run", "it may be an override", OVERRIDING_UNKNOWN),
        ),
        (
            {
                "named.py": "class Base:\n    def __init_subclass__(cls): ...\n",
                "own.py": "from named import Base\n\n\nclass _Job(Base): ...\n",
            },
            *(
                "_Job",
                "its base class is told of its subclasses (__init_subclass__, metaclass) or asked for them",
                REGISTERED_UNKNOWN,
            ),
        ),
    ],
)
async def test_why_to_keep_a_symbol_is_known_once_the_files_that_say_so_are_read_and_unknown_before(
    files: Mapping[str, str], name_path: str, reason: str, unknown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with having_read("own.py", files, tmp_path) as project:
        hit = await project.find_one(name_path, "own.py")
        with monkeypatch.context() as at_once:
            at_once.setattr(possible_references, "SYMBOLS_S", 0.0)
            assert await reason_to_keep(project, hit) == unknown
        assert await reason_to_keep(project, hit) == reason
