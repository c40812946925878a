"""Builds the project of a root: its settings, its own and the super-repo's, and its parts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from serena_central.config.layers import DEFAULT, Loaded, Problem
from serena_central.config.settings import ProjectSettings
from serena_central.core.event_kinds import ProjectSettingsProblem
from serena_central.core.events import EventBus, Severity
from serena_central.core.places import Places
from serena_central.editing.transaction import Applier
from serena_central.files.corpus import Corpora
from serena_central.files.shared_trees import SharedTrees
from serena_central.files.watch import Watches
from serena_central.lsp.installers.auto import AutoInstaller
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.editing.edit_records import AppliedEdit
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.project import Project
from serena_central.projects.root_settings import RootSettings
from serena_central.store.index_cache import IndexCache
from serena_central.symbols.indexing.policy import IndexingPolicy
from serena_central.symbols.syntax.reader import SyntaxReader

INDEXING = IndexingPolicy()
"""Of all projects."""

MOST_NAMED = 5
"""Keys in one note; all of them are in events."""


@dataclass(frozen=True, kw_only=True)
class ProjectBuilder:
    """What every project of this server is built with. `edited` is called for every operation on a
    project's files, `amended` for one that grew by what followed it."""

    settings: RootSettings
    pool: LanguageServerPool
    syntax: SyntaxReader
    places: Places
    bus: EventBus
    installer: AutoInstaller
    applier: Applier
    watches: Watches
    shared_trees: SharedTrees
    corpora: Corpora
    edited: Callable[[AppliedEdit], None]
    amended: Callable[[AppliedEdit], Awaitable[None]]

    def build(self, root: Path) -> Project:
        """Does no long work. What is wrong with the settings is said on the bus, and the rest counts."""
        seen = self.settings.stamp(root)  # before the files are read: a change in between is noticed
        found, settings = self._settings(root)
        repo = self.settings.super_repos.around(root)
        access = self.settings.claude.access(root)
        is_held_back = not found.trusted and self.settings.trust.is_trusted(root)
        above = self.settings.strangers_above(root) if is_held_back else None
        languages = ProjectLanguages(
            root,
            self.pool,
            self.places,
            trusted=found.trusted,
            access=access,
            above=above,
            languages=settings.languages,
            chosen=settings.language_servers,
            users=self.settings.loaded.value.language_servers,
            encoding=settings.encoding,
            around=repo.root if repo else None,
            python=settings.python,
            side_percent=settings.side_language_percent,
            syntax=self.syntax,
            installations=self.installer,
            path_watch=self.settings.watch,
        )
        misspelt = [problem for problem in found.problems if problem.kind in ("wrong", "unknown")]
        for key, text in languages.selection.problems:
            origins = found.origins.get(f"language_servers.{key}") or found.origins.get(key, (DEFAULT,))
            misspelt.append(Problem("wrong", key, text, origins[-1]))
            self._say(root, misspelt[-1])
        cache = IndexCache(self.places.cache, root)
        project = Project(
            root,
            settings,
            languages,
            cache,
            access=access,
            watches=self.watches,
            applier=self.applier,
            edited=self.edited,
            amended=self.amended,
            shared_trees=self.shared_trees,
            corpora=self.corpora,
            indexing=INDEXING,
            path_watch=self.settings.watch,
        )
        project.settings_stamp = seen
        project.settings_problems += map(str, misspelt)
        held_back = [problem.key for problem in found.problems if problem.kind == "untrusted"]
        if held_back:
            project.restrictions.append(f"some of its settings are ignored ({_listed(held_back)})")
        project.strangers_above = above
        if above is not None:
            project.restrictions.append("its language servers are restricted")
        return project

    def _settings(self, root: Path) -> tuple[Loaded[ProjectSettings], ProjectSettings]:
        repo = self.settings.super_repos.of(root)
        found = self.settings.read(root)
        for problem in found.problems:
            self._say(root, problem)
        return found, repo.settings_in(root, found.value) if repo else found.value

    def _say(self, root: Path, problem: Problem) -> None:
        self.bus.publish(ProjectSettingsProblem(message=str(problem), severity=Severity.WARNING, project=root.name))


def _listed(keys: list[str]) -> str:
    more = len(keys) - MOST_NAMED
    return ", ".join(keys[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
