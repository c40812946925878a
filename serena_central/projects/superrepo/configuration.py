"""A super-repo's configuration: its modules, the router's hints, and configuration errors.

Built from a root's checked settings. A module that can't be used is reported with the place where it stands, and the
rest works. It opens no project.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec

from serena_central.config.layers import Loaded, Problem
from serena_central.config.policies import ModuleSettings
from serena_central.config.settings import ProjectSettings
from serena_central.core.quoting import as_name, quoted
from serena_central.core.words import counted
from serena_central.files.boundary import in_git
from serena_central.lsp.catalogue import catalogue
from serena_central.projects.superrepo.router import Routed, Score, route


class Module(msgspec.Struct, frozen=True):
    """A project inside a super-repo. `path` is relative to the super-repo's root, POSIX; `root` is its real path."""

    name: str
    path: str
    root: Path
    languages: list[str]
    concerns: list[str]


class SuperRepo(msgspec.Struct, frozen=True):
    """One root whose project.yml says `type: super-repo`. `hints` maps keyword → names of modules."""

    name: str
    root: Path
    modules: Mapping[str, Module]
    hints: Mapping[str, list[str]] = MappingProxyType({})
    default_module: Module | None = None
    infrastructure: list[str] = []
    problems: list[Problem] = []
    left_out: Mapping[str, str] = MappingProxyType({})
    """Names of modules that can't be used → why, as where a submodule is not checked out."""
    closed: int = 0
    """How many of its folders, modules and the root, are closed to the user who asks; they are nowhere named."""

    def scores(self, words: str) -> list[Score]:
        """Which modules some words mean, the best first; a language may be called by any name that settings accept."""
        modules = [Routed(module.name, module.languages, module.concerns) for module in self.modules.values()]
        aliases = {name: catalogue().names_of(name) for module in modules for name in module.languages}
        return route(words, modules, self.hints, aliases)

    def routing(self, words: str) -> dict[str, Any]:
        """Which module some words mean, by what, and the table of points, for people and programs to read."""
        scores = self.scores(words)
        default = self.default_module.name if self.default_module else None
        return {
            "super_repo": self.name,
            "module": scores[0].module if scores else default,
            "by": "words" if scores else "default_module",
            "scores": [{"module": one.module, "points": one.points, "reasons": list(one.reasons)} for one in scores],
        }

    def seen_by(self, may_open: Callable[[Path], bool]) -> "SuperRepo":
        """As a user sees it who may open some real paths alone."""
        modules = {name: module for name, module in self.modules.items() if may_open(module.root)}
        closed = len(self.modules) - len(modules) + (not may_open(self.root))
        if not closed:
            return self
        hints = {word: kept for word, names in self.hints.items() if (kept := [one for one in names if one in modules])}
        default = self.default_module
        return msgspec.structs.replace(
            self,
            modules=modules,
            hints=hints,
            default_module=default if default and default.name in modules else None,
            problems=[],
            left_out={},
            closed=closed,
        )

    @property
    def closed_folders(self) -> str:
        """The folders that are closed to the user who asks, in words; empty: none."""
        return f"{counted(self.closed, 'folder')} of {quoted(self.name)} outside of your folders" if self.closed else ""

    def module_at(self, path: Path) -> Module | None:
        """The module that contains a real path; of nested ones the deepest."""
        inside = [module for module in self.modules.values() if path.is_relative_to(module.root)]
        return max(inside, key=lambda module: len(module.root.parts), default=None)

    def says_of(self, root: Path) -> tuple[object, ...]:
        """What `settings_in` goes by: when it differs, a project of this root has other settings."""
        if root == self.root:
            return tuple(module.path for module in self.modules.values())
        return next(((one.name, *one.languages) for one in self.modules.values() if one.root == root), ())

    def settings_in(self, root: Path, settings: ProjectSettings) -> ProjectSettings:
        """A project's settings with what this super-repo says about it: a module's name and languages; for the root
        itself, that its modules' files are not its own."""
        if root == self.root:
            modules = [f"/{module.path}/" for module in self.modules.values()]
            return msgspec.structs.replace(settings, ignored_paths=[*settings.ignored_paths, *modules])
        for module in self.modules.values():
            if module.root == root:
                languages = settings.languages or module.languages
                return msgspec.structs.replace(settings, project_name=module.name, languages=languages)
        return settings

    def module_of(self, relative: str) -> Module | None:
        """The module that a path relative to the super-repo's root leads into, as written."""
        normal = os.path.normpath(relative.replace("\\", "/"))
        return self.module_at(self.root / normal) if not normal.startswith("..") else None


def super_repo_of(root: Path, loaded: Loaded[ProjectSettings]) -> SuperRepo | None:
    """The super-repo that a root's settings describe; None if they describe none."""
    settings = loaded.value
    if settings.type != "super-repo":
        return None
    problems: list[Problem] = []
    modules, left_out = _modules(root, loaded, problems)
    for keyword, names in settings.routing_hints.items():
        unknown = [name for name in names if name not in modules]
        problems += [_problem(loaded, f"routing_hints.{keyword}", f"{name!r} is not a module") for name in unknown]
    default = settings.default_module
    if default is not None and default not in modules:
        problems.append(_problem(loaded, "default_module", f"{default!r} is not a module"))
    return SuperRepo(
        name=settings.project_name or as_name(root.name),
        root=root,
        modules=modules,
        hints=settings.routing_hints,
        default_module=modules.get(default) if default else None,
        infrastructure=settings.infrastructure_prefixes,
        problems=problems,
        left_out=left_out,
    )


def _modules(
    root: Path, loaded: Loaded[ProjectSettings], problems: list[Problem]
) -> tuple[dict[str, Module], dict[str, str]]:
    """The modules, and why others can't be used, by name."""
    found: dict[str, Module] = {}
    left_out: dict[str, str] = {}
    for name, said in loaded.value.modules.items():
        place = _place(root, said)
        if isinstance(place, Path):
            path = place.relative_to(root).as_posix()
            found[name] = Module(name, path, place, said.languages, said.concerns)
        else:
            left_out[name] = place
            problems.append(_problem(loaded, f"modules.{name}", place))
    return found, left_out


def _place(root: Path, said: ModuleSettings) -> Path | str:
    """The module's real folder, or what is wrong with its path."""
    if "\0" in said.path or PurePosixPath(said.path).is_absolute():
        return f"path {said.path!r} must be relative to the super-repo's root"
    try:
        place = (root / said.path).resolve()
        if place == root or not place.is_relative_to(root):
            return f"path {said.path!r} leads out of the super-repo, or is its root"
        if not place.is_dir():
            return f"path {said.path!r} is not a folder (a submodule that is not checked out?)"
        if in_git(place.relative_to(root).as_posix()):
            return f"path {said.path!r} is inside .git, where no project can be"
    except (OSError, RuntimeError) as error:
        return f"path {said.path!r} can't be used: {error}"
    return place


def _problem(loaded: Loaded[ProjectSettings], key: str, text: str) -> Problem:
    origins = loaded.origins.get(key) or loaded.origins.get(key.partition(".")[0])
    assert origins, key
    return Problem("wrong", key, text, origins[-1])
