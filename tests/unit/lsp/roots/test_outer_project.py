"""When a server is kept to its root, by the folders above it. What ty makes of it is tested in tests/integration."""

from pathlib import Path

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.roots import Reach, reach
from serena_central.lsp.roots.outer_project import NO_CONFIGURATION

PROJECT = '[project]\nname = "x"\nversion = "1"\n'
CONFIGURED = '[tool.ty.rules]\nunresolved-import = "ignore"\n'
KEPT = {"ty": {"configurationFile": str(NO_CONFIGURATION)}}


def write(folder: Path, **files: str) -> None:
    """`gitignore` and the like; a folder that is given none becomes a repository alone."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    names = {"gitignore": ".gitignore", "pyproject": "pyproject.toml", "ty": "ty.toml"}
    for name, text in files.items():
        (folder / names[name]).write_text(text)


def kept(root: Path) -> object:
    return reach(catalogue().server("ty"), root).settings


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A repository with a project that ignores `build`, in which another one lies: `build/inner`."""
    write(tmp_path, gitignore="build/\n", pyproject=PROJECT)
    write(tmp_path / "build" / "inner")
    return tmp_path


def test_a_root_that_the_outer_project_ignores_is_kept(outer: Path) -> None:
    assert kept(outer / "build" / "inner") == KEPT


def test_so_is_one_that_the_outer_repository_excludes_without_a_gitignore(outer: Path) -> None:
    (outer / ".gitignore").unlink()
    assert kept(outer / "build" / "inner") == {}
    (outer / ".git" / "info").mkdir()
    (outer / ".git" / "info" / "exclude").write_text("/build/*\n")
    assert kept(outer / "build" / "inner") == KEPT


def test_so_is_a_folder_that_is_no_repository_itself(outer: Path) -> None:
    (outer / "build" / "plain").mkdir()
    assert kept(outer / "build" / "plain") == KEPT


def test_a_root_that_the_outer_project_holds_is_left_to_it(outer: Path) -> None:
    write(outer, pyproject=CONFIGURED)
    write(outer / "packages" / "one")
    assert reach(catalogue().server("ty"), outer / "packages" / "one") == Reach({}, outer)
    write(outer / "packages" / "one", ty="")
    assert reach(catalogue().server("ty"), outer / "packages" / "one") == Reach({})


def test_without_an_outer_project_there_is_nothing_to_keep_it_from(outer: Path) -> None:
    (outer / "pyproject.toml").unlink()
    assert kept(outer / "build" / "inner") == {}


@pytest.mark.parametrize("files", [{"pyproject": PROJECT}, {"pyproject": CONFIGURED}, {"ty": ""}])
def test_a_root_with_a_project_of_its_own_keeps_that(outer: Path, files: dict[str, str]) -> None:
    write(outer / "build" / "inner", **files)
    assert kept(outer / "build" / "inner") == {}


@pytest.mark.parametrize("files", [{"pyproject": CONFIGURED}, {"ty": ""}])
def test_unless_the_outer_one_is_configured_and_goes_before_it(outer: Path, files: dict[str, str]) -> None:
    write(outer, **files)
    write(outer / "build" / "inner", pyproject=PROJECT)
    assert kept(outer / "build" / "inner") == KEPT


def test_what_is_ignored_above_the_outer_project_does_not_count(outer: Path) -> None:
    write(outer / "build" / "inner", pyproject=CONFIGURED)
    (outer / "build" / "inner" / "package").mkdir()
    assert kept(outer / "build" / "inner" / "package") == {}


def test_a_repository_decides_as_far_as_the_next_one_in_it(outer: Path) -> None:
    write(outer / "module")
    (outer / "module" / "build").mkdir()
    assert kept(outer / "module" / "build") == {}
    write(outer / "module", gitignore="build\n")
    assert kept(outer / "module" / "build") == KEPT


def test_servers_that_take_no_folder_above_are_not_concerned(outer: Path) -> None:
    assert reach(catalogue().server("basedpyright"), outer / "build" / "inner") == Reach({})
