"""Digests of the code of open projects, built from file stamps and recomputed when code changes.

It covers the environment, too, in which servers resolve imports.
"""

import hashlib
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from serena_central.core.pacing import paced
from serena_central.files.tree import Change
from serena_central.projects.project import Project


class _Fingerprint:
    """A project's code: its digest, until it changes."""

    def __init__(self, project: Project) -> None:
        self.digest: str | None = None
        self.changes = 0
        self._is_code = project.languages.is_code
        project.tree.subscribe(self._heard)

    def _heard(self, changes: Sequence[Change]) -> None:
        if any(self._is_code(change.path) for change in changes):
            self.changes += 1
            self.digest = None


class Fingerprints:
    """Digests of what the code of open projects is, by stamps."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Project, _Fingerprint] = WeakKeyDictionary()

    async def of_all(self, projects: Sequence[Project]) -> dict[str, str]:
        """Root → digest."""
        return {str(project.root): await self._of(project) for project in projects}

    async def _of(self, project: Project) -> str:
        code = await self._of_code(project)
        project.languages.look_at_environment()
        environment = project.languages.environment_of(await project.languages_in_use())
        if not environment:
            return code
        whole = f"{code} {environment}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(whole, digest_size=16).hexdigest()

    async def _of_code(self, project: Project) -> str:
        await project.tree.fresh()
        known = self._known.get(project)
        if known is None:
            known = self._known[project] = _Fingerprint(project)
        if known.digest is not None:
            return known.digest
        changes, found = known.changes, hashlib.blake2b(digest_size=16)
        async for path, stamp in paced(sorted(project.tree.files.items())):
            if project.languages.is_code(path):
                found.update(f"{path}\0{stamp.size}\0{stamp.mtime_ns}\0".encode("utf-8", "surrogateescape"))
        if known.changes == changes:
            known.digest = found.hexdigest()
        return found.hexdigest()
