"""Finds where macros of C and C++ put names together (`handle_##verb`), which no rename can follow.

`CALL(open)` refers to `handle_open` without naming it; and in `GETTER(size)` the name of a field goes into that of a
function. Language servers list the first among the references of `handle_open`, and rename the field in the second.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Position, Range, Text, whole_word
from serena_central.editing.rename import Rename
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.index import Hit

MOST_ASKED = 200
"""Names that may be macros of which it is asked what they are, for one rename."""

_LOOKED_BACK = 400
"""Characters before a name in which the call of a macro would begin that is given it."""

_CALLED = re.compile(r"(?<!\w)([^\W\d]\w*)\s*\Z")
_WORD = re.compile(r"[^\W\d]\w*")
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+\Z")
_DEFINITION = re.compile(r"(?:\\\r?\n|[^\n])*")
_PASTES = re.compile(r"[^\s,]\s*##")
"""Not `, ##args`, by which macros leave out a comma."""


class Pasted(NamedTuple):
    """Places of names that follow from a symbol's name or hold it: those that the rename was to add, and all others."""

    added: list[PlaceInCode]
    others: list[PlaceInCode]


async def pasted(
    navigation: Navigation,
    languages: ProjectLanguages,
    hit: Hit,
    rename: Rename,
    named: Mapping[str, Sequence[Range]],
    texts: Mapping[str, Text],
) -> Pasted:
    """Where a rename of `hit` may part names that a macro puts together; `named`: its references as the server lists
    them, by file."""
    found = Pasted([], [])
    if languages.language_of(hit.path) != "cpp":
        return found
    macros, added = _Macros(navigation, languages), {(path, span.start) for path, span in rename.added}
    for path, edits in rename.edits.items():
        text = texts[path]
        async for edit in paced(edits):
            for at in _callees(text, text.offset(edit.range.start)):
                if _PASTES.search(await macros.definition(path, text, at) or ""):
                    places = found.added if (path, edit.range.start) in added else found.others
                    places.append(PlaceInCode(path, edit.range))
                    break
    is_named = whole_word(hit.symbol.name).search
    for path, spans in named.items():
        text = texts[path]
        for span in spans:
            if text.slice(span) != hit.symbol.name:
                definition = await macros.definition(path, text, text.offset(span.start))
                if definition is None or (definition and not is_named(definition)):
                    found.others.append(PlaceInCode(path, span))
    return found


class _Macros:
    """Definitions of macros by their names."""

    def __init__(self, navigation: Navigation, languages: ProjectLanguages) -> None:
        self._navigation = navigation
        self._languages = languages
        self._known: dict[str, str | None] = {}

    async def definition(self, path: str, text: Text, at: int) -> str | None:
        """Of the macro whose name begins at an offset; empty for what is none, None if that is not known."""
        word = _WORD.match(text.content, at)
        if word is None:
            return ""
        if word[0] not in self._known:
            if len(self._known) >= MOST_ASKED:
                return None
            self._known[word[0]] = await self._ask(path, text.position(at))
        return self._known[word[0]]

    async def _ask(self, path: str, position: Position) -> str | None:
        try:
            locations, _ = await self._navigation.targets(path, position)
            for location in locations:
                text = (await self._languages.fetch(location.path)).text
                at = text.offset(location.range.start)
                if _DEFINE.search(text.line(location.range.start.line0)[: location.range.start.column]):
                    whole = _DEFINITION.match(text.content, at)
                    return whole[0] if whole else ""
        except (LanguageServerError, PathError):
            return None
        return ""


def _callees(text: Text, at: int) -> Iterator[int]:
    """Where the names of calls begin in whose arguments an offset lies, the innermost first."""
    depth = 0
    for offset in range(at - 1, max(at - _LOOKED_BACK, 0) - 1, -1):
        match text.content[offset]:
            case ")":
                depth += 1
            case "(" if depth:
                depth -= 1
            case "(":
                if called := _CALLED.search(text.content, max(offset - _LOOKED_BACK, 0), offset):
                    yield called.start(1)
            case ";" | "{" | "}" if not depth:
                return
            case _:
                pass
