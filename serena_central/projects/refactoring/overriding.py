"""Methods that override a renamed one and that its server's rename leaves out.

jdtls looks for them by the types of their parameters. Where a type takes the place of one of the base's parameters
(`class B extends A<Sub> { void feed(Sub one) }`, `new Box<String>() { void put(String one) }`), it leaves them out. It
lists some of them as implementations, and knows of each what it overrides.
"""

from collections.abc import Iterable, Sequence

import anyio

from serena_central.core.errors import EditRefused, listed
from serena_central.core.text import Position
from serena_central.lsp.answers import Location, SymbolKind, WorkspaceEdit
from serena_central.projects.navigation.leads import Answers
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.same_hierarchy import type_of
from serena_central.projects.refactoring.refusals import name_range
from serena_central.symbols.index import Hit

_LEFT_OUT = frozenset({"java"})
"""Languages whose servers leave some out."""

OVERRIDDEN_S = 30.0
"""For asking methods what they override: each takes 10 to 100 ms. What was answered is kept for the next call."""

_Methods = dict[tuple[str, Position], Hit]
"""File, and where the name stands → method."""


async def overriding(navigation: Navigation, hit: Hit, proposal: WorkspaceEdit) -> list[Hit]:
    """Those of the methods that a server proposes to rename with `hit`, and below them, that it proposes not to.

    Raises:
        EditRefused: they could not be determined in time.
        LanguageServerError
    """
    if navigation.questions.identifier(hit.path) not in _LEFT_OUT or hit.symbol.kind != SymbolKind.METHOD:
        return []
    topmost, lower = await _renamed(navigation, hit, proposal)
    renamed = _methods([*topmost, *lower])
    below: _Methods = {}
    for place, one in renamed.items():
        if place not in below:  # one question about the topmost method finds all
            found, *_ = await navigation.implementations(one)
            below |= _methods(other for other in found if other.symbol.name == hit.symbol.name)
    unlisted = await _unlisted(navigation, hit, topmost, renamed | below)
    return [*(one for place, one in below.items() if place not in renamed), *unlisted]


async def _renamed(navigation: Navigation, hit: Hit, proposal: WorkspaceEdit) -> tuple[list[Hit], list[Hit]]:
    """The methods whose declarations are among the proposed places, and `hit`: those that override none, and others."""
    places = [Location(path, edit.range) for path, edits in proposal.replacements.items() for edit in edits]
    starts = {(navigation.places.inside(place.path), place.range.start) for place in places}
    holders = await navigation.places.defined_at(places)
    found = _methods([hit, *(one for one in holders if (one.path, one.symbol.name_position) in starts)]).values()
    lower = [one for one in found if type_of(one) is None or await navigation.possible.may_override(one) is not False]
    return [one for one in found if one not in lower], lower


async def _unlisted(navigation: Navigation, hit: Hit, topmost: Sequence[Hit], known: _Methods) -> list[Hit]:
    """Methods of the types below those of `hit` and the `topmost`, and of anonymous classes, that override one of the
    methods that are known.

    Raises:
        EditRefused
    """
    namesakes: dict[PlaceInCode, Hit] | None = None
    declared: Answers = {}
    with anyio.move_on_after(OVERRIDDEN_S):
        namesakes = await _namesakes(navigation, [*topmost, hit], known)
        await navigation.declarations.ask(list(namesakes or ()), declared)
    if namesakes is None:
        raise EditRefused(
            f"Nothing was changed: which methods override {hit.name_path} could not be determined in time: call again."
        )
    silent = [namesakes[place] for place, locations in declared.items() if locations is None]
    if silent:
        named = listed(f"{one.name_path} in {one.path}:{one.symbol.name_line}" for one in silent)
        raise EditRefused(
            f"Nothing was changed: the language server did not say what {named} overrides. Call again; if this stays "
            "so, restart the language server (restart_language_server)."
        )
    answered = {place: locations for place, locations in declared.items() if locations is not None}
    if len(answered) < len(namesakes):
        raise EditRefused(
            f"Nothing was changed: which methods override {hit.name_path} is not known yet: {len(answered):,} of "
            f"{len(namesakes):,} methods of that name were examined. Call again to resume; what was found out is kept "
            "until a file changes."
        )
    return [
        namesakes[place]
        for place, locations in answered.items()
        if any((navigation.places.inside(base.path), base.range.start) in known for base in locations)
    ]


async def _namesakes(navigation: Navigation, bases: Iterable[Hit], known: _Methods) -> dict[PlaceInCode, Hit] | None:
    """Where methods are named that may override one of `bases` and are not known; None if they can't be found in
    time."""
    found: list[Hit] = []
    for base in bases:
        kin = await navigation.possible.kin_called(base, base.symbol.name)
        if kin is None:
            return None
        found += [*kin, *await navigation.possible.outside_types(base)]
    return {
        PlaceInCode(one.path, name_range(one)): one
        for place, one in _methods(found).items()
        if place not in known and one.symbol.kind == SymbolKind.METHOD
    }


def _methods(hits: Iterable[Hit]) -> _Methods:
    return {(one.path, one.symbol.name_position): one for one in hits}
