"""Methods that override a renamed one and that its server's rename leaves out.

jdtls leaves out those of anonymous classes where a parameter has a type that the class gives for one of the base's
(`new Box<String>() { void put(String one) … }`). It lists them as implementations.
"""

from serena_central.lsp.answers import Location, SymbolKind, WorkspaceEdit
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.same_hierarchy import type_of
from serena_central.symbols.index import Hit

_LEFT_OUT = frozenset({"java"})
"""Languages whose servers leave some out."""


async def overriding(navigation: Navigation, hit: Hit, proposal: WorkspaceEdit) -> list[Hit]:
    """Those of the methods that a server proposes to rename with `hit`, and below them, that it proposes not to.

    Raises:
        LanguageServerError
    """
    if navigation.questions.identifier(hit.path) not in _LEFT_OUT or hit.symbol.kind != SymbolKind.METHOD:
        return []
    renamed = await _renamed(navigation, hit, proposal)
    below: dict[tuple[str, int], Hit] = {}
    for one in renamed:
        if (one.path, one.place) not in below:  # one question about the topmost method finds all
            found, *_ = await navigation.implementations(one)
            below |= {(other.path, other.place): other for other in found if other.symbol.name == hit.symbol.name}
    known = {(one.path, one.place) for one in renamed}
    return [one for place, one in below.items() if place not in known]


async def _renamed(navigation: Navigation, hit: Hit, proposal: WorkspaceEdit) -> list[Hit]:
    """The methods whose declarations are among the proposed places, and `hit`: those first that override none."""
    places = [Location(path, edit.range) for path, edits in proposal.replacements.items() for edit in edits]
    starts = {(navigation.places.inside(place.path), place.range.start) for place in places}
    holders = await navigation.places.defined_at(places)
    declared = [one for one in holders if (one.path, one.symbol.name_position) in starts]
    found = {(one.path, one.place): one for one in [hit, *declared]}.values()
    lower = [one for one in found if type_of(one) is None or await navigation.possible.may_override(one) is not False]
    return [*(one for one in found if one not in lower), *lower]
