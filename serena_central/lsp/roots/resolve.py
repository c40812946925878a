"""Resolves a server's root for a file inside the project's boundary, by the policy of its catalogue entry.

The project's root is the last resort. Looks at folders on disk: some stats per ancestor.
"""

import os
from pathlib import Path

from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.roots.cargo import cargo_root
from serena_central.lsp.roots.go import Manifests, go_root
from serena_central.lsp.roots.place import ServerRoot, ancestors

_GLOB = frozenset("*?[")


def server_root(spec: ServerSpec, boundary: Path, file: Path, manifests: Manifests | None = None) -> ServerRoot:
    """Where the server for `file` runs: in `boundary`, the project's root, or below it.

    `manifests` are for callers that ask about many files; they hold until a file that marks roots changes.

    Raises:
        NoServerRoot: where the server has nothing to work for.
    """
    match spec.roots.policy:
        case "go":
            return go_root(spec.name, boundary, file, manifests or Manifests())
        case "cargo":
            return cargo_root(boundary, file)
        case "project":
            return ServerRoot(boundary, boundary)
        case "nearest" | "topmost" as policy:
            folder = _marked(spec.roots.markers, boundary, file, topmost=policy == "topmost")
            return ServerRoot(folder, folder)


def _marked(groups: tuple[tuple[str, ...], ...], boundary: Path, file: Path, *, topmost: bool) -> Path:
    folders = list(ancestors(boundary, file))
    for markers in groups:
        having = [folder for folder in folders if has_marker(folder, markers)]
        if having:
            return having[-1] if topmost else having[0]
    return boundary


def has_marker(folder: Path | str, markers: tuple[str, ...]) -> bool:
    """Whether a folder holds a file of one of these names or patterns. Thousands of folders may be asked about: of
    paths that are texts that takes a third of the time."""
    for marker in markers:
        if _GLOB.isdisjoint(marker):
            if os.path.exists(f"{folder}/{marker}"):  # noqa: PTH110
                return True
        elif next(Path(folder).glob(marker), None) is not None:
            return True
    return False
