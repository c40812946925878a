"""Keeps a server to its root where it would take a folder above it for its project, and git ignores the root there.

Such a server would search none of the root's files. Where nothing ignores the root, the outer project is left to it:
its settings are meant for the root as well.
"""

from pathlib import Path
from typing import Any, NamedTuple

from serena_central.files.repository import IGNORE_FILE, is_ignored_below
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.spec import OuterProject
from serena_central.lsp.roots.python import configured_in

NO_CONFIGURATION = Path(__file__).with_name("no_configuration.toml")
"""Stands in for the files of the outer project, which are not about the root: it sets nothing."""


class Reach(NamedTuple):
    """What a server takes for its project: its root, or the folder `outer` above it. `settings` keep it to its root;
    none where it needs none."""

    settings: dict[str, Any]
    outer: Path | None = None


def reach(spec: ServerSpec, root: Path) -> Reach:
    """Of a server at `root`. Reads some small files above the root."""
    outer = spec.outer_project
    project = root if outer is None else _project(root, outer)
    if outer is None or project == root:
        return Reach({})
    if not is_ignored_below(project, root):
        return Reach({}, project)
    settings: Any = str(NO_CONFIGURATION)
    for key in reversed(outer.setting.split(".")):
        settings = {key: settings}
    return Reach(settings)


def deciding(spec: ServerSpec, root: Path) -> list[str]:
    """Files, there or not, that decide which folder that is."""
    if spec.outer_project is None:
        return []
    return [str(folder / name) for folder in (root, *root.parents) for name in (*spec.outer_project.files, IGNORE_FILE)]


def _project(root: Path, outer: OuterProject) -> Path:
    """The folder that the server takes: the nearest that is configured for it, else the nearest with one of the
    files."""
    nearest: Path | None = None
    for folder in (root, *root.parents):
        for name, table in outer.files.items():
            if not (folder / name).is_file():
                continue
            if not table or configured_in(folder, {name: (table,)}):
                return folder
            nearest = nearest or folder
    return nearest or root
