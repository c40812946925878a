"""Environments are found where people's tools make them, as data."""

import base64
import hashlib
import os
from pathlib import Path

import pytest

from serena_central.lsp.roots.python import NONE, PythonEnvironment, declares_dependencies, find_python


def make_environment(folder: Path, marker: str = "pyvenv.cfg") -> Path:
    (folder / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (folder / marker).parent.mkdir(exist_ok=True)
    (folder / marker).write_text("home = /usr/bin\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    return root


def test_without_one_an_empty_one_stands_in(root: Path) -> None:
    found = find_python(root, environ={})
    assert found == PythonEnvironment(None, "")
    assert found.env == {"VIRTUAL_ENV": str(NONE)}
    assert (NONE / "pyvenv.cfg").is_file()
    assert [path.name for path in NONE.glob("lib/*/site-packages/*")] == ["README.txt"]
    assert found.note("ty", root) is None  # it needs nothing


def test_one_that_a_server_would_refuse_is_none(root: Path) -> None:
    (root / ".venv").mkdir()
    (root / ".venv" / "pyvenv.cfg").touch()
    make_environment(root / "venv")
    assert find_python(root, environ={}).folder == root / "venv"


def test_the_super_repos_counts_for_its_modules(root: Path, tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    assert find_python(root, [tmp_path], environ={}) == (tmp_path / ".venv", "beside it", "")


def test_poetrys_is_found_by_the_projects_name_and_path(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text('[tool.poetry]\nname = "My Shop"\n')
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(root).encode()).digest()).decode()[:8]
    made = make_environment(tmp_path / "envs" / f"my_shop-{digest}-py3.12")
    assert find_python(root, environ={"POETRY_VIRTUALENVS_PATH": str(tmp_path / "envs")}).folder == made


def test_condas_is_found_by_its_name_which_is_no_path(root: Path, tmp_path: Path) -> None:
    (root / "environment.yml").write_text("channels: [conda-forge]\nname: shop  # ours\n")
    made = make_environment(tmp_path / "conda" / "envs" / "shop", "bin/python")
    environ = {"MAMBA_ROOT_PREFIX": str(tmp_path / "conda")}
    found = find_python(root, environ=environ)
    assert found.env == {"CONDA_PREFIX": str(made), "CONDA_DEFAULT_ENV": "shop"}
    make_environment(tmp_path / "conda" / "evil", "bin/python")
    (root / "environment.yml").write_text("name: ../evil\n")
    assert find_python(root, environ=environ).folder is None


def test_pyenvs_is_the_newest_of_the_series_that_is_named(root: Path, tmp_path: Path) -> None:
    for version in ("3.12.9", "3.12.10", "3.13.1"):
        make_environment(tmp_path / "versions" / version, "bin/python3")
    (root / ".python-version").write_text("3.12\n")
    assert find_python(root, environ={"PYENV_ROOT": str(tmp_path)}).folder == tmp_path / "versions" / "3.12.10"


def test_the_servers_own_configuration_has_the_last_word(root: Path) -> None:
    make_environment(root / ".venv")
    (root / "pyproject.toml").write_text('[tool.ty.environment]\npython = "elsewhere"\n')
    assert find_python(root, environ={}) == (None, "pyproject.toml", "")


def test_a_setting_that_names_nothing_is_told(root: Path) -> None:
    found = find_python(root, named="gone", environ={})
    assert "names gone, which is no Python environment" in (found.note("ty", root) or "")


def test_a_pipe_in_place_of_a_file_holds_nothing_up(root: Path) -> None:
    for name in ("pyproject.toml", "environment.yml", ".python-version"):
        os.mkfifo(root / name)
    assert find_python(root, environ={}).folder is None


@pytest.mark.parametrize(
    ("name", "text", "declares"),
    [
        ("requirements.txt", "anyio\n", True),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = ["anyio"]\n', True),
        ("pyproject.toml", '[tool.poetry.dependencies]\nanyio = "*"\n', True),
        ("pyproject.toml", '[project]\nname = "a"\ndependencies = []\n', False),
        ("pyproject.toml", "not TOML [", False),
    ],
)
def test_dependencies_are_declared(root: Path, name: str, text: str, *, declares: bool) -> None:
    (root / name).write_text(text)
    assert declares_dependencies(root) is declares
