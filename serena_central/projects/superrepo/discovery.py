"""Discovers the probable modules of a repository from its manifests, without running anything.

A folder inside another one that was found is part of that module. A folder that only looks like a
module is kept with the reason.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

import yaml

from serena_central.core.words import counted
from serena_central.files.repository import OuterRules
from serena_central.files.text import read_quickly
from serena_central.files.walk import TreeScan
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.roots.go import used_modules

MAX_BYTES = 1_000_000
"""Of a file that lists parts; none is a hundredth of that."""

MANIFESTS = (
    *("go.mod", "Cargo.toml", "pyproject.toml", "setup.py", "package.json", "CMakeLists.txt", "meson.build"),
    *("pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "composer.json", "mix.exs", "pubspec.yaml"),
    *("Package.swift", "deno.json", "dub.json", "rebar.config", "dune-project", "build.zig"),
)
"""Files that say "here is a package"; of several in a folder the first one tells how it was found."""

AGENTS = ".claude"
"""A folder of agents' tools at the root: a module where it holds code."""

_COPIES = frozenset({"vendor", "third_party", "node_modules", "testdata", "fixtures", "examples", "site-packages"})
"""Folders whose packages are others', or material of tests and guides."""

_SUBMODULE = re.compile(r"^[^\S\n]*path[^\S\n]*=[^\S\n]*\"?([^\"\n]*[^\"\s])", re.MULTILINE)
_PARTS_OF_ONE = re.compile(r"^[^\S\n]*\[workspace|\"workspaces\"\s*:|<modules>", re.MULTILINE)
_PROJECT = re.compile(r"^[^\S\n]*project\s*\(", re.MULTILINE | re.IGNORECASE)


class ModuleCandidate(NamedTuple):
    """A folder that is probably a module. `path` is relative to the root, POSIX; `found_by` names the file."""

    path: str
    found_by: str


class SkippedFolder(NamedTuple):
    """A folder that is not a module, and why."""

    path: str
    reason: str


class Discovered(NamedTuple):
    modules: list[ModuleCandidate]
    left_out: list[SkippedFolder]


def discover(root: Path) -> Discovered:
    """Modules in a real folder, by path, and what looks like one. What can't be read counts as not there."""
    scan = _scan(root)
    files = sorted(scan.take())
    found: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, paths in _LISTS.items():
        for path in paths(root):
            inside = _inside(root, path)
            if inside is not None:
                found.setdefault(inside, name)
            elif (named := _named(root, path)) is not None:
                left_out[named] = f"{name} names it, but the folder does not exist"
    _nested(root, scan, found, left_out)
    _by_manifests(root, files, found, left_out)
    modules = _outermost(root, found, files, left_out)
    _rest(files, modules, left_out)
    return Discovered(modules, [SkippedFolder(path, left_out[path]) for path in sorted(left_out)])


def _nested(root: Path, scan: TreeScan, found: dict[str, str], left_out: dict[str, str]) -> None:
    """Repositories inside this one: submodules that are checked out, others, and worktrees, which are copies."""
    for folder in scan.folders.values():
        path = folder.path.rstrip("/")
        if folder.nested and "/worktrees/" in _text(root / path / ".git"):
            left_out[path] = "a worktree: a copy of a repository"
        elif folder.nested:
            found.setdefault(path, ".git")
    for path in [path for path, name in found.items() if name == ".gitmodules" and not any((root / path).iterdir())]:
        del found[path]
        left_out[path] = ".gitmodules names it, but it is not checked out (git submodule update --init)"


def _by_manifests(root: Path, files: Iterable[str], found: dict[str, str], left_out: dict[str, str]) -> None:
    """Packages that no list names, and the agents' folder."""
    refused = {path for name in ("package.json", "pnpm-workspace.yaml") for path in _refused(root, name)}
    manifests = [(PurePosixPath(file).parent, PurePosixPath(file).name) for file in files if file.endswith(MANIFESTS)]
    for folder, name in sorted(manifests, key=lambda one: MANIFESTS.index(one[1]) if one[1] in MANIFESTS else -1):
        path = folder.as_posix()
        if path == "." or name not in MANIFESTS or path in found:
            continue
        if copies := sorted(_COPIES & set(folder.parts)):
            left_out.setdefault(path, f"has a {name}, but is inside {copies[0]}")
        elif folder.parts[0] != AGENTS and any(part.startswith(".") for part in folder.parts):
            left_out.setdefault(path, f"has a {name}, but is inside a hidden folder")
        elif path in refused:
            left_out.setdefault(path, "the workspace's list excludes it")
        elif _is_package(root / folder, name):
            found[path] = name
    if any(file.startswith(f"{AGENTS}/") and _is_code(file) for file in files):
        found[AGENTS] = AGENTS


def _is_package(folder: Path, manifest: str) -> bool:
    """Whether a manifest begins a package: CMake's and meson's also stand in folders of one."""
    if manifest in ("CMakeLists.txt", "meson.build"):
        return bool(_PROJECT.search(_text(folder / manifest))) or not (folder.parent / manifest).is_file()
    return True


def _outermost(
    root: Path, found: dict[str, str], files: Iterable[str], left_out: dict[str, str]
) -> list[ModuleCandidate]:
    """Without folders in others. One that holds modules and no code beside them is none itself, unless they are one
    workspace."""
    own, inner = Counter[str](), Counter[str]()
    for file in filter(_is_code, files):
        holders = _above(file, found)
        own.update(holders[-1:])
        inner.update(holders[:-1])
    modules = dict(found)
    for path, name in found.items():
        if name in MANIFESTS and inner[path] and not own[path] and not _PARTS_OF_ONE.search(_text(root / path / name)):
            del modules[path]
            left_out[path] = "contains modules, but no code of its own"
    for path in list(modules):
        if outer := _above(path, modules):
            left_out[path] = f"has a {modules[path]}, but is part of {outer[0]}"
    return [ModuleCandidate(path, modules[path]) for path in sorted(modules) if not _above(path, modules)]


def _rest(files: Iterable[str], modules: Iterable[ModuleCandidate], left_out: dict[str, str]) -> None:
    """Code beside all modules, by folder at the root."""
    known = {module.path for module in modules}
    count = Counter[str]()
    for file in filter(_is_code, files):
        folder, slash, _ = file.partition("/")
        if folder not in _COPIES and not _above(file, known):
            count[folder if slash else "."] += 1
    for folder, number in count.items():
        where = "outside the modules" if folder == "." else "but no package manifest"
        left_out.setdefault(folder, f"{counted(number, 'file')} with code{'' if folder == '.' else ','} {where}")


def _above(path: str, folders: Container[str]) -> list[str]:
    """Those of the folders that a path lies in, the outermost first."""
    parents = [str(parent) for parent in PurePosixPath(path).parents]
    return [parent for parent in reversed(parents) if parent in folders]


def _is_code(file: str) -> bool:
    known = catalogue()
    kinds = [claim.kind for claim in known.claims(file) if not claim.markers and "." not in claim.kind.identifier]
    return any(not known.languages[kind.language].data for kind in kinds)


def _scan(root: Path) -> TreeScan:
    outer = OuterRules(root)
    scan = TreeScan(root, outer, use_git=True)
    scan.look_everywhere(outer)
    return scan


def files_of(root: Path) -> list[str]:
    """Files of one root as the server will see them: neither ignored ones nor those of nested repositories."""
    return sorted(_scan(root).take())


def _inside(root: Path, path: str | Path) -> str | None:
    """The folder's path in the root; None for the root itself, for what lies elsewhere and for files."""
    try:
        place = (root / path).resolve()
        usable = place != root and place.is_relative_to(root) and place.is_dir()
    except (OSError, RuntimeError, ValueError):
        return None
    return place.relative_to(root).as_posix() if usable else None


def _named(root: Path, path: str | Path) -> str | None:
    """A path below the root, as a list names it, where nothing is; None for what lies elsewhere."""
    try:
        place = (root / path).resolve()
        return place.relative_to(root).as_posix() if place != root and not place.exists() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _submodules(root: Path) -> Iterable[str]:
    return _SUBMODULE.findall(_text(root / ".gitmodules"))


def _go_work(root: Path) -> Iterable[Path]:
    return used_modules(root / "go.work")


def _npm(root: Path) -> Iterable[str]:
    return _matching(root, _patterns(root, "package.json"), "package.json")


def _pnpm(root: Path) -> Iterable[str]:
    return _matching(root, _patterns(root, "pnpm-workspace.yaml"), "package.json")


def _patterns(root: Path, name: str) -> Any:
    """Of folders, as npm's or pnpm's list of a workspace has them."""
    if name == "pnpm-workspace.yaml":
        return _table(_parsed(root / name, yaml.safe_load)).get("packages")
    workspaces = _table(_parsed(root / name, json.loads)).get("workspaces")
    return _table(workspaces).get("packages") if isinstance(workspaces, dict) else workspaces


def _refused(root: Path, name: str) -> Iterable[str]:
    """Folders that such a list leaves out."""
    named = _strings(_patterns(root, name))
    return [path.relative_to(root).as_posix() for one in named if one.startswith("!") for path in _glob(root, one[1:])]


def _cargo(root: Path) -> Iterable[str]:
    workspace = _table(_table(_parsed(root / "Cargo.toml", tomllib.loads)).get("workspace"))
    return _matching(root, workspace.get("members"), "Cargo.toml")


_LISTS: dict[str, Callable[[Path], Iterable[str | Path]]] = {
    ".gitmodules": _submodules,
    "go.work": _go_work,
    "package.json": _npm,
    "pnpm-workspace.yaml": _pnpm,
    "Cargo.toml": _cargo,
}
"""Files at the root that list parts."""


def _matching(root: Path, patterns: Any, manifest: str) -> Iterator[str]:
    """Folders with a manifest that one of the patterns names, and none that begins with `!`."""
    named = _strings(patterns)
    refused = {path for one in named if one.startswith("!") for path in _glob(root, one[1:])}
    for one in named:
        if not one.startswith("!"):
            yield from (str(path) for path in _glob(root, one) if path not in refused and (path / manifest).is_file())


def _strings(patterns: Any) -> list[str]:
    return [one for one in cast("list[Any]", patterns) if isinstance(one, str)] if isinstance(patterns, list) else []


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
