"""Uses of many symbols of one module in a sibling: as `uses` finds those of one, each file of the sibling read once."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import anyio.to_thread

from serena_central.core.text import Position
from serena_central.files.words import words_of
from serena_central.projects.project import Project
from serena_central.projects.superrepo.leads import declared_at, leads_of, places_of
from serena_central.projects.superrepo.mentions import mentions

MOST_PLACES = 5000
"""Names in one sibling whose meaning is asked for: half a minute of a quick server's time."""

_WORD = re.compile(r"\w+")


class Crossing(NamedTuple):
    """What one file of a sibling uses: path and name path in the declaring module, and where the file names it."""

    uses: list[tuple[str, str, Position]]
    unresolved: int
    remark: str | None


class Candidates(NamedTuple):
    """Files of the sibling that may use symbols with these names. `left_out`: those beyond what is asked about."""

    files: list[str]
    names: frozenset[str]
    left_out: int


async def candidates(declaring: Project, using: Project, names: Mapping[str, Collection[str]]) -> list[Candidates]:
    """By language, files of the sibling that hold any of the names, if anything in it mentions the declaring package.

    `names` maps file of the declaring module → its symbols' names.
    """
    await using.fresh()
    return await anyio.to_thread.run_sync(lambda: list(_candidates(declaring, using, names)))


def _candidates(declaring: Project, using: Project, names: Mapping[str, Collection[str]]) -> Iterator[Candidates]:
    by_server: dict[str, list[str]] = {}
    for path in names:
        if spec := declaring.languages.spec_for(path):
            by_server.setdefault(spec.name, []).append(path)
    for server, paths in by_server.items():
        wanted = frozenset(name for path in paths for name in names[path])
        mentioned = {
            one for path in paths for one in mentions(declaring.root, path, declaring.languages.language_of(path) or "")
        }
        code = [path for path in using.tree.files if (own := using.languages.spec_for(path)) and own.name == server]
        marker = re.compile(b"|".join(re.escape(one.encode()) for one in sorted(mentioned))) if mentioned else None
        words = words_of(using.root, code, wanted, marker=marker)
        if mentioned and not any(found.marked for found in words.values()):
            continue
        holding = sorted((path for path in words if words[path].counts), key=lambda path: not words[path].marked)
        files: list[str] = []
        places = 0
        for path in holding:
            places += words[path].counts.total()
            if places > MOST_PLACES and files:
                break
            files.append(path)
        if files:
            yield Candidates(files, wanted, len(holding) - len(files))


async def crossing(declaring: Project, using: Project, path: str, names: Collection[str]) -> Crossing:
    """What a file of the sibling uses; waits for callers before each question. Raises LanguageServerError."""
    places = [place async for place in places_of(using, [path], _WORD, names)]
    leads = await leads_of(using, places, turn=using.indexer.turns.give_way)
    uses: set[tuple[str, str, Position]] = set()
    for place, locations in leads.found:
        for location in locations:
            hit = await declared_at(declaring, location)
            if hit is not None and hit.symbol.name == place.name:
                uses.add((hit.path, hit.name_path, place.position))
    return Crossing(sorted(uses), leads.unresolved, leads.remark)
