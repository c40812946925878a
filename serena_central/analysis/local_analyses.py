"""Analyses of projects that are open in this process."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from serena_central.analysis.analysis_run import FindingsRun, GraphRun, Kind
from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collector import Collections
from serena_central.analysis.fingerprints import Fingerprints
from serena_central.analysis.module_graph import ModulePart, collect_modules, open_modules
from serena_central.analysis.uncertain_places import doubt_notes
from serena_central.analysis.validation import Validation
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import SuperRepos


class LocalAnalyses:
    """`Analyses` of the registry's projects."""

    def __init__(
        self,
        projects: ProjectRegistry,
        super_repos: SuperRepos,
        collections: Collections,
        validation: Validation,
        *,
        rules: Callable[[Iterable[str]], str],
    ) -> None:
        """`rules` gives a fingerprint of the rules that close paths in some roots."""
        self._rules = rules
        self._projects = projects
        self._super_repos = super_repos
        self._collections = collections
        self._validation = validation
        self._fingerprints = Fingerprints()

    async def analyze(self, root: Path, kind: Kind) -> GraphRun | FindingsRun:
        return await (self._graph(root) if kind == "graph" else self._findings(root))

    async def fingerprints(self, roots: Sequence[str]) -> dict[str, str]:
        opened = [project for root in roots if (project := self._projects.opened(root)) is not None]
        return await self._fingerprints.of_all(opened)

    async def rules(self, root: Path, roots: Sequence[str]) -> str:
        return self._rules(roots)

    async def _graph(self, root: Path) -> GraphRun:
        project, parts, notes = await self._parts(root)
        projects = [project, *(part.project for part in parts)]
        rules = self._rules(str(one.root) for one in projects)
        began, fingerprints = time.time(), await self._fingerprints.of_all(projects)
        if parts:
            found = await collect_modules(parts, self._collections)
        else:
            found = await self._collections.of(project).collect("")
            found.notes += await blind_spots(project, found.definitions)
        return GraphRun(
            at=began,
            fingerprints=fingerprints,
            rules=rules,
            areas=[part.area for part in parts],
            notes=[*notes, *found.notes, *doubt_notes(found.definitions)],
            definitions=[one for one in found.definitions if one.uses or one.possible],
            files=found.files,
        )

    async def _findings(self, root: Path) -> FindingsRun:
        project = await self._projects.open(self._projects.check(root))
        where = await self._validation.extent(project)
        others, _ = await self._validation.siblings.of(project)
        rules = self._rules(str(one.root) for one in (project, *others))
        began, fingerprints = time.time(), await self._fingerprints.of_all([project, *others])
        unused, broken = await self._validation.unused(where), await self._validation.broken(where)
        return FindingsRun(
            at=began,
            fingerprints=fingerprints,
            rules=rules,
            areas=[part.area for part in where.parts if part.area.path],
            notes=list(dict.fromkeys([*where.missing, *unused.whole.notes, *broken.whole.notes])),
            unused=unused.whole.found,
            broken=broken.whole.found,
            checked=broken.whole.checked,
        )

    async def _parts(self, root: Path) -> tuple[Project, list[ModulePart], list[str]]:
        """The project of a root; at a super-repo's the modules that take part, and why others don't."""
        project = await self._projects.open(self._projects.check(root))
        repo = self._super_repos.at(root)
        parts, missing = await open_modules(repo, self._projects, "") if repo else ([], [])
        return project, parts, missing
