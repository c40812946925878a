"""Resolves names in a module by its own language server, to find declarations in siblings."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.text import Position
from serena_central.lsp.answers import Location
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

ASKED_AT_ONCE = 4


class SiblingPlace(NamedTuple):
    """A name in a file of a module."""

    path: str
    position: Position
    name: str


class ResolvedPlaces(NamedTuple):
    """The places asked about, with their definitions. `unresolved` ones have none; `note`: what may be missing and
    why."""

    found: list[tuple[SiblingPlace, Sequence[Location]]]
    unresolved: list[SiblingPlace]
    note: str | None


async def places_of(
    project: Project, files: Iterable[str], word: re.Pattern[str], names: Collection[str]
) -> AsyncIterator[SiblingPlace]:
    """Where the names stand in the files, among the words that `word` finds."""
    for path in files:
        try:
            text = (await project.read(path)).text
        except PathError:
            continue
        for match in word.finditer(text.content):
            if match[0] in names:
                yield SiblingPlace(path, text.position(match.start()), match[0])


async def resolve_places(
    project: Project, places: Iterable[SiblingPlace], *, turn: Callable[[], Awaitable[None]] | None = None
) -> ResolvedPlaces:
    """Asks the module's server where places lead; before each question `turn` is awaited.

    Raises:
        LanguageServerError
    """
    queue = iter(places)
    found: list[tuple[SiblingPlace, Sequence[Location]]] = []
    unresolved: list[SiblingPlace] = []
    notes: dict[str, None] = {}
    failures: list[LanguageServerError] = []

    async def worker() -> None:
        for place in queue:
            if turn is not None:
                await turn()
            try:
                locations, note = await project.navigation.targets(place.path, place.position)
            except LanguageServerError as error:
                failures.append(error)
                tasks.cancel_scope.cancel()
                return
            if note:
                notes[note] = None
            if locations:
                found.append((place, locations))
            else:
                unresolved.append(place)

    async with anyio.create_task_group() as tasks:
        for _ in range(ASKED_AT_ONCE):
            tasks.start_soon(worker)
    if failures:
        raise failures[0]
    return ResolvedPlaces(found, unresolved, next(iter(notes), None))


async def declared_at(project: Project, location: Location) -> Hit | None:
    """The symbol of a project that a place lies in, if it lies in one."""
    path = project.navigation.places.inside(_real(location.path))
    if path is None:
        return None
    await project.indexer.ensure([path])
    return project.navigation.places.holder(path, location.range.start)


def _real(path: Path) -> Path:
    """Servers name files as they reached them: through links of workspaces, too."""
    return path.resolve()
