"""Roots of rust-analyzer: the Cargo workspace that a file's package belongs to.

Cargo's own rule, read from the manifests: asking `cargo metadata` takes a process for each package, and a toolchain.
"""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from serena_central.core.nofollow import read_following
from serena_central.files.stamp import Stamp
from serena_central.lsp.roots.place import ServerRoot, ancestors

Table = dict[str, Any]

DESCRIBED = "rust-project.json"
MANIFEST = "Cargo.toml"


def cargo_root(boundary: Path, file: Path) -> ServerRoot:
    """rust-project.json's folder, else that of the workspace around the nearest package, else the package's own."""
    folders = list(ancestors(boundary, file))
    described = next((folder for folder in folders if (folder / DESCRIBED).is_file()), None)
    package = next((folder for folder in folders if (folder / MANIFEST).is_file()), None)
    root = described or (_workspace(package, boundary) if package else None) or package or boundary
    return ServerRoot(root, root)


def _workspace(package: Path, boundary: Path) -> Path | None:
    """The workspace's root (The Cargo Book, "Workspaces"), if it lies inside the boundary."""
    manifest = _manifest(package)
    if "workspace" in manifest:
        return package
    named = _table(manifest, "package").get("workspace")
    if isinstance(named, str):
        root = (package / named).resolve()
        return root if root.is_relative_to(boundary) else None
    for folder in ancestors(boundary, package):
        workspace = _manifest(folder).get("workspace")
        if isinstance(workspace, dict):
            return None if _is_excluded(package, folder, cast("Table", workspace)) else folder
    return None


def _is_excluded(package: Path, root: Path, workspace: Table) -> bool:
    """Excluded, and not named as a member."""
    excluded = any(package.is_relative_to(root / name) for name in _names(workspace, "exclude"))
    return excluded and not any(package.is_relative_to(root / name) for name in _names(workspace, "members"))


def _names(table: Table, key: str) -> list[str]:
    named: Any = table.get(key)
    return [name for name in cast("list[Any]", named) if isinstance(name, str)] if isinstance(named, list) else []


def _table(manifest: Table, key: str) -> Table:
    table: Any = manifest.get(key)
    return cast("Table", table) if isinstance(table, dict) else {}


def _manifest(folder: Path) -> Table:
    """The folder's Cargo.toml; empty where there is none that can be read."""
    try:
        return _parsed(folder / MANIFEST, Stamp.of((folder / MANIFEST).stat()))
    except OSError:
        return {}


@lru_cache(maxsize=512)
def _parsed(manifest: Path, stamp: Stamp) -> Table:
    """`stamp` is what makes a changed manifest another one.

    Raises:
        OSError
    """
    try:
        return tomllib.loads(read_following(manifest).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
