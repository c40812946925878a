"""Finds the Python environment in which a project's third-party imports are resolved, by the conventions of common
tools.

Nothing is executed, neither of the project nor of its tools: folders are looked for where uv, poetry, conda and pyenv
document that they make them. Where a project has none, an empty one stands in; a server would take our own otherwise.
"""

import base64
import hashlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from serena_central.core.nofollow import open_following
from serena_central.core.paths import expanded

NONE = Path(__file__).with_name("no_python")
"""An environment without any package, and without an interpreter."""

_IN_PROJECT = (".venv", "venv")

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
"""Names of environments that a repository may bring: they are never paths."""

_HOME = re.compile(r"^[^\S\n]*home[^\S\n]*=[^\S\n]*\S", re.MULTILINE)

_INTERPRETERS = ("bin/python3", "bin/python")

_CONDA_NAME = re.compile(r"^name:\s*['\"]?([^'\"#\s]+)", re.MULTILINE)

_POETRY_REPLACED = re.compile(r"[ $`!*@\"\\\r\n\t]")

_CONDA_HOMES = ("miniforge3", "mambaforge", "miniconda3", "anaconda3", "micromamba", ".conda")

_READ_MOST_BYTES = 1_000_000

_NOT_JSON = re.compile(r'("(?:\\.|[^"\\\n])*+"?)|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*+[}\]])', re.DOTALL)
"""Strings, and what people write into configuration beside JSON: comments, and commas behind the last item."""

_DECLARING = ("requirements.txt", "Pipfile", "environment.yml", "environment.yaml")


class PythonEnvironment(NamedTuple):
    """`folder` is None where no environment was found; `named_by` says where it was found."""

    folder: Path | None
    named_by: str
    problem: str = ""
    """What was named and is no environment."""

    @property
    def env(self) -> dict[str, str]:
        """Variables by which programs know the environment that is active."""
        folder = self.folder or NONE
        if (folder / "pyvenv.cfg").is_file():
            return {"VIRTUAL_ENV": str(folder)}
        return {"CONDA_PREFIX": str(folder), "CONDA_DEFAULT_ENV": folder.name}

    @property
    def interpreter(self) -> Path | None:
        """The program that packages of the environment are used with."""
        programs = [self.folder / name for name in _INTERPRETERS] if self.folder else []
        return next((program for program in programs if os.access(program, os.X_OK)), None)

    def note(self, server: str, root: Path, *, runs: bool = False) -> str | None:
        """Where imports are resolved, in a sentence; None where the project neither has nor needs anything.

        `runs`: the server asks the interpreter.
        """
        if self.folder and runs and self.interpreter is None:
            return (
                f"{self.folder} ({self.named_by}) has no interpreter, which {server} requires: third-party imports are "
                "not resolved. Recreate the environment."
            )
        if self.folder:
            return f"{server} resolves third-party imports in {self.folder} ({self.named_by})."
        if self.named_by:
            return f"{server} resolves third-party imports as {self.named_by} says."
        if self.problem or declares_dependencies(root):
            problem = f"{self.problem}; " if self.problem else ""
            return (
                f"{problem}no Python environment was found for {root}: third-party imports are not resolved. "
                "Create one (.venv), or set `python`."
            )
        return None


def find_python(
    root: Path, near: Sequence[Path] = (), named: str | None = None, environ: Mapping[str, str] = os.environ
) -> PythonEnvironment:
    """The environment of the project at `root`. `named` is its setting; `near` are folders whose .venv will do, too."""
    problem = ""
    if named:
        folder = folder_of(root / expanded(named))
        if _is_environment(folder):
            return PythonEnvironment(folder, "the setting `python`")
        problem = f"the setting `python` names {named}, which is not a Python environment"
    for folder, named_by in candidates(root, near, environ):
        if _is_environment(folder):
            return PythonEnvironment(folder, named_by)
    return PythonEnvironment(None, "", problem)


def configured_in(root: Path, keys: Mapping[str, Sequence[str]]) -> str:
    """The file of the project in which one of these dotted keys is set, by `keys`: file → keys; empty for none."""
    for name, dotted in keys.items():
        table = _table(root / name)
        for outer, _, key in (one.rpartition(".") for one in dotted):
            if key in _inner(table, *filter(None, outer.split("."))):
                return name
    return ""


def declares_dependencies(root: Path) -> bool:
    """Whether a project says that it needs packages of others."""
    if any((root / name).is_file() for name in _DECLARING):
        return True
    project = _table(root / "pyproject.toml")
    poetry = _inner(project, "tool", "poetry", "dependencies")
    return bool(_inner(project, "project").get("dependencies") or project.get("dependency-groups") or poetry)


def candidates(
    root: Path, near: Sequence[Path] = (), environ: Mapping[str, str] = os.environ
) -> Iterator[tuple[Path, str]]:
    """Candidate folders for the project's environment in order of precedence, each with the tool that defines it."""
    project = _table(root / "pyproject.toml")
    for folder in (root, *near):
        yield from ((folder / name, "of the project" if folder == root else "next to it") for name in _IN_PROJECT)
    yield from ((folder, "made by poetry") for folder in _of_poetry(root, project, environ))
    yield from ((folder, "named by environment.yml") for folder in _of_conda(root, environ))
    yield from ((folder, "pyenv's, by .python-version") for folder in _of_pyenv(root, environ))


def _of_poetry(root: Path, project: dict[str, Any], environ: Mapping[str, str]) -> list[Path]:
    """Poetry names folders after the project and a digest of its path; one per version of Python."""
    name = _inner(project, "tool", "poetry").get("name") or _inner(project, "project").get("name")
    if not isinstance(name, str) or not ((root / "poetry.lock").exists() or _inner(project, "tool", "poetry")):
        return []
    digest = hashlib.sha256(os.path.normcase(os.path.realpath(root)).encode()).digest()
    short = base64.urlsafe_b64encode(digest).decode()[:8]
    prefix = f"{_POETRY_REPLACED.sub('_', name.lower())[:42]}-{short}-py"
    caches = Path("~/Library/Caches" if sys.platform == "darwin" else environ.get("XDG_CACHE_HOME") or "~/.cache")
    cache = environ.get("POETRY_CACHE_DIR") or caches / "pypoetry"
    folder = expanded(environ.get("POETRY_VIRTUALENVS_PATH") or Path(cache) / "virtualenvs")
    # The folder that they lie in, which is none itself, changes when one is made.
    return [*(folder / one for one in sorted(_names(folder), reverse=True) if one.startswith(prefix)), folder]


def _of_conda(root: Path, environ: Mapping[str, str]) -> list[Path]:
    text = _text(root / "environment.yml") or _text(root / "environment.yaml")
    named = _CONDA_NAME.search(text)
    if named is None or not _NAME.fullmatch(named[1]):
        return []
    prefixes = [Path(environ["MAMBA_ROOT_PREFIX"])] if environ.get("MAMBA_ROOT_PREFIX") else []
    if environ.get("CONDA_EXE"):
        prefixes.append(Path(environ["CONDA_EXE"]).parent.parent)
    prefixes += [Path.home() / name for name in _CONDA_HOMES]
    return [prefix / "envs" / named[1] for prefix in prefixes]


def _of_pyenv(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """The version that is named, or the newest of its series: `3.12` may mean 3.12.1."""
    wanted = next(iter(_text(root / ".python-version").split()), "")
    if not _NAME.fullmatch(wanted):
        return []
    versions = expanded(environ.get("PYENV_ROOT") or "~/.pyenv") / "versions"
    series = [name for name in _names(versions) if re.fullmatch(re.escape(wanted) + r"\.\d+", name)]
    series.sort(key=lambda name: int(name.rpartition(".")[2]), reverse=True)
    return [*(versions / name for name in (wanted, *series)), versions]


def folder_of(path: Path) -> Path:
    """An environment's folder, also where its interpreter is named: links of that lead out of it."""
    return path.parent.parent if path.is_file() else path


def _is_environment(folder: Path) -> bool:
    """As servers want it, which refuse to start with anything less."""
    marked = _HOME.search(_text(folder / "pyvenv.cfg")) or any((folder / name).exists() for name in _INTERPRETERS)
    return bool(marked) and bool(packages_of(folder))


def packages_of(folder: Path) -> list[Path]:
    """The folders that an environment's packages are installed into."""
    return sorted((folder / "lib").glob("python3*/site-packages"))


def _table(path: Path) -> dict[str, Any]:
    """A file in TOML or JSON; empty where it is not readable as such."""
    text = _text(path)
    try:
        if path.suffix == ".json":
            found = json.loads(_NOT_JSON.sub(lambda match: match[1] or "", text))
            return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _inner(table: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        below = table.get(name)
        table = cast("dict[str, Any]", below) if isinstance(below, dict) else {}
    return table


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with os.fdopen(open_following(str(path)), "rb") as file:  # which never waits, whatever it is by now
            return (file.read(_READ_MOST_BYTES) or b"").decode("utf-8", "replace")
    except OSError:
        return ""


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
