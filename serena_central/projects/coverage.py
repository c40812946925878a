"""Whether the symbols of a place can be read here: asked by hooks before an agent searches there as text.

It answers within a few milliseconds, or "no": a known project that is closed begins to open, and is covered once it is.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio
import msgspec

from serena_central.core.errors import SerenaCentralError, ToolRefused
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry, real_path
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.superrepo.guard import check_path
from serena_central.projects.superrepo.known import SuperRepos

OPENING_S = 0.005
"""Longer than this nobody waits for a project to open; it goes on opening."""

_BRACES = re.compile(r"\{([^{}]*)\}")


class Coverage(msgspec.Struct, frozen=True):
    """`root` is the project's, or that of a super-repo whose modules are meant; `relative_path` leads from there to the
    place, and is empty for all of it."""

    covered: bool
    root: str | None = None
    relative_path: str = ""


async def coverage(registry: ProjectRegistry, repos: SuperRepos, path: str, globs: Sequence[str]) -> Coverage:
    """`path` is absolute; `globs` limit the files (none: all). Raises ProjectRefused for what can't be a path."""
    place = real_path(Path(path))
    root, repo = registry.known_root_of(place), repos.around(place)
    if repo is not None and (root is None or repo.root.is_relative_to(root)):
        return await _of_modules(registry, repo, place, globs)
    if root is None:
        return Coverage(covered=False)
    relative = _relative(place, root)
    return Coverage(await _is_covered(registry, root, relative, globs), str(root), relative)


async def _of_modules(registry: ProjectRegistry, repo: SuperRepo, place: Path, globs: Sequence[str]) -> Coverage:
    """A super-repo's own folders hold no code; one that holds modules stands for these."""
    try:
        check_path(repo, _relative(place, repo.root) or ".")
    except ToolRefused:
        return Coverage(covered=False)
    below = [module.root for module in repo.modules.values() if module.root.is_relative_to(place)]
    covered = [root for root in below if await _is_covered(registry, root, "", globs)]
    return Coverage(bool(covered), str(repo.root))


async def _is_covered(registry: ProjectRegistry, root: Path, relative: str, globs: Sequence[str]) -> bool:
    with anyio.move_on_after(OPENING_S):
        try:
            project = await registry.open(root)
        except SerenaCentralError:
            return False
        return _answers_for(project, relative, globs)
    return False


def _answers_for(project: Project, relative: str, globs: Sequence[str]) -> bool:
    if globs:
        return any(_reads(project, f"{relative}/{sample}".lstrip("/")) for sample in _samples(globs))
    if relative in project.tree.files:
        return _reads(project, relative)
    prefix = f"{relative}/" if relative else ""
    looked_at: set[str] = set()
    for path in project.tree.files:
        ending = path.rpartition("/")[2].rpartition(".")[2]
        if path.startswith(prefix) and ending not in looked_at:
            if _reads(project, path):
                return True
            looked_at.add(ending)
    return False


def _reads(project: Project, path: str) -> bool:
    """Whether a file of this name would be found by its symbols, with a language server or by syntax."""
    languages = project.languages
    return languages.is_searched(path) and (languages.is_installed(path) or languages.grammar(path) is not None)


def _samples(globs: Iterable[str]) -> Iterable[str]:
    """A name that fits each glob: `*.{ts,tsx}` → x.ts, x.tsx."""
    for glob in globs:
        braces = _BRACES.search(glob)
        for one in braces[1].split(",") if braces else ("",):
            filled = glob[: braces.start()] + one + glob[braces.end() :] if braces else glob
            yield filled.rpartition("/")[2].replace("*", "x").replace("?", "x")


def _relative(place: Path, root: Path) -> str:
    relative = place.relative_to(root).as_posix()
    return "" if relative == "." else relative
