"""Which projects one tool call means, and why: the rules of precedence, in their order, and nothing else.

1. the `project` argument: a name, a path, several of them, or `*`;
2. an absolute path among the call's arguments: the project that contains it;
3. the session's active project;
4. the session's working folder, up to the nearest marker of a project.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import anyio
import msgspec

from serena_central.core.errors import SerenaCentralError, UnknownProject
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry

EVERYTHING = "*"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a call says about the projects that it means. `paths` are its path arguments, as given."""

    project: str | list[str] | None = None
    paths: Sequence[str] = ()
    semantic_context: str | None = None
    active_root: str | None = None
    working_folder: str | None = None


class Scope(NamedTuple):
    """The projects of one call. `grouped`: the caller asked for several, so the answer is grouped by project.

    `failures` are those of several that could not be opened, by the name that the call used.
    """

    projects: list[Project]
    reason: str
    grouped: bool = False
    failures: Mapping[str, SerenaCentralError] = MappingProxyType({})


async def resolve_scope(registry: ProjectRegistry, ask: Ask) -> Scope:
    """Applies the rules; opens projects that are not open yet.

    Raises:
        UnknownProject: no rule gives one; lists those that are known.
        ProjectRefused: the root found must not become a project.
        SerenaCentralError: the one project that is meant can't be opened.
    """
    if ask.project:
        return await _named(registry, ask.project)
    for path in ask.paths:
        if path.startswith(("/", "~")):
            root = registry.root_of(Path(path))
            if root is not None:
                return Scope([await registry.open(root)], f"it contains {path}")
    if ask.active_root is not None:
        return Scope([await registry.open(Path(ask.active_root))], "the session's active project")
    if ask.working_folder is not None:
        root = registry.root_of(Path(ask.working_folder))
        if root is not None:
            return Scope([await registry.open(root)], "the session's working folder")
    raise UnknownProject(None, registry.known_names())


async def _named(registry: ProjectRegistry, asked: str | list[str]) -> Scope:
    if asked in (EVERYTHING, [EVERYTHING]):
        projects = registry.open_projects()
        if not projects:
            raise UnknownProject(EVERYTHING, registry.known_names())
        return Scope(projects, "all open projects", grouped=True)
    if isinstance(asked, str):
        return Scope([await registry.open(registry.find(asked))], "named by the call")
    return await _several(registry, {registry.find(name): name for name in asked})


async def _several(registry: ProjectRegistry, asked: Mapping[Path, str]) -> Scope:
    """Opens all of them at the same time. `asked` maps root → the name that the call used."""
    opened: dict[Path, Project] = {}
    failures: dict[str, SerenaCentralError] = {}

    async def open_one(root: Path, name: str) -> None:
        try:
            opened[root] = await registry.open(root)
        except SerenaCentralError as error:
            failures[name] = error

    async with anyio.create_task_group() as tasks:
        for root, name in asked.items():
            tasks.start_soon(open_one, root, name)
    projects = [opened[root] for root in asked if root in opened]
    return Scope(projects, "named by the call", grouped=True, failures=failures)
