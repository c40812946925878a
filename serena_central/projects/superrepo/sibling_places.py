"""Finds places in a sibling that refer to a symbol of another project, before it is deleted or renamed.

All code of the sibling that holds the name counts, whatever its imports say: a path may be put together at run time
(`sys.path.append`), or mapped by a configuration. The sibling's own language server resolves each place: to the
declaration: a reference. To something else: none. Not at all, or to an import that itself does not resolve: a possible
reference. To a file named like the declaring one in neither project: one, too, since that may be a copy (built,
installed). To a variable that a pattern names after the symbol, as `{ name }` does: none, since that keeps its name.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, PathError, listed
from serena_central.core.text import Position, Range
from serena_central.files.containing import files_containing
from serena_central.projects.project import Project
from serena_central.projects.superrepo.collected_sibling_references import is_copy
from serena_central.projects.superrepo.mentions import mentions
from serena_central.projects.superrepo.sibling_code import code_beside
from serena_central.projects.superrepo.sibling_definitions import (
    ResolvedPlaces,
    SiblingPlace,
    places_of,
    resolve_places,
)
from serena_central.projects.superrepo.sibling_references import Declaration
from serena_central.symbols.syntax.messages import Kind, Occurrence, Shorthand

MOST_PLACES = 5000
"""Places whose meaning is asked for: half a minute of a quick server's time."""

MOST_STRINGS = 300
"""The same of those in strings, few of which are code."""


class SiblingPlaces(NamedTuple):
    """`references` lead to the declaration; `possible` may. `strings` and `comments` hold the name, too.

    `unasked` places are beyond what is asked about. `mentions`: whether anything in the sibling names the declaring
    package, as far as a rule is known for that. `note`: why something may lack. `definitions`: where the sibling
    gives symbols of its own that name, overrides and implementations among them.
    """

    references: Sequence[SiblingPlace] = ()
    possible: Sequence[SiblingPlace] = ()
    strings: Sequence[SiblingPlace] = ()
    comments: Sequence[SiblingPlace] = ()
    unasked: Sequence[SiblingPlace] = ()
    mentions: bool = True
    note: str | None = None
    definitions: Sequence[SiblingPlace] = ()


async def places_in(sibling: Project, declared: Declaration) -> SiblingPlaces:
    """Where a sibling names a declared symbol. Passes the sibling's barrier.

    Raises:
        LanguageServerError
    """
    await sibling.fresh()
    name = declared.name
    if not re.search(r"[\w$]", name):
        return SiblingPlaces()
    files, mentioned = await anyio.to_thread.run_sync(_holding, sibling, declared, abandon_on_cancel=True)
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    places = [place async for place in places_of(sibling, files, word, {name})]
    words = {path: await _words(sibling, path, name) for path in dict.fromkeys(place.path for place in places)}
    by_kind: dict[Kind, list[SiblingPlace]] = {"code": [], "string": [], "comment": []}
    shorthands: dict[SiblingPlace, Shorthand] = {}
    for place in places:
        found = words[place.path].get(place.position)
        by_kind[found.kind if found else "code"].append(place)
        if found and found.shorthand:
            shorthands[place] = found.shorthand
    code = by_kind["code"]
    resolved = await resolve_places(sibling, code[:MOST_PLACES])
    meant = await _meant(sibling, declared, resolved, shorthands)
    quoted = await _quoted(sibling, declared, by_kind["string"][:MOST_STRINGS])
    references = [*(place for place, means in meant.items() if means), *quoted]
    possible = [*resolved.unresolved, *(place for place, means in meant.items() if not means)]
    return SiblingPlaces(
        sorted(references),
        sorted(possible),
        [place for place in by_kind["string"] if place not in quoted],
        by_kind["comment"],
        code[MOST_PLACES:],
        mentioned,
        "; ".join(filter(None, [resolved.note, _unread(sibling)])) or None,
        await _defined(sibling, [place for place in code if place not in meant]),
    )


def _unread(sibling: Project) -> str | None:
    names = sibling.languages.selection.with_code(sibling.tree.unreadable)
    return f"the server's user has no permission to read {listed(names)} of {sibling.name}" if names else None


def range_of(place: SiblingPlace) -> Range:
    start = place.position
    return Range(start, Position(start.line0, start.column + len(place.name)))


def shown(places: Sequence[SiblingPlace]) -> list[str]:
    """Places as `path:line`, lines 0-based."""
    return list(dict.fromkeys(f"{place.path}:{place.position.line0}" for place in places))


def _holding(sibling: Project, declared: Declaration) -> tuple[list[str], bool]:
    """Files of the declaration's language that hold its name, and whether any file mentions its package. Reads."""
    language = declared.project.languages.language_of(declared.path) or ""
    code = code_beside(declared.project, [declared.path], sibling)
    encoding = sibling.languages.encoding
    holding = files_containing(sibling.root, code, declared.name, encoding=encoding)
    names = mentions(declared.project.root, declared.path, language) if holding else []
    mentioned = not names or any(files_containing(sibling.root, code, one, encoding=encoding) for one in names)
    return sorted(holding), mentioned


async def _words(sibling: Project, path: str, name: str) -> Mapping[Position, Occurrence]:
    """What the name stands in, where a grammar can tell."""
    try:
        return {one.range.start: one for one in await sibling.languages.syntax.occurrences(path, name)}
    except (LanguageServerError, PathError):
        return {}


async def _defined(sibling: Project, places: Sequence[SiblingPlace]) -> list[SiblingPlace]:
    """Those of the places that are the names of the sibling's own symbols."""
    files, _ = await sibling.symbols_of(list(dict.fromkeys(place.path for place in places)))
    names = {(path, symbol.name_position) for path, file in files.items() for symbol in file.symbols}
    return [place for place in places if (place.path, place.position) in names]


async def _meant(
    sibling: Project, declared: Declaration, resolved: ResolvedPlaces, shorthands: Mapping[SiblingPlace, Shorthand]
) -> dict[SiblingPlace, bool]:
    """Of places that lead somewhere, those that mean the symbol (True), or may. One that leads to another place of the
    sibling, an import for example, means what that means."""
    meant: dict[SiblingPlace, bool] = {}
    users = _users(sibling, resolved)
    nowhere = {(sibling.root / place.path, place.position) for place in resolved.unresolved}
    for place, locations in resolved.found:
        if await declared.is_at(locations):
            meant[place] = True
        elif any((location.path, location.range.start) in nowhere for location in locations) or any(
            is_copy(declared.project, sibling, location, [declared.path]) for location in locations
        ):
            meant[place] = False
    own = _own_names(users, shorthands, meant)
    meant = {place: means for place, means in meant.items() if place not in own}
    known = sorted(meant, key=lambda place: not meant[place])
    for place in known:  # it grows
        for user in users.get(place, ()):
            if user not in meant and user not in own:
                meant[user] = meant[place]
                known.append(user)
    return meant


async def _quoted(sibling: Project, declared: Declaration, places: Sequence[SiblingPlace]) -> set[SiblingPlace]:
    """Those of the places in strings that are code to the server, as in `cart["price"]`."""
    found = (await resolve_places(sibling, places)).found if places else []
    return {place for place, locations in found if await declared.is_at(locations)}


def _users(sibling: Project, resolved: ResolvedPlaces) -> dict[SiblingPlace, list[SiblingPlace]]:
    """Place of the sibling → others that lead to it."""
    places = [*resolved.unresolved, *(place for place, _ in resolved.found)]
    by_position = {(sibling.root / place.path, place.position): place for place in places}
    users: dict[SiblingPlace, list[SiblingPlace]] = {}
    for place, locations in resolved.found:
        for location in locations:
            target = by_position.get((location.path, location.range.start))
            if target is not None and target != place:
                users.setdefault(target, []).append(place)
    return users


def _own_names(
    users: Mapping[SiblingPlace, Sequence[SiblingPlace]],
    shorthands: Mapping[SiblingPlace, Shorthand],
    meant: Collection[SiblingPlace],
) -> set[SiblingPlace]:
    """Places that name a variable which a pattern named after a field, whatever they lead to besides: it keeps its
    name. A shorthand stands for a field, too, and so for the symbol if it is `meant`."""
    known = [place for place, shorthand in shorthands.items() if shorthand.binds is not False]
    own: set[SiblingPlace] = set()
    for place in known:  # it grows
        for user in users.get(place, ()):
            if user not in own and not (user in shorthands and user in meant):
                own.add(user)
                known.append(user)
    return own
