"""Modules that use another one by path although one server doesn't load both together: their references may be missed.

Go's `replace` and Cargo's `path` lead from one module into another one's folder. Where no go.work or Cargo workspace
joins the two, a server that is asked in the module that is used knows nothing of its users.
"""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from serena_central.core.nofollow import read_following
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.roots.cargo import MANIFEST, cargo_root
from serena_central.lsp.roots.go import WORK, is_own_module, replaced_modules, used_modules
from serena_central.lsp.roots.place import ServerRoot


def users_elsewhere(spec: ServerSpec, boundary: Path, place: ServerRoot, paths: Iterable[str]) -> list[Path]:
    """Folders of the modules that use what runs at `place`, and that its server doesn't load. `paths` are the
    project's files, relative to the boundary. Reads the modules' manifests."""
    match spec.roots.policy:
        case "go":
            modules = [boundary / path for path in paths if path.rpartition("/")[2] == "go.mod"]
            return sorted(set(_go_users(boundary, place, modules)))
        case "cargo":
            packages = [boundary / path for path in paths if path.rpartition("/")[2] == MANIFEST]
            return sorted(set(_cargo_users(boundary, place, packages)))
        case _:
            return []


def _go_users(boundary: Path, place: ServerRoot, manifests: Iterable[Path]) -> Iterator[Path]:
    together = used_modules(place.root / WORK) if place.env["GOWORK"] != "off" else {place.folder}
    for manifest in manifests:
        folder = manifest.parent
        if folder in together or together.isdisjoint(replaced_modules(manifest)):
            continue
        if is_own_module(folder, boundary):
            yield folder


def _cargo_users(boundary: Path, place: ServerRoot, manifests: Iterable[Path]) -> Iterator[Path]:
    for manifest in manifests:
        try:
            table: Any = tomllib.loads(read_following(manifest).decode("utf-8"))
        except (OSError, ValueError):
            continue
        used = {(manifest.parent / name).resolve() for name in _paths(table)}
        near = [folder for folder in used if folder.is_relative_to(place.root)]
        if near and cargo_root(boundary, manifest).root != place.root:
            roots = (cargo_root(boundary, folder / MANIFEST).root for folder in near)
            if place.root in roots:
                yield manifest.parent


def _paths(table: object, within: str = "") -> Iterator[str]:
    """Every `path` of a dependency in a manifest, also of one for some targets only."""
    if not isinstance(table, dict):
        return
    for name, value in cast("dict[str, Any]", table).items():
        inside = within or (name if name.endswith("dependencies") or name in ("patch", "replace") else "")
        if inside and name == "path" and isinstance(value, str):
            yield value
        else:
            yield from _paths(value, inside)
