"""The names by which a file is reached through a package manager's links: `node_modules/NAME` leads to a workspace's
package, and a server that reached a file there takes that for its name.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from serena_central.core.nofollow import read_following

MANIFEST = "package.json"


class Links:
    """Links as they are on disk during one batch of notifications: each package is looked up once."""

    def __init__(self, importing: Iterable[Path]) -> None:
        """`importing` are folders of files that import packages."""
        self._folders = {above for folder in importing for above in (folder, *folder.parents)}
        self._packages: dict[Path, Path | None] = {}
        self._links: dict[Path, Collection[Path]] = {}

    def names(self, path: Path) -> list[Path]:
        """Other names of a file that is there, or was."""
        package = self._package(path.parent)
        if package is None:
            return []
        if package not in self._links:
            self._links[package] = list(self._find(package))
        return [link / path.relative_to(package) for link in self._links[package]]

    def _package(self, folder: Path) -> Path | None:
        """The nearest folder with a manifest."""
        if folder not in self._packages:
            if (folder / MANIFEST).is_file():
                self._packages[folder] = folder
            else:
                self._packages[folder] = self._package(folder.parent) if folder != folder.parent else None
        return self._packages[folder]

    def _find(self, package: Path) -> Iterator[Path]:
        name = _name(package / MANIFEST)
        for folder in self._folders if name else ():
            link = folder / "node_modules" / name
            with suppress(OSError):
                if link.is_symlink() and link.resolve() == package.resolve():
                    yield link


def _name(manifest: Path) -> str:
    """The package's name; empty where it has none, or what could not be a folder's."""
    with suppress(OSError, ValueError, RecursionError):
        found: Any = json.loads(read_following(manifest).decode("utf-8"))
        name = cast("dict[str, Any]", found).get("name") if isinstance(found, dict) else None
        if isinstance(name, str) and ".." not in name and not name.startswith("/"):
            return name
    return ""
