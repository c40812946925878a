"""Finds the super-repo that a folder lies in, and caches what it read until its files change."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from serena_central.config.layers import Loaded, Problem
from serena_central.config.settings import ProjectSettings
from serena_central.core.lru import Lru
from serena_central.files.path_watch import PathWatch
from serena_central.projects.registry import real_path
from serena_central.projects.superrepo.configuration import SuperRepo, super_repo_of

CONFIGURATION = (".serena/project.yml", ".serena/project.local.yml")

WHOLE_FILE = "file"
"""The key of a problem with a file that can't be read as a whole."""

MOST_KEPT = 1000
"""Roots whose configuration is remembered; a box has fewer."""

Facts = tuple[Hashable, ...]


class _Kept(NamedTuple):
    facts: Facts
    stamp: Hashable
    repo: SuperRepo | None
    problems: list[Problem]


class SuperRepos:
    """Super-repos by root. Belongs to the event loop's thread; a lookup costs a few stats of small files."""

    def __init__(
        self,
        load: Callable[[Path], Loaded[ProjectSettings]],
        *,
        changed: Callable[[SuperRepo], None] = lambda _repo: None,
        stamp: Callable[[], Hashable] = lambda: None,
        watch: PathWatch | None = None,
    ) -> None:
        """`load` reads one root's settings; `changed` is called for every super-repo that was reloaded; `stamp`
        differs when other problems may be found in the same files. Without `watch` every lookup reads the disk."""
        self._watch = watch or PathWatch(watches=False)
        self._load = load
        self._changed = changed
        self._stamp = stamp
        self._kept: Lru[Path, _Kept] = Lru(MOST_KEPT)

    def at(self, root: Path) -> SuperRepo | None:
        """The super-repo whose root this is, as its files are now."""
        return self._watch.get(("super-repo", root), lambda: _files((root,)), lambda: self._at(root))

    def _at(self, root: Path) -> SuperRepo | None:
        kept = self._current(root)
        return kept.repo if kept else None

    def problems_at(self, root: Path) -> list[Problem]:
        """What of the settings at a root has no effect, of a super-repo or any other project."""
        kept = self._current(root)
        if kept is not None and kept.stamp != self._stamp():
            kept = self._read(root, kept.facts, kept)
        return kept.problems if kept else []

    def _current(self, root: Path) -> _Kept | None:
        first = _facts(root / CONFIGURATION[0])
        if first is None:
            self._kept.discard(root)
            return None
        facts = (first, *(_facts(root / name) for name in CONFIGURATION[1:]))
        kept = self._kept.get(root)
        if kept is None or kept.facts != facts:
            kept = self._read(root, facts, kept)
        return kept

    def _read(self, root: Path, facts: Facts, before: _Kept | None) -> _Kept:
        stamp, loaded = self._stamp(), self._load(root)
        repo = super_repo_of(root, loaded)
        problems = [*loaded.problems, *(repo.problems if repo else ())]
        if repo is None and before is not None and any(problem.key == WHOLE_FILE for problem in loaded.problems):
            repo = before.repo  # half written, most likely: its modules don't vanish for that
        kept = self._kept[root] = _Kept(facts, stamp, repo, problems)
        if repo is not None:
            self._changed(repo)
        return kept

    def worked_in(self, active_root: str | None, folder: str | None) -> SuperRepo | None:
        """The super-repo of a session: by the root of its active project, else by the folder that its client works
        in."""
        if active_root:
            return self.around(Path(active_root))  # a root is a real path
        return self.around(real_path(Path(folder))) if folder else None

    def of(self, root: Path) -> SuperRepo | None:
        """The super-repo that a real root is, or is a module of."""
        repo = self.around(root)
        return repo if repo and (root == repo.root or repo.says_of(root)) else None

    def problems_around(self, folder: Path) -> list[Problem]:
        """What of the settings in a real folder and those above has no effect."""
        return [problem for root in (folder, *folder.parents) for problem in self.problems_at(root)]

    def around(self, folder: Path) -> SuperRepo | None:
        """The nearest super-repo that a real folder is, or lies in."""
        folders = (folder, *folder.parents)
        return self._watch.get(
            ("super-repo around", folder),
            lambda: _files(folders),
            lambda: next((repo for root in folders if (repo := self._at(root)) is not None), None),
        )


def _files(folders: Iterable[Path]) -> Iterator[str]:
    return (f"{str(folder).rstrip('/')}/{name}" for folder in folders for name in CONFIGURATION)


def _facts(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
