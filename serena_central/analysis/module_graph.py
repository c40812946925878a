"""The references within and between the modules of a super-repo.

Paths are relative to the super-repo's root. What a file uses of another module is kept as long as neither changes.
"""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio.to_thread
import msgspec

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collection import Collected, Definition
from serena_central.analysis.collector import Collections
from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import LanguageServerError, SerenaCentralError
from serena_central.core.pacing import paced
from serena_central.core.progress import report
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.files.words import words_of
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.superrepo.collected_sibling_references import Candidates, candidates, crossing
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.store.uses_cache import CachedUses, UsesCache

Kept = tuple[list[tuple[str, str, int, int]], int]
"""Of one file: what it uses (path and name path in the declaring module, line and column), and how many names in it
    could not be resolved."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgpack_decoder(Kept)


class Area(msgspec.Struct, frozen=True):
    """A module's name and folder, relative to the super-repo's root; "" for the root itself."""

    name: str
    path: str

    def outer(self, path: str) -> str:
        """A path of the module as one of the super-repo."""
        return f"{self.path}/{path}" if self.path else path

    def holds(self, path: str) -> bool:
        """Whether a path of the super-repo lies in the module."""
        return not self.path or path.startswith(f"{self.path}/")

    def inner(self, path: str) -> str:
        """A path of the super-repo as one of the module that holds it."""
        return path.removeprefix(f"{self.path}/") if self.path else path


class ModulePart(NamedTuple):
    """A module that takes part."""

    area: Area
    project: Project


async def open_modules(repo: SuperRepo, registry: ProjectRegistry, inside: str) -> tuple[list[ModulePart], list[str]]:
    """The modules in a folder of a super-repo, "" for all; and why some are missing."""
    parts: list[ModulePart] = []
    missing: list[str] = []
    for module in repo.modules.values():
        if PurePosixPath(module.path).is_relative_to(inside):
            try:
                project = await registry.open(registry.check(module.root))
                parts.append(ModulePart(Area(module.name, module.path), project))
            except SerenaCentralError as error:
                missing.append(f"{quoted(module.name)} is not included: {error}")
    return parts, missing


async def collect_modules(
    parts: Sequence[ModulePart],
    collections: Collections,
    kinds: frozenset[int] = frozenset(),
    *,
    within: bool = False,
    until: float = math.inf,
) -> Collected:
    """All modules' symbols and all their uses, also in siblings. Notes say what one could not tell."""
    whole = Collected([], [], notes=[])
    own: list[list[Definition]] = []
    for part in parts:
        collector, has_begun = collections.of(part.project), whole.asked > 0
        found = await collector.collect("", kinds, within=within, has_begun=has_begun, until=until)
        notes = [*found.notes, *await blind_spots(part.project, found.definitions)]
        own.append(found.definitions)
        whole.files += map(part.area.outer, found.files)
        whole.asked += found.asked
        whole.unasked += found.unasked
        whole.reused += found.reused
        whole.notes += [f"{quoted(part.area.name)}: {note}" for note in notes]
    fingerprints = [await _fingerprint(part.project) for part in parts]
    for part, definitions, fingerprint in zip(parts, own, fingerprints, strict=True):
        moved = {(one.path, one.name_path): _moved(one, part) for one in definitions}
        for other, other_fingerprint in zip(parts, fingerprints, strict=True):
            if other is not part:
                pair = _Pair(part, other, collections.folder, fingerprint + other_fingerprint)
                await pair.add_to(moved, whole)
        whole.definitions += moved.values()
    return whole


def _moved(definition: Definition, part: ModulePart) -> Definition:
    uses = {part.area.outer(path): places for path, places in definition.uses.items()}
    possible = {part.area.outer(path): places for path, places in definition.possible.items()}
    return msgspec.structs.replace(definition, path=part.area.outer(definition.path), uses=uses, possible=possible)


async def _fingerprint(project: Project) -> bytes:
    """A digest of all that a module's answers depend on."""
    languages = project.languages
    environment = languages.environment_of(await project.languages_in_use())
    files = list(project.tree.files)
    paths = [path async for path in paced(files) if languages.is_code(path)]
    paths += [path async for path in paced(files) if languages.is_marker(path)]

    def read() -> bytes:
        found = hashlib.blake2b(environment.encode("utf-8", "surrogateescape"), digest_size=16)
        for path, words in sorted(words_of(project.root, dict.fromkeys(paths), ()).items()):
            found.update(path.encode("utf-8", "surrogateescape") + b"\0" + words.digest)
        return found.digest()

    return await anyio.to_thread.run_sync(read)


class _Pair:
    """What one module uses of another."""

    def __init__(self, declaring: ModulePart, using: ModulePart, cache: Path, fingerprint: bytes) -> None:
        self._declaring = declaring
        self._using = using
        self._fingerprint = fingerprint
        self._cache = UsesCache(cache, Path(f"{using.project.root} → {declaring.project.root}"))
        self._unresolved = 0

    async def add_to(self, definitions: dict[tuple[str, str], Definition], whole: Collected) -> None:
        """Adds the uses to the `definitions`, by their path in their module and name path."""
        names: dict[str, set[str]] = {}
        for (path, _), definition in definitions.items():
            names.setdefault(path, set()).add(definition.name)
        notes: list[str] = []
        for group in await candidates(self._declaring.project, self._using.project, names):
            if group.left_out:
                notes.append(f"{counted(len(group.left_out), 'file')} with names of it not examined")
            try:
                await self._add_group(group, definitions, whole, notes)
            except LanguageServerError as error:
                notes.append(str(error))
        if self._unresolved:
            notes.append(
                f"{counted(self._unresolved, 'place')} with names of it can't be resolved to a declaration "
                "(including comments and copies)"
            )
        whole.notes += [
            f"{quoted(self._using.area.name)} → {quoted(self._declaring.area.name)}: possibly incomplete: {note}"
            for note in dict.fromkeys(notes)
        ]

    async def _add_group(
        self,
        group: Candidates,
        definitions: dict[tuple[str, str], Definition],
        whole: Collected,
        notes: list[str],
    ) -> None:
        digest = hashlib.blake2b(self._fingerprint + repr(sorted(group.declared)).encode(), digest_size=16).digest()
        rows = {row.path: row for row in await anyio.to_thread.run_sync(self._cache.load)}
        for done, path in enumerate(group.files, 1):
            row = rows.get(path)
            if row is not None and row.digest == digest:
                kept = _decoder.decode(row.blob)
                whole.reused += 1
            else:
                kept = await self._ask(path, group, digest, notes)
                whole.asked += 1
            self._add(path, kept, definitions)
            report(f"{self._using.area.name} → {self._declaring.area.name}: {done} of {len(group.files)} files")

    async def _ask(self, path: str, group: Candidates, digest: bytes, notes: list[str]) -> Kept:
        found = await crossing(self._declaring.project, self._using.project, path, group.declared)
        kept = [(*use[:2], use[2].line0, use[2].column) for use in found.uses], len(found.unresolved_names)
        if found.note:
            notes.append(found.note)
        else:
            row = CachedUses(path, "", digest, b"", _encoder.encode(kept))
            await anyio.to_thread.run_sync(self._cache.save, [row])
        return kept

    def _add(self, path: str, kept: Kept, definitions: dict[tuple[str, str], Definition]) -> None:
        uses, unresolved_names = kept
        self._unresolved += unresolved_names
        for declared_in, name_path, line, column in uses:
            definition = definitions.get((declared_in, name_path))
            if definition is not None:
                definition.uses.setdefault(self._using.area.outer(path), []).append((line, column))
