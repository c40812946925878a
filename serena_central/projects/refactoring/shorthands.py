"""Places at which one word names two things, as in `{ name }`: a field, and the variable that gives it its value or
gets it. A rename changes one of the two, so that both have to be written: `{ new: name }` or `{ name: new }`."""

import re
from collections.abc import Mapping

from serena_central.core.errors import EditRefused, LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Position, Range, Text
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import Rename
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import GROUPS, VALUES
from serena_central.symbols.syntax.grammars import SHORTHANDS
from serena_central.symbols.syntax.messages import Shorthand

_BEFORE = re.compile(r"[{,](?:\s|/\*.*?\*/|//[^\n]*\n|\b(?:ref|mut)\b)*\Z", re.DOTALL)
_LOOKED_BACK = 200
"""Characters before a word in which a shorthand would begin."""


def is_member(hit: Hit) -> bool:
    """Whether a symbol is named as what it belongs to, and not as a value of its own."""
    container = hit.symbol.container
    return container >= 0 and hit.file.symbols[container].kind not in GROUPS


async def check_meant(languages: ProjectLanguages, hit: Hit, rename: Rename) -> None:
    """Raises EditRefused where a rename is about the variable that gives a field its value, and not about the field.

    Where a declaration is a shorthand, language servers take one of the two for what is asked about.
    """
    symbol = hit.symbol
    if (hit.path, symbol.name_position) not in rename.kept:
        return
    place = (await shorthands(languages, hit.path, symbol.name)).get(symbol.name_position)
    if place is None or place.binds is not False:
        return
    written = (edit.new_text for edit in rename.edits[hit.path] if edit.range.start == symbol.name_position)
    if any(text.startswith(symbol.name) for text in written):
        raise EditRefused(
            f"Nothing was changed: at {hit.path}:{symbol.name_line}, {symbol.name} names both {hit.name_path} and the "
            f"variable that provides its value, and the language server would rename the variable as well. Write "
            f"`{symbol.name}: {symbol.name}` there first."
        )


async def both_written(
    languages: ProjectLanguages, rename: Rename, texts: Mapping[str, Text], hit: Hit, new: str
) -> Rename:
    """A rename that writes both names where a shorthand would get the new one alone, or them the wrong way round."""
    old, edits = hit.symbol.name, dict(rename.edits)
    async for path, some in paced(rename.edits.items()):
        short = [edit for edit in some if _may_be_one(texts[path], edit, old, new)]
        if not short:
            continue
        found = await shorthands(languages, path, old)
        both = {
            edit: written
            for edit in short
            if (one := found.get(edit.range.start)) and (written := _written(texts[path], edit, one, hit, new))
        }
        edits[path] = [both.get(edit, edit) for edit in some]
    return rename._replace(edits=edits)


async def are_patterns(languages: ProjectLanguages, rename: Rename, name: str) -> bool:
    """Whether all that keeps the old name beside the new one are variables of patterns: what leads past them to the
    symbol itself means the symbol. Importers lead past `export { new as old }`, too, and mean that."""
    for path in {path for path, _ in rename.kept}:
        found = await shorthands(languages, path, name)
        at_all = [found.get(at) for one, at in rename.kept if one == path]
        if not all(place is not None and place.binds for place in at_all):
            return False
    return True


async def shorthands(languages: ProjectLanguages, path: str, name: str) -> Mapping[Position, Shorthand]:
    """Where a name stands in a file for a field and a value at once, as far as a grammar can tell."""
    if languages.selection.identifier(path) not in SHORTHANDS:
        return {}
    try:
        found = await languages.syntax.occurrences(path, name)
    except (LanguageServerError, PathError):
        return {}
    return {one.range.start: one.shorthand for one in found if one.shorthand is not None}


def _may_be_one(text: Text, edit: TextEdit, old: str, new: str) -> bool:
    if edit.new_text not in (new, f"{old}: {new}", f"{new}: {old}") or text.slice(edit.range) != old:
        return False
    at = text.offset(edit.range.start)
    return _BEFORE.search(text.content, max(at - _LOOKED_BACK, 0), at) is not None


def _written(text: Text, edit: TextEdit, place: Shorthand, hit: Hit, new: str) -> TextEdit | None:
    """The edit that writes both names; None where the server's has them right."""
    old = hit.symbol.name
    whole = Range(place.start, edit.range.end)
    if edit.new_text == f"{new}: {old}":
        # TypeScript's servers take a class for the field that an object has of its name.
        return None if place.binds or is_member(hit) else TextEdit(whole, f"{old}: {new}")
    # A pattern declares a variable: to what is none it refers as the field that the variable takes its value from.
    if edit.new_text != new and not (place.binds and hit.symbol.kind not in VALUES):
        return None
    is_field = is_member(hit) or place.binds
    return TextEdit(whole, f"{new}: {text.slice(whole)}" if is_field else f"{old}: {new}")
