"""The registry as one user of a team sees it: projects of other folders are neither opened nor named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from serena_central.core.errors import ProjectRefused, UnknownProject
from serena_central.projects.project import Project
from serena_central.projects.registry import KnownProject, ProjectRegistry, ProjectSnapshot
from serena_central.projects.root_policy import Opener


class VisibleProjects(ProjectRegistry):
    """Passes on what is about roots that `may_open` allows (real paths). Holds no state: made for each call."""

    def __init__(self, registry: ProjectRegistry, may_open: Callable[[Path], bool]) -> None:
        self._all = registry
        self._may_open = may_open

    async def run(self, **_how: Any) -> None:
        raise NotImplementedError("the registry itself runs")

    def find(self, asked: str, opener: Opener) -> Path:
        try:
            return self._visible(self._all.find(asked, opener), asked)
        except UnknownProject:
            raise self._unknown(asked) from None
        except ProjectRefused:
            # Its text may list the roots of several projects that share a name.
            roots = [Path(one.root) for one in self.snapshots() if one.name == asked]
            if len(roots) == 1:
                return roots[0]
            if asked.startswith(("/", "~")):
                raise
            raise self._unknown(asked) from None

    def check(self, path: Path) -> Path:
        try:
            return self._visible(self._all.check(path), str(path))
        except UnknownProject:
            raise self._unknown(str(path)) from None

    def root_of(self, path: Path) -> Path | None:
        root = self._all.root_of(path)
        return None if root is None else self._visible(root, str(path))

    def known_root_of(self, path: Path) -> Path | None:
        root = self._all.known_root_of(path)
        return root if root is not None and self._may_open(root) else None

    def known_names(self) -> list[str]:
        names = [one.name for one in self.snapshots()]
        return [one.name if names.count(one.name) == 1 else one.root for one in self.snapshots()]

    def open_projects(self) -> list[Project]:
        return [one for one in self._all.open_projects() if self._may_open(one.root)]

    def opened(self, root: str) -> Project | None:
        return self._all.opened(root) if self._may_open(Path(root)) else None

    async def open(self, root: Path) -> Project:
        return await self._all.open(self._visible(root, str(root)))

    def snapshots(self) -> list[ProjectSnapshot]:
        return [one for one in self._all.snapshots() if self._may_open(Path(one.root))]

    def close(self, root: Path, reason: str) -> None:
        raise ProjectRefused("Projects are shared by all users: an administrator closes them.")

    def remember(self, project: KnownProject) -> None:
        raise ProjectRefused("Projects are shared by all users: an administrator names them.")

    def forget(self, root: Path) -> None:
        raise ProjectRefused("Projects are shared by all users: an administrator removes them.")

    def attach(self, root: str) -> None:
        self._all.attach(root)

    def detach(self, root: str) -> None:
        self._all.detach(root)

    def _visible(self, root: Path, asked: str) -> Path:
        if not self._may_open(root):
            raise self._unknown(asked)
        return root

    def _unknown(self, asked: str) -> UnknownProject:
        return UnknownProject(asked, self.known_names())
