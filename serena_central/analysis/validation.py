"""Findings in a project; at a super-repo's root in its own files and in those of its modules.

Paths, asked and told, are relative to that root.
"""

import math
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import anyio.to_thread

from serena_central.analysis.breakage import Breakage, broken_by
from serena_central.analysis.broken_references import Checked, Interrupted, Kept, broken_references
from serena_central.analysis.collector import Collections
from serena_central.analysis.module_graph import Area, ModulePart, open_modules
from serena_central.analysis.objections import objections
from serena_central.analysis.other_language_mentions import NamedAround, named_around
from serena_central.analysis.revision_diff import Revised
from serena_central.analysis.selection import code_below, dependents
from serena_central.analysis.sibling_objections import UsedBySiblings, bound_to, used_by_siblings
from serena_central.analysis.sibling_uses import Siblings
from serena_central.analysis.unused_symbols import UnusedFound, unused_symbols
from serena_central.files.boundary import Access
from serena_central.projects.editing.declaration_changes import Redeclared
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import SuperRepos
from serena_central.symbols.index import Hit

Found = TypeVar("Found", UnusedFound, Checked)


class Extent(NamedTuple):
    """What is looked through: a file or folder, "" for all; with `changed` what concerns these files alone.

    `missing` says which modules are no part of it, and why.
    """

    parts: Sequence[ModulePart]
    inside: str = ""
    changed: frozenset[str] = frozenset()
    missing: Sequence[str] = ()

    @property
    def is_whole(self) -> bool:
        return not self.inside and not self.changed

    def inside_of(self, part: ModulePart) -> str:
        """What is meant of a part; modules are there as a whole, or not at all."""
        return "" if part.area.path else self.inside


class Findings(NamedTuple, Generic[Found]):
    """`by_root`: what was found in each project, its paths relative to that root."""

    whole: Found
    by_root: dict[Path, Found]


class Validation:
    """Looks for findings, at low priority."""

    def __init__(
        self, registry: ProjectRegistry, repos: SuperRepos, collections: Collections, access: Callable[[Path], Access]
    ) -> None:
        """`access` tells what rules close in a root, open or not."""
        self._registry = registry
        self._repos = repos
        self._collections = collections
        self._interrupted = Interrupted()
        self.siblings = Siblings(repos, registry, access)

    async def extent(self, project: Project, path: str = "", changed: Collection[str] = ()) -> Extent:
        """What is meant by a path in a project and by changed files; they may be absolute.

        Raises:
            PathError: the path can't be used, or is ignored.
        """
        inside = project.locate(path) if path else ""
        repo = self._repos.at(project.root)
        modules, missing = await open_modules(repo, self._registry, inside) if repo else ([], [])
        if not modules:
            project.check_searched(inside)
        within = frozenset(_relative(project.root, one) for one in changed)
        return Extent([ModulePart(Area("", ""), project), *modules], inside, within, missing)

    async def unused(self, where: Extent, until: float = math.inf) -> Findings[UnusedFound]:
        """What nothing uses; of changed files, in these; as far as it is known `until` then.

        Raises:
            PathError
        """

        async def look(part: ModulePart) -> UnusedFound:
            own = {part.area.inner(path) for path in where.changed if part.area.holds(path)}
            if where.changed and not own:
                return UnusedFound()
            return await unused_symbols(
                part.project,
                self._collections.of(part.project),
                self.siblings,
                where.inside_of(part),
                own if where.changed else None,
                until,
            )

        found = await _in_all(where, look, UnusedFound())
        for one in found.by_root.values():
            for reason, count in one.kept.items():
                found.whole.kept[reason] = found.whole.kept.get(reason, 0) + count
        return found

    async def objections(self, project: Project, hit: Hit) -> list[str]:
        """Why a symbol that its own project does not refer to may be in use anyway.

        Raises:
            PathError
        """
        return await objections(project, self.siblings, hit)

    async def used_by_siblings(self, project: Project, hit: Hit, *, besides: Collection[Path] = ()) -> UsedBySiblings:
        """Which other modules of the super-repo refer to a symbol, or may; `besides` some roots."""
        return await used_by_siblings(project, self.siblings, hit, besides=besides)

    async def named_around(self, project: Project, hits: Iterable[Hit]) -> NamedAround:
        """Which files of other languages name symbols in what encloses their project."""
        return await named_around(project, self.siblings, hits)

    async def bound_to(self, project: Project, hit: Hit, *, also: Collection[Path] = ()) -> list[str]:
        """Which methods of other modules must have the name of a method, in sentences; also in some open projects."""
        return await bound_to(project, self.siblings, hit, also=also)

    async def broken_by(self, project: Project, edited: Mapping[str, Redeclared], seconds: float) -> Breakage:
        """What an edit of a project's files may have broken there and in open siblings."""
        return await broken_by(project, self.siblings, edited, seconds)

    async def broken(self, where: Extent, since: str = "", until: float = math.inf) -> Findings[Checked]:
        """Broken references; for changed files, in these and in those that may depend on them; as far as they are
        known `until` then. With a git revision `since`, references that are new since then are marked.

        Raises:
            PathError, InvalidArguments
        """
        project = where.parts[0].project
        await project.fresh()
        around = self.siblings.super_repo_root(project)
        revised = await anyio.to_thread.run_sync(Revised, where.parts, since, around) if since else None
        gone = revised.baseline.gone if revised else frozenset[str]()
        question = project.root, where.inside, where.changed, since
        kept = self._interrupted.of(question, await self._state_of(where.parts))

        async def look(part: ModulePart) -> Checked:
            await part.project.fresh()
            seen = {part.area.inner(path) if part.area.holds(path) else path for path in where.changed}
            if seen:
                files, note = await dependents(part.project, seen, gone)
            else:
                files, note = code_below(part.project, where.inside_of(part)), None
            one = kept.setdefault(part.project.root, Kept())
            found = await broken_references(part.project, files, seen, until=until, kept=one)
            if revised is not None:
                found.found = await anyio.to_thread.run_sync(revised.marked, part, found.found)
            if note:
                found.notes.append(note)
            return found

        findings = await _in_all(where, look, Checked())
        if not findings.whole.unasked:
            self._interrupted.ended(question)
        if revised is not None and revised.note:
            findings.whole.notes.append(revised.note)
        return findings

    async def _state_of(self, parts: Sequence[ModulePart]) -> Hashable:
        """Of projects, and of the open modules that their code may use."""
        projects = {part.project.root: part.project for part in parts}
        for part in parts:
            projects |= {one.root: one for one in self.siblings.opened(part.project)[0]}
        for one in projects.values():
            await one.fresh()
        return tuple((root, one.state) for root, one in sorted(projects.items()))


async def _in_all(where: Extent, look: Callable[[ModulePart], Awaitable[Found]], whole: Found) -> Findings[Found]:
    by_root: dict[Path, Found] = {}
    for part in where.parts:
        found = by_root[part.project.root] = await look(part)
        whole.add(found, part.area)
    return Findings(whole, by_root)


def _relative(root: Path, path: str) -> str:
    return Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path
