"""Asks one language server for the uses of many symbols, under one lease and as bare places.

All uses of a symbol are one question. A server that searches all files for each such question (`searches_all_files`) is
asked instead where each place leads that holds the name, if they are few: it compares no more than that itself.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import anyio

from serena_central.core.errors import LanguageServerError, PathError, RequestFailed, ServerBusy
from serena_central.core.text import Range
from serena_central.lsp.client import LanguageServer
from serena_central.projects.project import Project
from serena_central.projects.views import Uses
from serena_central.symbols.index import Hit

FEW_PLACES = 12
"""In a large project searching all files takes ty 30 ms of a processor, telling where a place leads about one."""


class Asked(NamedTuple):
    """A symbol, the files that hold its name, and how many places in them do."""

    hit: Hit
    holders: Sequence[str]
    places: int


async def uses_of(
    project: Project, asked: Sequence[Asked], *, turn: Callable[[], Awaitable[None]], at_once: int
) -> list[Uses]:
    """The uses of symbols that are all of one workplace.

    `at_once` of them are in flight, and before each `turn` is awaited. What the server refuses stands in its place as
    `failed`. Raises LanguageServerError when there is no server, or it keeps crashing.
    """
    found = [Uses()] * len(asked)

    async def work(server: LanguageServer) -> None:
        remark = await server.ready()
        queue = iter(enumerate(asked))
        failures: list[LanguageServerError] = []

        async def worker() -> None:
            for number, one in queue:
                await turn()
                try:
                    found[number] = await _uses_of(project, server, one, remark)
                except LanguageServerError as error:
                    failures.append(error)
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(min(at_once, len(asked))):
                tasks.start_soon(worker)
        if failures:
            raise failures[0]

    await project.languages.ask(asked[0].hit.path, work)
    return found


async def _uses_of(project: Project, server: LanguageServer, asked: Asked, remark: str | None) -> Uses:
    try:
        if server.spec.searches_all_files and asked.places <= FEW_PLACES:
            return Uses(await _where_places_lead(project, server, asked), remark=remark)
        return await project.relations.bare_uses(server, asked.hit, asked.holders, remark)
    except (RequestFailed, ServerBusy, PathError) as error:
        return Uses(remark=str(error), failed=True)


async def _where_places_lead(project: Project, server: LanguageServer, asked: Asked) -> dict[str, list[Range]]:
    """Those places with the symbol's name that lead to it."""
    hit = asked.hit
    own = project.root / hit.path, hit.symbol.name_position
    word = re.compile(rf"\b{re.escape(hit.symbol.name)}\b")
    found: dict[str, list[Range]] = {}
    for path, read in (await project.relations.readings(asked.holders)).items():
        for match in word.finditer(read.text.content):
            place = Range(read.text.position(match.start()), read.text.position(match.end()))
            if (project.root / path, place.start) == own:
                continue
            leads = await server.definition(project.root / path, place.start)
            if any((location.path, location.range.start) == own for location in leads):
                found.setdefault(path, []).append(place)
    return found
