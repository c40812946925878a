"""A registry of real projects, with a home folder of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from serena_central.config.load import load_project_config, load_server_config
from serena_central.config.policies import PoolPolicy
from serena_central.config.settings import ProjectSettings
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from serena_central.files.boundary import OPEN
from serena_central.files.watch import Watches
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.project import Project
from serena_central.projects.registry import KnownProject, ProjectRegistry
from serena_central.projects.root_settings import SuperRepos
from tests.support.central import sources_in


class Registered:
    """The registry, and what happens while it builds a project."""

    def __init__(self, folder: Path, *, allowed: tuple[Path, ...] = (), known: tuple[KnownProject, ...] = ()) -> None:
        self.bus = EventBus()
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.built: list[Path] = []
        self.before_build: Callable[[], None] = lambda: None
        places = Places(self.home / "central")
        self.pool = LanguageServerPool(bus=self.bus, places=places, policy=PoolPolicy())
        self.places = places
        self.applier = Applier(Journal(places.journal))
        self.watches = Watches()
        server = load_server_config({}, sources_in(folder))
        self.repos = SuperRepos(lambda root: load_project_config(root, server, sources=sources_in(folder)))
        self.registry = ProjectRegistry(
            bus=self.bus,
            build=self._build,
            interest=self.pool,
            allowed_roots=allowed,
            known=known,
            home=self.home,
        )

    def _build(self, root: Path) -> Project:
        self.before_build()
        self.built.append(root)
        languages = ProjectLanguages(root, self.pool, self.places, trusted=True, access=OPEN)
        repo = self.repos.of(root)
        settings = repo.settings_in(root, ProjectSettings()) if repo else ProjectSettings()
        return Project(
            root,
            settings,
            languages,
            access=OPEN,
            watches=self.watches,
            applier=self.applier,
            edited=lambda _edit: None,
        )

    def kinds(self) -> list[str]:
        return [event.kind for event in self.bus.recent() if event.kind.startswith("project.")]


@asynccontextmanager
async def running(world: Registered) -> AsyncGenerator[ProjectRegistry]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.watches.run)
            await tasks.start(world.registry.run)
            yield world.registry
            tasks.cancel_scope.cancel()
