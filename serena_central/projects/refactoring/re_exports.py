"""Finds the further names that a rename has to change: those that resolve to a place that gets the new name.

A declaration may hand a symbol on under its own name (`exports.Box = Box`). Once that place is renamed, all that leads
to it has to be. A pattern that takes the name from there (`const { Box } = require("./box")`) declares a variable of
its own, which keeps its name: `{ Crate: Box }`. The language server says which names mean that variable.
"""

import re
from collections.abc import Mapping, Sequence

from serena_central.core.text import Position, Text
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import Rename
from serena_central.lsp.answers import Location
from serena_central.projects.navigation.language_rules import leads_on
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.syntax.grammars import SHORTHANDS

_MEMBER = re.compile(r"[.#]\s*\Z")
"""Before a name that can mean no variable."""

_QUALIFIED = re.compile(r"(?:::|\.)\s*\Z")
"""Before a name in Rust that no `use` of its file brought in."""


def handed_on(
    rename: Rename, elsewhere: Mapping[PlaceInCode, Sequence[Location]], navigation: Navigation, new: str
) -> list[PlaceInCode]:
    """Places that lead to what a rename gives the new name alone, and that it does not change."""
    if not elsewhere:
        return []
    given = {(path, edit.range.start) for path, some in rename.edits.items() for edit in some if edit.new_text == new}
    return [
        place
        for place, locations in elsewhere.items()
        if any((navigation.places.inside(one.path), one.range.start) in given for one in locations)
        and not any(edit.range.encloses(place.range) for edit in rename.edits.get(place.path, ()))
    ]


def brought_in(
    rename: Rename,
    elsewhere: Mapping[PlaceInCode, Sequence[Location]],
    navigation: Navigation,
    texts: Mapping[str, Text],
) -> list[PlaceInCode]:
    """Places that a rename of a Rust module may break: they lead to a namesake in another file, which a `use` may have
    brought in together with the module, and gives under the new name alone."""
    found: list[PlaceInCode] = []
    for place, locations in elsewhere.items():
        path, start = place.path, place.range.start
        if path not in rename.edits or navigation.questions.identifier(path) != "rust":
            continue
        text = texts[path]
        if (
            not _QUALIFIED.search(text.line(start.line0)[: start.column])
            and any(navigation.places.inside(one.path) != path for one in locations)
            and not all(leads_on(text, edit.range) for edit in rename.edits[path])
        ):
            found.append(place)
    return found


class Patterns:
    """Variables that keep their name when the field does not that they take their value from."""

    def __init__(self, navigation: Navigation, texts: Mapping[str, Text], old: str, new: str) -> None:
        self._navigation = navigation
        self._texts = texts
        self._old = old
        self._new = new

    async def without_variables(self, rename: Rename) -> Rename:
        """A rename without the places that name such variables.

        Raises:
            LanguageServerError
        """
        edits = {path: await self._without(path, some) for path, some in rename.edits.items()}
        return rename._replace(
            edits=edits,
            added=[place for place in rename.added if any(edit.range == place[1] for edit in edits[place[0]])],
        )

    async def _without(self, path: str, edits: list[TextEdit]) -> list[TextEdit]:
        if self._navigation.questions.identifier(path) not in SHORTHANDS:
            return edits
        patterns = [edit.range.start for edit in edits if edit.new_text == f"{self._new}: {self._old}"]
        loose = [edit for edit in edits if edit.new_text == self._new and self._may_be_variable(path, edit)]
        if not patterns or not loose:
            return edits
        kept = set[Position]()
        for start in patterns:
            kept |= await self._navigation.references.renamed_with(path, start, self._new) - {start}
        return [edit for edit in edits if edit not in loose or edit.range.start not in kept]

    def _may_be_variable(self, path: str, edit: TextEdit) -> bool:
        text = self._texts[path]
        return not _MEMBER.search(text.line(edit.range.start.line0)[: edit.range.start.column])
