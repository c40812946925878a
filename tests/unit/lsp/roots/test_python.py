"""Environments are found where people's tools make them, as data."""

import base64
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.roots import project_python
from serena_central.lsp.roots.project_python import NO_INTERPRETER, ProjectPython
from serena_central.lsp.roots.python import (
    NONE,
    PythonEnvironment,
    configured_in,
    declares_dependencies,
    find_python,
)


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
    assert find_python(root, [tmp_path], environ={}) == (tmp_path / ".venv", "next to it", "")


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


@pytest.mark.parametrize(
    ("server", "file", "text"),
    [
        ("ty", "pyproject.toml", '[tool.ty.environment]\npython = "elsewhere"\n'),
        ("ty", "ty.toml", '[environment]\npython = "elsewhere"\n'),
        ("pyright", "pyrightconfig.json", '{\n  // ours\n  "venvPath": "..", "venv": "elsewhere",\n}\n'),
        ("basedpyright", "pyproject.toml", '[tool.basedpyright]\nvenv = "elsewhere"\n'),
        ("pyrefly", "pyrefly.toml", 'python-interpreter-path = "elsewhere/bin/python"\n'),
    ],
)
def test_the_servers_own_configuration_has_the_last_word(root: Path, server: str, file: str, text: str) -> None:
    make_environment(root / ".venv")
    (root / file).write_text(text)
    spec, python = catalogue().server(server), ProjectPython(root)
    python.look()
    python.asked(spec)
    assert python.notes == {server: f"{server} resolves third-party imports as {file} says."}
    assert python.tell(spec, {}).settings == {}
    (root / file).write_text("[" * 100_000)
    assert configured_in(root, spec.environment_keys) == ""


def test_the_servers_own_configuration_is_read_again_when_it_changes_and_not_before(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for with each folder of the project."""
    read: list[Path] = []

    def noted(root: Path, keys: Mapping[str, Sequence[str]]) -> str:
        read.append(root)
        return configured_in(root, keys)

    monkeypatch.setattr(project_python, "configured_in", noted)
    make_environment(root / ".venv")
    spec, python = catalogue().server("ty"), ProjectPython(root)
    python.look()
    told = [python.tell(spec, {}) for _ in range(3)]
    assert told == [told[0]] * 3
    assert told[0].env == {"VIRTUAL_ENV": str(root / ".venv")}
    assert len(read) == 1
    (root / "ty.toml").write_text("[environment]\npython = 'other'\n")
    assert python.tell(spec, {}).env != told[0].env
    (root / "ty.toml").unlink()
    assert python.tell(spec, {}) == told[0]
    assert len(read) == 3


def test_servers_that_run_the_interpreter_are_told_of_it_or_of_none(root: Path) -> None:
    spec, python = catalogue().server("basedpyright"), ProjectPython(root)
    python.look()
    assert not NO_INTERPRETER.exists()
    assert python.tell(spec, {}).settings == {"python": {"pythonPath": str(NO_INTERPRETER)}}
    program = make_environment(root / ".venv") / "bin" / "python"
    assert python.look()
    python.asked(spec)
    assert "has no interpreter, which basedpyright requires" in (python.notes["basedpyright"] or "")
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    assert python.look()
    assert python.tell(spec, {}).settings == {"python": {"pythonPath": str(program)}}
    assert python.tell(spec, {"python": {"pythonPath": "/mine"}}).settings == {"python": {"pythonPath": "/mine"}}


def test_an_environment_that_is_made_step_by_step_counts_once_it_is_whole(root: Path) -> None:
    python = ProjectPython(root)
    assert python.look()
    for step in (".venv", ".venv/lib", ".venv/lib/python3.12", ".venv/lib/python3.12/site-packages"):
        (root / step).mkdir()
        python.look()
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    before = python.state
    assert python.look()
    assert python.state != before
    assert not python.look()
    (root / ".venv/lib/python3.12/site-packages/anyio").mkdir()
    assert python.look()


def test_another_version_that_is_named_is_another_environment(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    made = [make_environment(tmp_path / "versions" / version, "bin/python3") for version in ("3.12.1", "3.13.1")]
    python = ProjectPython(root)
    python.look()
    for version, folder in zip(("3.12", "3.13"), made, strict=True):
        (root / ".python-version").write_text(f"{version}\n")
        assert python.look()
        assert str(folder) in python.state


def test_poetrys_and_the_super_repos_are_seen_when_they_are_made(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POETRY_VIRTUALENVS_PATH", str(tmp_path / "envs"))
    (tmp_path / "envs").mkdir()
    (root / "pyproject.toml").write_text('[tool.poetry]\nname = "shop"\n')
    python = ProjectPython(root, [tmp_path])
    python.look()
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(root).encode()).digest()).decode()[:8]
    made = make_environment(tmp_path / "envs" / f"shop-{digest}-py3.12")
    assert python.look()
    assert str(made) in python.state
    made = make_environment(tmp_path / ".venv")
    assert python.look()
    assert str(made) in python.state


def test_a_setting_that_names_nothing_is_told(root: Path) -> None:
    found = find_python(root, named="gone", environ={})
    assert "names gone, which is not a Python environment" in (found.note("ty", root) or "")


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


def test_an_environment_in_the_home_of_no_user_is_named_as_the_problem(tmp_path: Path) -> None:
    found = find_python(tmp_path, named="~no-such-user-anywhere/venv", environ={})
    assert (found.folder, "which is not a Python environment" in found.problem) == (None, True)
