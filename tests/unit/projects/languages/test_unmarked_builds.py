"""Which files a server can't know how they are built: nothing in or above their folder says so."""

from pathlib import Path
from typing import Any

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.projects.languages.syntax_access import UnmarkedBuilds


def written(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize("database", ["compile_commands.json", "build/compile_commands.json", "compile_flags.txt"])
@pytest.mark.parametrize("folder", ["", "sub/"])
def test_a_file_without_a_compilation_database_in_or_above_its_folder_is_unmarked(
    tmp_path: Path, database: str, folder: str
) -> None:
    clangd = catalogue().server("clangd")
    no_part_that_is_used: Any = None
    builds = UnmarkedBuilds(tmp_path, no_part_that_is_used, no_part_that_is_used)
    written(tmp_path / "sub/other" / database)
    written(tmp_path / "CMakeLists.txt")
    assert builds.is_unmarked_by(clangd, "sub/deep/a.cpp")
    assert builds.is_unmarked_by(clangd, "sub/a.cpp")
    assert not builds.is_unmarked_by(clangd, "sub/other/a.cpp")
    written(tmp_path / folder / database)
    builds.forget()
    assert not builds.is_unmarked_by(clangd, "sub/deep/a.cpp")
    assert not builds.is_unmarked_by(clangd, "sub/a.cpp")
