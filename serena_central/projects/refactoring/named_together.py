"""What one place names together with a renamed symbol: in `pet.name`, of a `Cat | Dog`, the members of both types.

Language servers rename the one that was asked about and that place, and leave the others, which have the same name for
the sake of such places.
"""

from collections.abc import Collection

import anyio

from serena_central.core.errors import EditRefused
from serena_central.core.text import whole_word
from serena_central.editing.rename import Rename
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.leads import Answers
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import Examined
from serena_central.projects.refactoring.refusals import name_range
from serena_central.projects.refactoring.shorthands import shorthands
from serena_central.symbols.index import Hit

_HAVE_UNIONS = frozenset({"javascript", "javascriptreact", "php", "python", "typescript", "typescriptreact"})
"""Languages in which a value may be of one of several types that know nothing of each other."""

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
    asked = await _places(languages, hit, rename)
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
    by_start = {(other.path, other.range.start): other for other in declaring}
    for place, locations in answers.items():
        for location in locations or ():
            other = by_start.get((navigation.places.inside(location.path) or "", location.range.start))
            if other is not None:
                found.setdefault(other, place)
    return found


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
