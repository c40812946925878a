"""Resolves the roots to warm up for a folder: a super-repo's modules, or the project around it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from serena_central.core.errors import InvalidArguments, UnknownProject, listed
from serena_central.core.quoting import as_name, quoted
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_paths import real_path
from serena_central.projects.root_settings import SuperRepos


class Chosen(NamedTuple):
    """`default` is the one of them that is meant where nothing says which; `names` are those of modules."""

    roots: list[Path]
    default: Path | None
    names: Mapping[Path, str] = MappingProxyType({})

    def name_of(self, root: Path) -> str:
        return self.names.get(root) or as_name(root.name)


def choose(
    registry: ProjectRegistry,
    repos: SuperRepos,
    folder: Path,
    modules: Sequence[str] = (),
    *,
    only_default: bool = False,
) -> Chosen:
    """The named `modules`; else the module or project that the folder lies in; at a super-repo's root all of them,
    or its default one.

    Raises:
        InvalidArguments: no module has that name.
        UnknownProject: the folder lies in no project.
        ProjectRefused: it must not become one.
    """
    place = real_path(folder)
    repo = repos.around(place)
    if repo is None:
        root = registry.working_root(place)
        if modules:
            raise InvalidArguments(f"{quoted(place)} is not in a super-repo, so there are no modules to choose from.")
        if root is None:
            raise UnknownProject(str(folder), registry.known_names())
        return Chosen([root], root)
    modules = [name for one in modules for name in map(str.strip, one.split(",")) if name]
    unknown = [name for name in modules if name not in repo.modules]
    if unknown:
        raise InvalidArguments(f"{quoted(repo.name)} has no module {unknown[0]!r}. Modules: {listed(repo.modules)}.")
    default = repo.default_module.root if repo.default_module else None
    around = repo.module_at(place)
    if modules:
        chosen = [repo.modules[name].root for name in modules]
    elif around is not None:
        chosen = [around.root]
    elif only_default:
        chosen = [default] if default else []
    else:
        chosen = [module.root for module in repo.modules.values()]
    names = {module.root: name for name, module in repo.modules.items()}
    return Chosen([registry.check(root) for root in dict.fromkeys(chosen)], default, names)
