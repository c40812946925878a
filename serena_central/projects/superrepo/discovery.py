"""Where the modules of a repository probably are: what its own files say of its parts. It runs nothing.

A folder inside another one that was found is a part of that module, and no module of its own.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

import yaml

from serena_central.files.repository import OuterRules
from serena_central.files.text import read_quickly
from serena_central.files.walk import Survey
from serena_central.lsp.roots.go import used_modules

MAX_BYTES = 1_000_000
"""Of a file that lists parts; none is a hundredth of that."""

_SUBMODULE = re.compile(r"^\s*path\s*=\s*\"?(.+?)\"?\s*$", re.MULTILINE)


class Candidate(NamedTuple):
    """A folder that is probably a module. `path` is relative to the root, POSIX; `found_by` names the file."""

    path: str
    found_by: str


def candidates(root: Path) -> list[Candidate]:
    """Modules in a real folder, by path. What can't be read counts as not there."""
    found: dict[str, str] = {}
    for name, paths in _SOURCES.items():
        for path in paths(root):
            inside = _inside(root, path)
            if inside is not None:
                found.setdefault(inside, name)
    outermost = [
        path for path in found if not any(f"{path}/".startswith(f"{other}/") for other in found.keys() - {path})
    ]
    return [Candidate(path, found[path]) for path in sorted(outermost)]


def files_of(root: Path) -> list[str]:
    """Files of one root as the server will see them: neither ignored ones nor those of nested repositories."""
    outer = OuterRules(root)
    survey = Survey(root, outer, use_git=True)
    survey.look_everywhere(outer)
    return sorted(survey.take())


def _inside(root: Path, path: str | Path) -> str | None:
    """The folder's path in the root; None for the root itself, what lies elsewhere, and what is no folder."""
    try:
        place = (root / path).resolve()
        usable = place != root and place.is_relative_to(root) and place.is_dir()
    except (OSError, RuntimeError, ValueError):
        return None
    return place.relative_to(root).as_posix() if usable else None


def _submodules(root: Path) -> Iterable[str]:
    return _SUBMODULE.findall(_text(root / ".gitmodules"))


def _go_work(root: Path) -> Iterable[Path]:
    return used_modules(root / "go.work")


def _npm(root: Path) -> Iterable[str]:
    workspaces = _table(_parsed(root / "package.json", json.loads)).get("workspaces")
    packages = _table(workspaces).get("packages") if isinstance(workspaces, dict) else workspaces
    return _matching(root, packages, "package.json")


def _pnpm(root: Path) -> Iterable[str]:
    listed = _table(_parsed(root / "pnpm-workspace.yaml", yaml.safe_load)).get("packages")
    return _matching(root, listed, "package.json")


def _cargo(root: Path) -> Iterable[str]:
    workspace = _table(_table(_parsed(root / "Cargo.toml", tomllib.loads)).get("workspace"))
    return _matching(root, workspace.get("members"), "Cargo.toml")


def _pyproject(root: Path) -> Iterable[str]:
    return [str(PurePosixPath(file).parent) for file in files_of(root) if file.endswith("/pyproject.toml")]


_SOURCES: dict[str, Callable[[Path], Iterable[str | Path]]] = {
    ".gitmodules": _submodules,
    "go.work": _go_work,
    "package.json": _npm,
    "pnpm-workspace.yaml": _pnpm,
    "Cargo.toml": _cargo,
    "pyproject.toml": _pyproject,
}


def _matching(root: Path, patterns: Any, manifest: str) -> Iterator[str]:
    """Folders with a manifest that one of the patterns names, and none that begins with `!`."""
    named = [one for one in cast("list[Any]", patterns) if isinstance(one, str)] if isinstance(patterns, list) else []
    refused = {path for one in named if one.startswith("!") for path in _glob(root, one[1:])}
    for one in named:
        if not one.startswith("!"):
            yield from (str(path) for path in _glob(root, one) if path not in refused and (path / manifest).is_file())


def _glob(root: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in root.glob(pattern.strip("/")) if "node_modules" not in path.parts]
    except (ValueError, NotImplementedError, OSError):
        return []  # an absolute or empty pattern, or one that is none


def _text(file: Path) -> str:
    return (read_quickly(str(file), max_bytes=MAX_BYTES) or b"").decode("utf-8", "replace")


def _parsed(file: Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(_text(file))
    except (ValueError, yaml.YAMLError, RecursionError):
        return None


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
