"""Roots of gopls. The go command looks upward for go.work and go.mod, and does not stop at the project's root.

A module that a go.work inside the project uses is loaded with all that this go.work uses, by a server of its own. The
other modules of a project share one server, in which each is a workspace folder; no go.work, which could lie outside,
counts for them. See `go help work`, and gopls' "zero-config".
"""

import re
from collections.abc import Iterable
from pathlib import Path

from serena_central.core.errors import NoServerRoot
from serena_central.core.nofollow import read_following
from serena_central.lsp.roots.place import ServerRoot, ancestors

_USE = re.compile(r"^[^\S\n]*use\s*(?:\(([^()]*)\)|(\S+))", re.MULTILINE)
_REPLACED = re.compile(r"=>\s*[\"`]?(\.{1,2}(?:/[^\s\"`]*)?|/[^\s\"`]+)")
_COMMENT = re.compile(r"//.*")

WORK = "go.work"

_OF_OTHERS = frozenset({"vendor", "node_modules", "testdata"})
"""Folders whose modules are not the project's own: copies, and material of tests."""


class Manifests:
    """What go.mod and go.work files say, each read once: for as long as none of them changes.

    Workspaces of dozens of modules have thousands of folders, and each manifest names dozens of other modules.
    """

    def __init__(self) -> None:
        self._used: dict[Path, set[Path]] = {}
        self._joined: dict[Path, ServerRoot] = {}
        self._alone: dict[Path, ServerRoot] = {}

    def used(self, work: Path) -> set[Path]:
        """As `used_modules`."""
        if work not in self._used:
            self._used[work] = used_modules(work)
        return self._used[work]

    def joined(self, folder: Path) -> ServerRoot:
        """Of the modules that the go.work of a folder uses."""
        if folder not in self._joined:
            env = {"GOWORK": str(folder / WORK)}
            self._joined[folder] = ServerRoot(folder, folder, env, _graph(folder, self.used(folder / WORK)))
        return self._joined[folder]

    def alone(self, boundary: Path, module: Path) -> ServerRoot:
        """Of a module that no go.work uses."""
        if module not in self._alone:
            self._alone[module] = ServerRoot(boundary, module, {"GOWORK": "off"}, _graph(module, [module]))
        return self._alone[module]


def go_root(server: str, boundary: Path, file: Path, manifests: Manifests) -> ServerRoot:
    """Raises: NoServerRoot for a file in no module."""
    folders = list(ancestors(boundary, file))
    if file.name == WORK and folders:
        return manifests.joined(file.parent)
    module = next((folder for folder in folders if is_own_module(folder, boundary)), None)
    if module is None:
        raise NoServerRoot(
            server,
            f"not in a Go module: no go.mod in its folder or above, up to {boundary}. `go mod init` creates one",
        )
    for folder in folders:
        if module in manifests.used(folder / WORK):
            return manifests.joined(folder)
    return manifests.alone(boundary, module)


def _graph(root: Path, main: Iterable[Path]) -> frozenset[Path]:
    """Folders that the module graph leads to from main modules below `root`, where copies of modules may lie, too."""
    replaced = (replaced_modules(manifest) for manifest in (root / WORK, *(module / "go.mod" for module in main)))
    far = {module for module in main if not module.is_relative_to(root)}
    copies = {root / "vendor"} if (root / "vendor").is_dir() else ()
    return frozenset(far.union(copies, *replaced))


def is_own_module(folder: Path, boundary: Path) -> bool:
    """Whether a folder below the boundary is a module of the project, not a copy nor material of tests."""
    within = folder.relative_to(boundary).parts
    return not any(part in _OF_OTHERS or part.startswith(".") for part in within) and (folder / "go.mod").is_file()


def used_modules(work: Path) -> set[Path]:
    """Folders of the modules that a go.work uses; none where there is no such file."""
    try:
        text = _COMMENT.sub("", read_following(work).decode("utf-8", "replace"))
    except OSError:
        return set()
    names = [name.strip('"`') for match in _USE.findall(text) for part in match for name in part.split()]
    return {(work.parent / name).resolve() for name in names}


def replaced_modules(manifest: Path) -> set[Path]:
    """Folders that a go.mod or go.work has in place of modules."""
    try:
        text = _COMMENT.sub("", read_following(manifest).decode("utf-8", "replace"))
    except OSError:
        return set()
    return {(manifest.parent / name).resolve() for name in _REPLACED.findall(text)}
