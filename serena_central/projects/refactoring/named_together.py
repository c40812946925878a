"""What one place names together with a renamed symbol: in `pet.name`, of a `Cat | Dog`, the members of both types.

Language servers rename the one that was asked about and that place, and leave the others, which have the same name for
the sake of such places.
"""

from collections.abc import Collection, Iterable

import anyio

from serena_central.core.errors import EditRefused
from serena_central.core.text import whole_word
from serena_central.editing.rename import Rename
from serena_central.lsp.documents import MAX_CANDIDATES
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.leads import Answers
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import Examined
from serena_central.projects.refactoring.refusals import name_range
from serena_central.projects.refactoring.shorthands import is_member, shorthands
from serena_central.symbols.index import Hit

_HAVE_UNIONS = frozenset({"javascript", "javascriptreact", "php", "python", "typescript", "typescriptreact"})
"""Languages in which a value may be of one of several types that know nothing of each other."""

MOST_KEPT = 100
"""Declarations that keep their name, of which the references are asked for."""

_CALLS_LEAD_ON = _HAVE_UNIONS - {"php", "python"}
"""Languages in which a name that is called leads to its declaration, and to that of the function that is its value."""

TOGETHER_S = 30.0
"""For asking where the renamed places lead: 1 to 10 ms each. What was answered is kept for the next call."""


async def named_together(
    navigation: Navigation, languages: ProjectLanguages, hit: Hit, rename: Rename, examined: Examined
) -> dict[PlaceInCode, PlaceInCode]:
    """Declarations that keep the old name, each with a place that gets the new one and leads to both.

    Raises:
        EditRefused: where the places lead was not known in time.
    """
    declaring = _others(hit, rename, examined)
    if navigation.questions.identifier(hit.path) not in _HAVE_UNIONS or not declaring:
        return {}
    own = PlaceInCode(hit.path, name_range(hit))
    asked = [own, *await _places(languages, hit, rename)]
    answers: Answers = {}
    with anyio.move_on_after(TOGETHER_S):
        await navigation.possible.ask_leads(asked, answers)
    if len(answers) < len(asked):
        raise EditRefused(
            f"Nothing was changed: whether places that name {hit.name_path} also name others could not be determined "
            f"in time: {len(answers):,} of {len(asked):,} were examined. Call again to resume, or pass force=true to "
            "rename it anyway."
        )
    found: dict[PlaceInCode, PlaceInCode] = {}
    listed = _Listed(navigation, {place.path for place in asked})
    leading = _leading_to(navigation, answers, declaring)
    # A variable for what a module of JavaScript exports (`const run = require("./run")`) leads to that where it is
    # declared, and so do its uses: they name the variable alone.
    stands_for = {other for place, other in leading if place == own}
    for place, other in leading:
        if other not in found and other not in stands_for and await listed.names(place, other):
            found[other] = place
    return found


async def of_held_functions(
    navigation: Navigation, languages: ProjectLanguages, hit: Hit, rename: Rename, examined: Examined
) -> list[PlaceInCode]:
    """Places that were added to a rename of a function and name what holds it, under the same name: a call of
    `parts.run()` leads to the member and to the function that is its value, or to that alone (`{ run }`)."""
    unlisted = {PlaceInCode(*place) for place in rename.added}.intersection(examined.references)
    if navigation.questions.identifier(hit.path) not in _CALLS_LEAD_ON or not unlisted:
        return []
    declaring = _others(hit, rename, examined)
    listed = _Listed(navigation, {place.path for place in unlisted})
    answers: Answers = {}
    if declaring:
        with anyio.move_on_after(TOGETHER_S):
            await navigation.possible.ask_leads(list(unlisted), answers)
    found = {
        place: None for place, other in _leading_to(navigation, answers, declaring) if await listed.names(place, other)
    }
    # Of the others, the value may be a variable that keeps its name.
    held = [] if is_member(hit) else [one for one in await _held(languages, hit, rename) if one not in unlisted]
    edited = {PlaceInCode(path, edit.range) for path, edits in rename.edits.items() for edit in edits}
    files = {place.path for place in unlisted}
    local = set(examined.definitions) - examined.patterns - edited
    kept = [*held, *sorted(place for place in local if place.path in files)][:MOST_KEPT]
    for other in kept:  # grows: a variable that a pattern takes out of what keeps its name keeps it, too
        named = await listed.references(other)
        found |= dict.fromkeys(sorted(unlisted & named))
        kept += sorted((examined.patterns & named).difference(kept))
    return list(found)


async def _held(languages: ProjectLanguages, hit: Hit, rename: Rename) -> list[PlaceInCode]:
    """Places of a rename that name a field, too, which keeps its name (`{ run }`)."""
    found: list[PlaceInCode] = []
    for path, edits in rename.edits.items():
        short = await shorthands(languages, path, hit.symbol.name)
        starts = {start for start, one in short.items() if one.binds is False}
        found += (PlaceInCode(path, edit.range) for edit in edits if edit.range.start in starts)
    return found


class _Listed:
    """What the server lists as references, asked once of each declaration. Belongs to one question."""

    def __init__(self, navigation: Navigation, paths: Collection[str]) -> None:
        """`paths`: files whose places are asked about."""
        self._navigation = navigation
        self._shown = [navigation.places.absolute(path) for path in sorted(paths)][:MAX_CANDIDATES]
        self._known: dict[PlaceInCode, set[PlaceInCode]] = {}

    async def names(self, place: PlaceInCode, other: PlaceInCode) -> bool:
        """Whether a place that leads to a declaration names it; where a call leads on to a function, it does not."""
        if self._navigation.questions.identifier(other.path) not in _CALLS_LEAD_ON:
            return True
        return place in await self.references(other)

    async def references(self, other: PlaceInCode) -> set[PlaceInCode]:
        """To what is declared at a place."""
        questions, places = self._navigation.questions, self._navigation.places
        if other not in self._known:
            path, position = places.absolute(other.path), other.range.start
            found, _ = await questions.when_ready(
                other.path, lambda server: server.references(path, position, candidates=self._shown)
            )
            inside = ((places.inside(location.path), location.range) for location in found)
            self._known[other] = {PlaceInCode(path, span) for path, span in inside if path is not None}
        return self._known[other]


def _leading_to(
    navigation: Navigation, answers: Answers, declaring: Iterable[PlaceInCode]
) -> list[tuple[PlaceInCode, PlaceInCode]]:
    """Places, each with one of some declarations that it leads to."""
    by_start = {(other.path, other.range.start): other for other in declaring}
    return [
        (place, other)
        for place, locations in answers.items()
        for location in locations or ()
        if (other := by_start.get((navigation.places.inside(location.path) or "", location.range.start)))
    ]


async def _places(languages: ProjectLanguages, hit: Hit, rename: Rename) -> list[PlaceInCode]:
    """Places that get the new name for what they lead to. Where both names are written, that is a pattern's field
    (`const { new: old } = pet`): in other shorthands, the other name is that of the variable."""
    own, old = PlaceInCode(hit.path, name_range(hit)), hit.symbol.name
    both, places = whole_word(old), list[PlaceInCode]()
    for path, edits in rename.edits.items():
        written = {edit.range.start: edit.new_text for edit in edits if both.search(edit.new_text)}
        if not written:
            places += (PlaceInCode(path, edit.range) for edit in edits)
            continue
        short = await shorthands(languages, path, old)
        variables = {
            start for start, text in written.items() if start not in short or not short[start].binds or both.match(text)
        }
        places += (PlaceInCode(path, edit.range) for edit in edits if edit.range.start not in variables)
    return [place for place in places if place != own]


def _others(hit: Hit, rename: Rename, examined: Examined) -> Collection[PlaceInCode]:
    """Where the old name stands in code and stays, without other definitions of the symbol: one that is asked for by
    its number is renamed alone."""
    edited = {PlaceInCode(path, edit.range) for path, edits in rename.edits.items() for edit in edits}
    beside = {hit.file.symbols[place].name_position for place in hit.file.others(hit.place)}
    places = {*examined.definitions, *examined.elsewhere, *examined.possible, *examined.unexamined}
    return [place for place in places - edited if place.path != hit.path or place.range.start not in beside]
