"""Which folder a server takes as its root for a file, inside the project's boundary.

The project's root is always the last resort. Looks at folders on disk: some stats per ancestor.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from serena_central.lsp.catalogue import ServerSpec

_GLOB = frozenset("*?[")
_WORKSPACE_TABLE = re.compile(r"^\s*\[workspace[\].]", re.MULTILINE)
_USE_BLOCK = re.compile(r"^\s*use\s*(?:\(([^)]*)\)|(\S+))", re.MULTILINE)


def server_root(spec: ServerSpec, project_root: Path, file: Path) -> Path:
    """The root by the entry's policy: a folder between `project_root` and the file's own, both included."""
    ancestors = list(_ancestors(project_root, file))
    policy = spec.roots.policy
    if policy == "project" or not ancestors:
        return project_root
    if policy == "go":
        return _go_root(ancestors) or project_root
    if policy == "cargo":
        return _cargo_root(ancestors) or project_root
    for group in spec.roots.markers:
        having = [folder for folder in ancestors if _has_marker(folder, group)]
        if having:
            return having[-1] if policy == "topmost" else having[0]
    return project_root


def _ancestors(project_root: Path, file: Path) -> Iterator[Path]:
    """From the file's folder upward to the project's root; none for a file outside."""
    if not file.is_relative_to(project_root):
        return
    for folder in file.parents:
        yield folder
        if folder == project_root:
            return


def _has_marker(folder: Path, markers: tuple[str, ...]) -> bool:
    for marker in markers:
        if _GLOB.isdisjoint(marker):
            if (folder / marker).exists():
                return True
        elif next(folder.glob(marker), None) is not None:
            return True
    return False


def _go_root(ancestors: list[Path]) -> Path | None:
    """The nearest go.mod's folder, or that of the go.work which uses it (`go help work`)."""
    module = next((folder for folder in ancestors if (folder / "go.mod").is_file()), None)
    for folder in ancestors:
        work = folder / "go.work"
        if work.is_file() and (module is None or module in _used_modules(work)):
            return folder
    return module


def _used_modules(work: Path) -> set[Path]:
    try:
        text = re.sub(r"//.*", "", work.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return set()
    names = [name.strip('"`') for match in _USE_BLOCK.findall(text) for part in match for name in part.split()]
    return {(work.parent / name).resolve() for name in names}


def _cargo_root(ancestors: list[Path]) -> Path | None:
    """rust-project.json's folder, else that of the workspace around the nearest package, else the package's."""
    described = next((folder for folder in ancestors if (folder / "rust-project.json").is_file()), None)
    packages = [folder for folder in ancestors if (folder / "Cargo.toml").is_file()]
    workspace = next((folder for folder in packages if _is_workspace(folder / "Cargo.toml")), None)
    return described or workspace or (packages[0] if packages else None)


def _is_workspace(manifest: Path) -> bool:
    try:
        return bool(_WORKSPACE_TABLE.search(manifest.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
