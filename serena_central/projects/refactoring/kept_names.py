"""Names that a rename leaves unchanged although the language server lists them among the symbol's references.

For a method of an interface, gopls also lists calls of methods by which types implement it: they name other symbols.
Where `{ load }` becomes `{ fetch: load }`, a variable or a field keeps the old name; where `export { load }` becomes
`export { fetch as load }`, its importers do. Language servers list those places, too, since they lead to both. A server
that writes both names knows which place means which: nothing is added to its rename but what can only mean the symbol.
"""

from collections.abc import Sequence
from typing import NamedTuple

from serena_central.core.text import Position
from serena_central.editing.rename import Rename
from serena_central.lsp.answers import Location, SymbolKind
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.symbols.index import Hit
from serena_central.symbols.mangling import mangled_names

_EXPORT_PATTERNS = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})
"""Languages in which other files may import the variables of a pattern."""

Named = tuple[str, Position]
"""A root-relative path, and where a name begins in it."""


async def of_others(navigation: Navigation, hit: Hit, rename: Rename, known: Uses) -> list[PlaceInCode]:
    """Places that a rename was to change and that are known to lead to what it does not change. Those that a server
    lists as references are none; jdtls also proposes calls of other classes' methods of the same parameters."""
    edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
    asked = [PlaceInCode(*added) for added in rename.added]
    if navigation.questions.identifier(hit.path) == "java" and hit.symbol.kind == SymbolKind.METHOD:
        listed = {(path, span.start) for path, spans in known.places.items() for span in spans}
        proposed = (PlaceInCode(path, edit.range) for path, edits in rename.edits.items() for edit in edits)
        asked += (one for one in proposed if (one.path, one.range.start) not in listed and one not in asked)
    leads = await navigation.possible.leads(asked)
    return [
        place
        for place, locations in leads.items()
        if locations and edited.isdisjoint(_named(navigation, location) for location in locations)
    ]


async def of_implementations(navigation: Navigation, hit: Hit, rename: Rename) -> list[Hit]:
    """Methods by which types of Go implement a renamed method of an interface. gopls renames those alone whose types it
    sees converted to the interface, and not in all packages: by its assertions (`x.(speaker)`), any type may be one."""
    if navigation.questions.identifier(hit.path) != "go" or not _is_of_interface(hit):
        return []
    edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
    found, *_ = await navigation.implementations(hit)
    kept = [one for one in found if (one.path, one.symbol.name_position) not in edited]
    return [one for one in kept if not _is_of_interface(one)]


def _is_of_interface(hit: Hit) -> bool:
    container = hit.symbol.container
    return container >= 0 and hit.file.symbols[container].kind == SymbolKind.INTERFACE


async def of_private_members(navigation: Navigation, hit: Hit) -> list[PlaceInCode]:
    """Where code names private members of a Python class by the name of the class, too: `_Vault__open`."""
    found: list[PlaceInCode] = []
    if navigation.questions.identifier(hit.path) != "python":
        return found
    for member in (Hit(hit.path, hit.file, place) for place in hit.file.children(hit.place)):
        for word in mangled_names(member, "python"):
            places = await navigation.possible.candidates(member)
            spans = (PlaceInCode(path, span) for path, some in places.items() for span in some)
            found += (one for one in spans if one.range.end.column - one.range.start.column == len(word))
    return found


async def of_kept(navigation: Navigation, rename: Rename, declared: Named) -> list[PlaceInCode]:
    """Places that a server was to change and that lead to nothing but names that it keeps, apart from the symbol's own,
    `declared`. TypeScript's server also proposes those of a variable that other files import, where
    `export const { load } = table` becomes `{ fetch: load }`."""
    if navigation.questions.identifier(declared[0]) not in _EXPORT_PATTERNS:
        return []
    proposed = [PlaceInCode(path, edit.range) for path, edits in rename.edits.items() for edit in edits]
    leads = {
        # The variable of a shorthand is its field's value, too: such a place also leads to itself.
        place: {_named(navigation, one) for one in locations or ()} - {(place.path, place.range.start)}
        for place, locations in (await navigation.possible.leads(proposed)).items()
    }
    found: list[PlaceInCode] = []
    kept = set(rename.kept) - {declared}
    while more := [place for place, led_to in leads.items() if led_to and led_to <= kept and place not in found]:
        found += more
        kept |= {(place.path, place.range.start) for place in more}
    return found


class LeftOut(NamedTuple):
    """Places that a rename was to add: those that lead to what it changes, those that may mean the symbol, those that
    declare something else. What goes on under the old name is in none."""

    meant: list[PlaceInCode]
    unknown: list[PlaceInCode]
    declaring: list[PlaceInCode]


class KeptNames:
    """Places that a server's rename of the symbol `declared` leaves out, by what they lead to, as the server says."""

    def __init__(self, navigation: Navigation, rename: Rename, declared: Named) -> None:
        self._navigation = navigation
        self._rename = rename
        added = {(path, span.start) for path, span in rename.added}
        edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
        kept = rename.kept - {declared}  # what leads to the declaration means what it declares
        self._renamed = edited - added - kept
        self._known: dict[Named, bool] = dict.fromkeys(kept, True)

    async def left_out(self) -> LeftOut:
        """Places that do not lead to what keeps the old name.

        Raises:
            LanguageServerError
        """
        found = LeftOut([], [], [])
        for place in (PlaceInCode(*added) for added in self._rename.added):
            named = place.path, place.range.start
            if not await self._is_kept(named):
                locations, _ = await self._navigation.targets(*named)
                if self._is_own(named, locations):
                    found.declaring.append(place)
                elif locations and all(_named(self._navigation, location) in self._renamed for location in locations):
                    found.meant.append(place)
                else:
                    found.unknown.append(place)
        return found

    async def _is_kept(self, place: Named) -> bool:
        """Whether it leads to what keeps the old name, by itself or over others that do."""
        if place not in self._known:
            self._known[place] = False  # for places that lead to each other
            locations, _ = await self._navigation.targets(*place)
            for location in locations:
                target = _named(self._navigation, location)
                if target[0] and target not in self._renamed and await self._is_kept(target):
                    self._known[place] = True
                    break
        return self._known[place]

    def _is_own(self, place: Named, locations: Sequence[Location]) -> bool:
        return bool(locations) and all(_named(self._navigation, location) == place for location in locations)


def _named(navigation: Navigation, location: Location) -> Named:
    """Without a path if it lies outside."""
    return navigation.places.inside(location.path) or "", location.range.start
