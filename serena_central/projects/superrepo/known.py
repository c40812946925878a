"""Finds the super-repo that a folder lies in, and keeps what was read until its files change."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serena_central.config.layers import Loaded
from serena_central.config.settings import ProjectSettings
from serena_central.projects.registry import real_path
from serena_central.projects.superrepo.configuration import SuperRepo, super_repo_of

CONFIGURATION = (".serena/project.yml", ".serena/project.local.yml")

MOST_KEPT = 1000
"""Roots whose configuration is remembered; a box has fewer."""

Facts = tuple[tuple[int, int, int] | None, ...]


class _Kept(NamedTuple):
    facts: Facts
    repo: SuperRepo | None


class SuperRepos:
    """Super-repos by root. Belongs to the event loop's thread; a lookup costs a few stats of small files."""

    def __init__(
        self,
        load: Callable[[Path], Loaded[ProjectSettings]],
        *,
        changed: Callable[[SuperRepo], None] = lambda _repo: None,
    ) -> None:
        """`load` reads one root's settings; `changed` hears of every super-repo that was read anew."""
        self._load = load
        self._changed = changed
        self._kept: dict[Path, _Kept] = {}

    def at(self, root: Path) -> SuperRepo | None:
        """The super-repo whose root this is, as its files are now."""
        facts = tuple(_facts(root / name) for name in CONFIGURATION)
        if facts[0] is None:
            self._kept.pop(root, None)
            return None
        kept = self._kept.get(root)
        if kept is None or kept.facts != facts:
            repo = super_repo_of(root, self._load(root))
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[root] = _Kept(facts, repo)
            if repo is not None:
                self._changed(repo)
        return kept.repo

    def worked_in(self, folder: str | None) -> SuperRepo | None:
        """The super-repo of a session that works in this folder."""
        return self.around(real_path(Path(folder))) if folder else None

    def around(self, folder: Path) -> SuperRepo | None:
        """The nearest super-repo that a real folder is, or lies in."""
        for root in (folder, *folder.parents):
            repo = self.at(root)
            if repo is not None:
                return repo
        return None


def _facts(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
