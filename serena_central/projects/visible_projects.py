"""The projects and super-repos as one user of a team sees them: what lies in other folders is neither opened nor named.

A path is compared with the user's folders before anything of it is looked at, so that refusals do not tell what exists.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serena_central.config.layers import Problem
from serena_central.core.errors import OutsideAllowedRoots, ProjectRefused, UnknownProject
from serena_central.core.quoting import quoted
from serena_central.projects.project import Project
from serena_central.projects.registry import Enclosing, KnownProject, ProjectRegistry, ProjectSnapshot
from serena_central.projects.root_paths import real_path
from serena_central.projects.root_policy import Opener
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.superrepo.configuration import SuperRepo

MayOpen = Callable[[Path], bool]
"""Whether a real path is one of somebody's folders, or lies in one."""


class VisibleProjects(ProjectRegistry):
    """Passes on what is about roots that `may_open` allows (real paths). Holds no state: made for each call."""

    def __init__(self, registry: ProjectRegistry, may_open: MayOpen) -> None:
        self._all = registry
        self._may_open = may_open

    async def run(self, **_how: Any) -> None:
        raise NotImplementedError("the registry itself runs")

    def find(self, asked: str, opener: Opener) -> Path:
        if asked.startswith(("/", "~")):
            self._check_path(Path(asked), asked)
            with self._without_names(asked):
                return self._visible(self._all.find(asked, opener), asked)
        # By the names of visible projects alone: others may have the same.
        roots = [Path(one.root) for one in self.snapshots() if one.name == asked]
        if not roots:
            raise self._unknown(asked)
        if len(roots) == 1:
            return roots[0]
        raise ProjectRefused(
            f"{len(roots)} projects are named {quoted(asked)}. Pass project= with one path: "
            f"{', '.join(map(str, roots))}."
        )

    def check(self, path: Path) -> Path:
        self._check_path(path, str(path))
        with self._without_names(str(path)):
            return self._visible(self._all.check(path), str(path))

    def root_of(self, path: Path) -> Path | None:
        self._check_path(path, str(path))
        with self._without_names(str(path)):
            root = self._all.root_of(path)
            if root is None or self._may_open(root):
                return root
            # A repository of which the user has a part: that part is the project.
            real = real_path(path)
            parts = [folder for folder in (real, *real.parents) if self._may_open(folder) and folder.is_dir()]
            return self._all.check(parts[-1]) if parts else None

    def working_root(self, folder: Path) -> Path | None:
        self._check_path(folder, str(folder))
        with self._without_names(str(folder)):
            root = self._all.working_root(folder)
        return root if root is None or self._may_open(root) else self.root_of(folder)

    def known_root_of(self, path: Path) -> Path | None:
        root = self._all.known_root_of(path)
        return root if root is not None and self._may_open(root) else None

    def enclosing(self, project: Project) -> Enclosing | None:
        found = self._all.enclosing(project)
        return found and found._replace(may_open=self._may_open(found.root))

    def known_names(self) -> list[str]:
        names = [one.name for one in self.snapshots()]
        return [one.name if names.count(one.name) == 1 else one.root for one in self.snapshots()]

    def open_projects(self) -> list[Project]:
        return [one for one in self._all.open_projects() if self._may_open(one.root)]

    def opened(self, root: str) -> Project | None:
        return self._all.opened(root) if self._may_open(Path(root)) else None

    async def open(self, root: Path) -> Project:
        with self._without_names(str(root)):
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

    def _check_path(self, path: Path, asked: str) -> None:
        self._visible(real_path(path), asked)

    def _visible(self, root: Path, asked: str) -> Path:
        if not self._may_open(root):
            raise self._unknown(asked)
        return root

    @contextmanager
    def _without_names(self, asked: str) -> Generator[None]:
        """Refusals in it name no folder but the one that was asked for."""
        try:
            yield
        except UnknownProject:
            raise self._unknown(asked) from None
        except OutsideAllowedRoots:
            raise ProjectRefused(
                f"{quoted(asked)} is outside the folders that this server allows (allowed_roots). An administrator can "
                "change that."
            ) from None

    def _unknown(self, asked: str) -> UnknownProject:
        return UnknownProject(asked, self.known_names())


class VisibleSuperRepos(SuperRepos):
    """Super-repos with those modules alone that `may_open` allows. Holds no state: made for each call."""

    def __init__(self, repos: SuperRepos, may_open: MayOpen) -> None:
        self._all = repos
        self._may_open = may_open

    def at(self, root: Path) -> SuperRepo | None:
        return self._seen(self._all.at(root))

    def around(self, folder: Path) -> SuperRepo | None:
        return self._seen(self._all.around(folder))

    def problems_at(self, root: Path) -> list[Problem]:
        return self._all.problems_at(root) if self._may_open(root) else []

    def _seen(self, repo: SuperRepo | None) -> SuperRepo | None:
        return repo.seen_by(self._may_open) if repo is not None else None
