"""Fields that may be handed their values by position: no place names them, and each that builds the type needs them."""

import re
from collections.abc import Mapping

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.declaration_changes import WITH_BASE, is_decorated, is_import, match_args
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_FIELDS = frozenset({SymbolKind.FIELD, SymbolKind.PROPERTY, SymbolKind.VARIABLE, SymbolKind.CONSTANT})

_LOOKED_AT = 300
"""Characters behind a type's name in which it may be built."""

_BRACES = r"\)?[^;(){}]*\{\s*[^.}\s]"
_BUILT: Mapping[str, str] = {
    "python": "",
    "typescript": "",
    "go": r"(?:\[[^\]\n]*\])?\{[\s{&]*+(?!\}|[^\W\d]\w*\s*:)\S",
    "c": _BRACES,
    "cpp": _BRACES,
}
"""Language → what follows a type's name where values are listed without names; "": any use of the type may do so."""


async def filled_by_position(project: Project, hit: Hit) -> str | None:
    """A sentence about the first place that may give a field its value by position; None if there is none.

    Raises:
        PathError
    """
    language, container = project.languages.language_of(hit.path) or "", hit.symbol.container
    if language not in _BUILT or hit.symbol.kind not in _FIELDS or container < 0:
        return None
    holder = Hit(hit.path, hit.file, container)
    if holder.symbol.kind not in TYPES or not _is_listed(hit, (await project.read(hit.path)).text, language):
        return None
    try:
        places = (await project.navigation.references.uses(holder)).places
    except LanguageServerError as error:
        return f"Cannot determine whether {holder.name_path} is built with positional arguments: {error}"
    built = re.compile(_BUILT[language])
    for path, spans in places.items():
        try:
            text = (await project.read(path)).text
        except PathError:
            continue
        for span in spans:
            end = text.offset(span.end)
            inside = path == hit.path and holder.symbol.range.contains(span.start)
            if inside or is_import(text.line(span.start.line0)):
                continue
            if built.match(text.content[end : end + _LOOKED_AT]):
                where = f"{path}:{span.start.line0}"
                return f"It may receive its value as a positional argument where {holder.name_path} is used: {where}."
    return None


def _is_listed(hit: Hit, text: Text, language: str) -> bool:
    """Whether a field has a place in a list of values."""
    symbol, holder = hit.symbol, hit.file.symbols[hit.symbol.container]
    if language == "typescript":
        head = text.content[text.offset(holder.name_position) : text.offset(symbol.name_position)]
        return re.search(r"\bconstructor\s*\([^{}]*\Z", head) is not None
    if language == "python":
        return symbol.name in match_args(text, hit.file, hit.symbol.container) or bool(
            re.match(r"\s*\w+\s*:", text.line(symbol.name_line))
            and (is_decorated(text, holder) or WITH_BASE.search(text.line(holder.name_line)))
        )
    return True
