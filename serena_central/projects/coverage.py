"""Decides whether the index covers a place, which hooks ask before an agent searches there as text.

It answers within a few milliseconds, or "no": a known project that is closed begins to open, and is covered once it is.
It is "no", too, where the tools would find less than a search does: in nested repositories, in what is ignored.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import SerenaCentralError, ToolRefused
from serena_central.files.glob import expand_braces
from serena_central.lsp.catalogue import catalogue
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_paths import real_path
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.superrepo.path_policy import check_path

OPENING_S = 0.005
"""How long a hook waits for a project to open, in seconds; the opening continues afterwards."""

FEW = 2000
"""Files that are looked through at once: under a millisecond. More go to a thread."""

MOST_UNREAD = 8
"""Maximum of file kinds without symbols; if there are more, a text search does better."""


_ENDING = re.compile(r"\*\.\w+")


class Coverage(msgspec.Struct, frozen=True):
    """`root` is the project's, or that of a super-repo whose modules are meant; `relative_path` leads from there to the
    place, and is empty for all of it. `unread` are globs of the code there whose symbols nobody reads."""

    covered: bool
    root: str | None = None
    relative_path: str = ""
    unread: list[str] = []


class _Place(NamedTuple):
    """What a call would name, and whether nothing but its projects holds what a search there finds."""

    root: Path
    path: Path
    projects: Sequence[Project]
    own: Project | None = None
    """Of a super-repo: its root, whose own files only a call for all of it finds."""


class _Seen(NamedTuple):
    read: bool
    unread: set[str]


async def coverage(
    registry: ProjectRegistry, repos: SuperRepos, paths: Sequence[str], globs: Sequence[str]
) -> Coverage:
    """`paths` are absolute; `globs` limit the files (none: all).

    Raises:
        ProjectRefused: for what can't be a path.
    """
    real = [real_path(Path(path)) for path in paths]
    whole = Path(os.path.commonpath(real))
    for path in {*real} - {whole}:
        if await _covered(registry, repos, path, globs) is None:
            return Coverage(covered=False)
    return await _covered(registry, repos, whole, globs) or Coverage(covered=False)


async def _covered(registry: ProjectRegistry, repos: SuperRepos, path: Path, globs: Sequence[str]) -> Coverage | None:
    place = await _place(registry, repos, path)
    seen = await _look(place, globs) if place else None
    if place is None or seen is None or not seen.read or len(seen.unread) > MOST_UNREAD:
        return None
    return Coverage(True, str(place.root), _relative(path, place.root), sorted(seen.unread))


async def _place(registry: ProjectRegistry, repos: SuperRepos, path: Path) -> _Place | None:
    repo, root = repos.around(path), registry.known_root_of(path)
    module = repo.module_at(path) if repo else None
    if module is not None:
        root = max(filter(None, (root, module.root)), key=lambda one: len(one.parts))
    elif repo is not None and (root is None or repo.root.is_relative_to(root)):
        return await _above_modules(registry, repo, path)
    projects = await _opened(registry, [root]) if root else None
    return _Place(root, path, projects) if root and projects else None


async def _above_modules(registry: ProjectRegistry, repo: SuperRepo, path: Path) -> _Place | None:
    """A super-repo's own folders hold no code; one that holds modules stands for these."""
    try:
        check_path(repo, _relative(path, repo.root) or ".")
    except ToolRefused:
        return None
    below = [module.root for module in repo.modules.values() if module.root.is_relative_to(path)]
    projects = await _opened(registry, [*below, repo.root]) if below else None
    return _Place(repo.root, path, projects[:-1], projects[-1]) if projects else None


async def _opened(registry: ProjectRegistry, roots: Sequence[Path]) -> list[Project] | None:
    """All of them, if they are open or open at once."""
    opened = {root: project for root in roots if (project := registry.opened(str(root))) is not None}

    async def one(root: Path) -> None:
        with anyio.move_on_after(OPENING_S):
            try:
                opened[root] = await registry.open(root)
            except SerenaCentralError:
                return

    async with anyio.create_task_group() as tasks:
        for root in set(roots) - opened.keys():
            tasks.start_soon(one, root)
    return [opened[root] for root in roots] if len(opened) == len(set(roots)) else None


async def _look(place: _Place, globs: Sequence[str]) -> _Seen | None:
    """What of the place's code is read; None where a call would not find all files that a search goes through."""
    parts = [
        (one, _relative(place.path, one.root) if place.path.is_relative_to(one.root) else "") for one in place.projects
    ]
    if place.own is not None:
        parts.append((place.own, _relative(place.path, place.root)))
    if any(project.tree.holds_others(folder) for project, folder in parts):
        return None
    seen = [await _look_at(project, folder, globs) for project, folder in parts]
    if place.own is not None and place.path != place.root and seen[-1] != _Seen(False, set()):
        return None
    return _Seen(any(one.read for one in seen), set[str]().union(*(one.unread for one in seen)))


async def _look_at(project: Project, folder: str, globs: Sequence[str]) -> _Seen:
    """What of one project's code below a folder, or of one file, is read. One file stands for all of its ending."""
    work = partial(_samples, list(project.tree.files), folder, [name for glob in globs for name in expand_braces(glob)])
    samples = work() if len(project.tree.files) <= FEW else await anyio.to_thread.run_sync(work)
    read, unread = False, set[str]()
    for ending, path in samples.items():
        if _reads(project, path):
            read = True
        elif _is_code(project, path):
            unread.add(f"*.{ending}" if "." in path.rpartition("/")[2] else ending)
    return _Seen(read, unread)


def _samples(paths: Iterable[str], folder: str, globs: Sequence[str]) -> dict[str, str]:
    """Ending, or name without one → a file that has it, among those in the folder whose names fit a glob."""
    prefix = f"{folder}/" if folder else ""
    endings = {glob[2:] for glob in globs if _ENDING.fullmatch(glob)}
    fits = re.compile("|".join(map(fnmatch.translate, globs))).match if len(endings) < len(set(globs)) else None
    samples: dict[str, str] = {}
    for path in paths:
        if prefix and not path.startswith(prefix) and path != folder:
            continue
        ending = path[path.rfind(".") + 1 :]
        if "/" in ending:
            ending = path[path.rfind("/") + 1 :]
        if ending in samples or (endings and fits is None and ending not in endings):
            continue
        if fits is None or fits(path[path.rfind("/") + 1 :]):
            samples[ending] = path
    return samples


def _reads(project: Project, path: str) -> bool:
    """Whether a file of this name would be found by its symbols, with a language server or by syntax."""
    languages = project.languages
    return languages.is_searched(path) and (languages.is_installed(path) or languages.grammar(path) is not None)


def _is_code(project: Project, path: str) -> bool:
    """Whether a file that is not read holds code: of a language that the project leaves out, or has no server for."""
    known = catalogue()
    if (language := project.languages.language_of(path)) is not None:
        return not known.languages[language].data
    return any(not known.languages[claim.kind.language].data for claim in known.claims(path) if not claim.markers)


def _relative(place: Path, root: Path) -> str:
    relative = place.relative_to(root).as_posix()
    return "" if relative == "." else relative
