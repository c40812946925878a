"""Names that interfaces hold: one by one in the files that define them, many in all files."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from serena_central.analysis import interfaces
from serena_central.analysis.interfaces import Interfaces
from serena_central.files.stamp import Stamp
from serena_central.files.text import read_text
from serena_central.projects.project import Project
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.outline import outline

pytestmark = pytest.mark.anyio

FILES = {
    "a.ts": ("typescript", "interface Closer { close(): void }\nclass A { open() {} }\n"),
    "b.ts": ("typescript", "class B { close() {} }\nfunction run() {}\n"),
    "c.py": ("python", "from typing import Protocol\n\n\nclass Runs(Protocol):\n    def run(self): ...\n"),
    "d.py": ("python", "class D:\n    def protocol(self): ...\n\n    def walk(self): ...\n"),
}


def project_in(folder: Path) -> Project:
    """What `Interfaces` asks of a project, about real files and their symbols."""
    index = SymbolIndex()
    for path, (language, text) in FILES.items():
        (folder / path).write_text(text, encoding="utf-8")
        stamp = Stamp.of((folder / path).stat())
        index.put(path, flatten(outline(language, text.encode())[0]), stamp=stamp, indexed_at_ns=0, source="")

    async def holding(paths: list[str], word: str) -> list[str]:
        return [path for path in paths if word in FILES[path][1]]

    async def are_holders_read(_name: str) -> bool:
        return True

    async def read(path: str) -> object:
        return read_text(folder / path)

    languages = SimpleNamespace(language_of=lambda path: FILES[path][0])
    return cast(
        "Project",
        SimpleNamespace(
            index=index,
            indexer=SimpleNamespace(is_complete=True),
            languages=languages,
            navigation=SimpleNamespace(possible=SimpleNamespace(holding=holding, are_holders_read=are_holders_read)),
            read=read,
        ),
    )


@pytest.mark.parametrize("looked_up", [0, 2, 20])
async def test_names_of_interfaces_and_protocols_are_known_however_many_are_asked_for(
    looked_up: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interfaces, "LOOKED_UP", looked_up)
    known = Interfaces(project_in(tmp_path))
    names = ["close", "open", "run", "walk", "protocol", "absent"]
    assert [name for name in names if await known.hold(name)] == ["close", "run"]
    assert [name for name in names if await known.hold(name)] == ["close", "run"]


async def test_one_name_reads_the_symbols_of_its_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, read = project_in(tmp_path), list[str]()
    file = project.index.file
    monkeypatch.setattr(project.index, "file", lambda path: (read.append(path), file(path))[1])
    assert await Interfaces(project).hold("close")
    assert sorted(set(read)) == ["a.ts", "b.ts"]
