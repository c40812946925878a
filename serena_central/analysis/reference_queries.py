"""Asks one language server for the uses of many symbols, under one lease and as bare places.

All uses of a symbol are one question. A server that searches all files for each such question (`searches_all_files`) is
asked instead where each place leads that holds the name, if they are few: it compares no more than that itself.
A server that checks a package again for each question (`packages_while_open`) is shown a file of it first.
Unresolved places in code are possible references.
"""

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

import anyio
import msgspec

from serena_central.analysis.uncertain_places import NOWHERE, Doubtful, UncertainPlaces
from serena_central.core.errors import LanguageServerError, PathError, RequestFailed, ServerBusy
from serena_central.core.pacing import paced
from serena_central.core.text import Position, Range
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.readiness import noting_gaps
from serena_central.projects.navigation.server_questions import joined
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.name_case import ignores_case

FEW_PLACES = 12
"""In a large project a search of all files takes ty 30 ms of CPU time; resolving one place takes about one."""


class Asked(NamedTuple):
    """A symbol, and the files that hold its name: path → how many places in it do. `elsewhere`: how many more do in
    files that are not built on this platform."""

    hit: Hit
    counts: Mapping[str, int]
    elsewhere: int = 0


class UsesAnswer(NamedTuple):
    """The references to a symbol, the possible ones, and the number of places that were not checked."""

    uses: Uses
    possible: Doubtful = NOWHERE
    unexamined: int = 0


async def uses_of(
    project: Project,
    asked: Sequence[Asked],
    doubts: UncertainPlaces,
    found: list[UsesAnswer | None],
    *,
    turn: Callable[[], Awaitable[None]],
    at_once: int,
    until: float = math.inf,
    possible: bool = True,
) -> None:
    """Puts the uses of symbols that are all of one workplace into their places in `found`, as they come, `until` then
    (the loop's clock).

    `at_once` of them are in flight, and before each `turn` is awaited. What the server refuses stands in its place as
    `failed`. Possible references are looked for only if they are wanted (`possible`): each place is a question more.

    Raises:
        LanguageServerError: there is no server, or it keeps crashing.
    """

    async def work(server: LanguageServer) -> None:
        note = await server.ready()
        queue = iter(enumerate(asked))
        packages = _Packages(project, server)
        failures: list[LanguageServerError] = []

        async def worker() -> None:
            for number, one in queue:
                if found[number] is not None:
                    continue  # before the server crashed
                await turn()
                try:
                    await packages.open(one.hit.path, one.hit.symbol.name_position)
                    found[number] = await _uses_of(project, packages, one, doubts if possible else None, note)
                except LanguageServerError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(min(at_once, len(asked))):
                tasks.start_soon(worker)
        if failures:
            raise failures[0]

    with anyio.CancelScope(deadline=until):
        await project.languages.ask(asked[0].hit.path, work)


class _Packages:
    """Has one server keep the packages that it is asked about, where it does so for open files alone."""

    def __init__(self, project: Project, server: LanguageServer) -> None:
        self.server = server
        self._root = project.root
        self._opened: dict[tuple[str, bool], anyio.Event] = {}
        """Folder, and whether it is about its tests, which may be a package of their own → when that is open."""

    async def open(self, path: str, position: Position) -> None:
        """Returns when a file of the package of a place is open; each is opened once."""
        if not self.server.spec.documents.packages_while_open:
            return
        file = PurePosixPath(path)
        package = str(file.parent), file.stem.endswith("_test")
        opened = self._opened.get(package)
        if opened is not None:
            await opened.wait()
            return
        opened = self._opened[package] = anyio.Event()
        try:
            # Signatures are asked about open files only. What it answers here does not matter.
            with suppress(LanguageServerError, PathError):
                await self.server.signature(self._root / path, position)
        finally:
            opened.set()


async def _uses_of(
    project: Project, packages: _Packages, asked: Asked, doubts: UncertainPlaces | None, note: str | None
) -> UsesAnswer:
    """Without `doubts` no possible references."""
    (hit, counts, elsewhere), server = asked, packages.server
    try:
        with noting_gaps() as lacks:
            if server.spec.searches_all_files and sum(counts.values()) <= FEW_PLACES:
                found, nowhere = await _where_places_lead(project, server, hit, list(counts))
                answer = UsesAnswer(Uses(found, note=note))
                if doubts is not None:
                    possible, unexamined = await doubts.in_code(hit, nowhere)
                    answer = UsesAnswer(answer.uses, possible, unexamined + elsewhere)
            else:
                answer = UsesAnswer(await project.navigation.references.bare_uses(server, hit, list(counts), note))
                if doubts is not None:
                    answer = await _with_unlisted(project, packages, asked, doubts, answer.uses)
        noted = msgspec.structs.replace(answer.uses, note=joined(answer.uses.note, lacks()))
        return answer._replace(uses=noted)
    except (RequestFailed, ServerBusy, PathError) as error:
        return UsesAnswer(Uses(note=str(error), failed=True))


async def _with_unlisted(
    project: Project, packages: _Packages, asked: Asked, doubts: UncertainPlaces, uses: Uses
) -> UsesAnswer:
    """Adds the unresolved ones of the places that the server did not list, if they are few."""
    hit, counts, elsewhere = asked
    more = {path: count - len(uses.places.get(path, ())) for path, count in counts.items()}
    more[hit.path] = more.get(hit.path, 0) - 1  # its own name
    more = {path: count for path, count in more.items() if count > 0}
    if sum(more.values()) > FEW_PLACES:
        return UsesAnswer(uses, unexamined=sum(more.values()) + elsewhere)
    listed = {(path, span.start) for path, spans in uses.places.items() for span in spans}
    places = [
        (path, span)
        for path, spans in (await _places_of(project, hit, list(more))).items()
        for span in spans
        if (path, span.start) not in listed
    ]
    code, unexamined = await doubts.in_code(hit, _by_path(places))
    nowhere: list[tuple[str, Range]] = []
    for path, spans in code.items():
        for span in spans:
            await packages.open(path, span.start)
            if not await packages.server.definition(project.root / path, span.start):
                nowhere.append((path, span))
    return UsesAnswer(uses, _by_path(nowhere), unexamined + elsewhere)


async def _where_places_lead(
    project: Project, server: LanguageServer, hit: Hit, holders: Sequence[str]
) -> tuple[dict[str, list[Range]], Doubtful]:
    """The places with the symbol's name that resolve to it, and those that do not resolve."""
    own = project.root / hit.path, hit.symbol.name_position
    found: list[tuple[str, Range]] = []
    nowhere: list[tuple[str, Range]] = []
    for path, spans in (await _places_of(project, hit, holders)).items():
        for span in spans:
            leads = await server.definition(project.root / path, span.start)
            if not leads:
                nowhere.append((path, span))
            elif any((location.path, location.range.start) == own for location in leads):
                found.append((path, span))
    return _by_path(found), _by_path(nowhere)


async def _places_of(project: Project, hit: Hit, holders: Sequence[str]) -> dict[str, list[Range]]:
    """The places in files that hold a symbol's name, its own excepted."""
    own = hit.path, hit.symbol.name_position
    ignore_case = ignores_case(project.languages.language_of(hit.path), hit.symbol.kind)
    word = re.compile(rf"\b{re.escape(hit.symbol.name)}\b", re.IGNORECASE if ignore_case else 0)
    places: dict[str, list[Range]] = {}
    for path, read in (await project.navigation.places.readings(holders)).items():
        # A generated file may have thousands.
        spans = [Range(*map(read.text.position, one.span())) async for one in paced(word.finditer(read.text.content))]
        places[path] = [span for span in spans if (path, span.start) != own]
    return places


def _by_path(places: Sequence[tuple[str, Range]]) -> dict[str, list[Range]]:
    found: dict[str, list[Range]] = {}
    for path, span in places:
        found.setdefault(path, []).append(span)
    return found
