"""Members of related types, by the names in the heads of these."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from serena_central.projects.navigation import same_hierarchy
from serena_central.projects.project import Project
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

MANY = "".join(f"class Job{number}:\n    def run(self): ...\n\n\n" for number in range(600))

CONFIGS = {
    "base.py": "class Root:\n    def close(self): ...\n\n\nclass Config(Root):\n    def read(self): ...\n",
    "child.py": "import base\n\n\nclass Config(base.Config):\n    def load(self): ...\n",
    "other.py": "class Config:\n    def write(self): ...\n",
}


@asynccontextmanager
async def having(files: Mapping[str, str], folder: Path) -> AsyncGenerator[Project]:
    root = folder / "root"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    async with running_parts(folder) as central:
        project = await central.projects.open(root)
        await project.indexer.ensure(list(files))
        yield project


async def kin(project: Project, name_path: str, path: str, name: str) -> list[str] | None:
    found = await project.navigation.possible.kin_called(await project.find_one(name_path, path), name)
    return None if found is None else [f"{one.path}:{one.name_path}" for one in found]


async def test_a_bases_member_is_found_behind_any_number_of_others_of_its_name(tmp_path: Path) -> None:
    files = {
        "a.py": MANY,
        "b.py": "class Base:\n    def run(self): ...\n",
        "c.py": "from b import Base\n\n\nclass Child(Base):\n    def go(self): ...\n",
        "d.py": "from c import Child\n\n\nclass Grandchild(Child):\n    def run(self): ...\n",
    }
    async with having(files, tmp_path) as project:
        assert await kin(project, "Child/go", "c.py", "run") == ["b.py:Base/run", "d.py:Grandchild/run"]


@pytest.mark.parametrize(
    ("name_path", "path", "name", "found"),
    [
        ("Config/load", "child.py", "read", ["base.py:Config/read"]),
        ("Config/load", "child.py", "close", ["base.py:Root/close"]),
        ("Config/read", "base.py", "load", ["child.py:Config/load"]),
        ("Root/close", "base.py", "load", ["child.py:Config/load"]),
        ("Config/load", "child.py", "load", []),
    ],
)
async def test_a_type_that_is_called_like_its_base_overrides_the_members_of_that(
    name_path: str, path: str, name: str, found: list[str], tmp_path: Path
) -> None:
    async with having(CONFIGS, tmp_path) as project:
        assert await kin(project, name_path, path, name) == found


async def test_members_of_types_with_one_name_and_nothing_else_in_common_are_no_kin(tmp_path: Path) -> None:
    files = {name: text for name, text in CONFIGS.items() if name != "child.py"}
    async with having(files, tmp_path) as project:
        assert await kin(project, "Config/read", "base.py", "write") == []


async def test_members_are_unknown_rather_than_none_where_their_types_cannot_be_read_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_hierarchy, "KIN_S", 0.0)
    async with having(CONFIGS, tmp_path) as project:
        assert await kin(project, "Config/load", "child.py", "read") is None
