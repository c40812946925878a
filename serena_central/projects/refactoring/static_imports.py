"""Imports of static members in Java, each of which brings in all that have its name: overloads, a field and a method.

jdtls lists such an import among the references to each of them, and renames it with one although the file uses others.
"""

import re
from collections.abc import Collection, Mapping

from serena_central.core.text import Text
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import Rename
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.index import Hit

_IMPORT = re.compile(r"^\s*import\s+static\s+(?P<type>[\w$.\s]+\.)\s*\Z")
"""A line up to the imported name."""


def with_both_imported(
    rename: Rename, hit: Hit, others: Collection[PlaceInCode], texts: Mapping[str, Text], new: str
) -> Rename:
    """A rename that keeps an import of the old name for `others`, places in code that keep it, and adds one of the new
    name where that is used, too."""
    if not _namesakes_stay(rename, hit):
        return rename
    edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
    keeping = {place.path for place in others if (place.path, place.range.start) not in edited}
    edits = {
        path: _with_imports(some, texts[path], new) if path in keeping and path.endswith(".java") else some
        for path, some in rename.edits.items()
    }
    return rename._replace(edits={path: some for path, some in edits.items() if some})


def _namesakes_stay(rename: Rename, hit: Hit) -> bool:
    """Whether the symbol's type goes on to have a member of its old name."""
    starts = {edit.range.start for edit in rename.edits.get(hit.path, ())}
    return any(hit.file.symbols[place].name_position not in starts for place in hit.file.others(hit.place))


def _with_imports(edits: list[TextEdit], text: Text, new: str) -> list[TextEdit]:
    imports = {edit: found for edit in edits if (found := _IMPORT.match(_before(edit, text)))}
    if len(imports) == len(edits):
        return []
    line_end = "\r\n" if "\r\n" in text.content else "\n"
    return [
        TextEdit(edit.range, f"{text.slice(edit.range)};{line_end}import static {imports[edit]['type']}{new}")
        if edit in imports
        else edit
        for edit in edits
    ]


def _before(edit: TextEdit, text: Text) -> str:
    return text.line(edit.range.start.line0)[: edit.range.start.column]
