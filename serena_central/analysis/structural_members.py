"""Members of scripts that a type of TypeScript may demand: a value fits a type if it has its members, and need not name
the type. Language servers list the uses of the type's member, and none for the value's.
"""

import re
from contextlib import suppress

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

_MEMBERS = frozenset({SymbolKind.FIELD, SymbolKind.METHOD, SymbolKind.PROPERTY})
"""Functions and variables in a symbol are local to it."""

_GROUPS = frozenset({SymbolKind.ENUM, SymbolKind.INTERFACE, SymbolKind.MODULE, SymbolKind.NAMESPACE})
"""What holds members that no value gets by them."""

_LANGUAGES = ("javascript", "typescript")
_HIDDEN = re.compile(r"\b(?:private|protected|static)\s[^;{}]*\Z")


async def demanded_by_type(project: Project, hit: Hit, text: Text) -> str | None:
    """Which type literal or interface has a member of the name of one of a class or an object, as a clause."""
    symbol = hit.symbol
    if project.languages.language_of(hit.path) not in _LANGUAGES or symbol.container < 0 or symbol.kind not in _MEMBERS:
        return None
    before = text.line(symbol.name_line)[: symbol.name_position.column]
    if hit.file.symbols[symbol.container].kind in _GROUPS or symbol.name.startswith("#") or _HIDDEN.search(before):
        return None
    for path in await project.navigation.possible.candidates(hit):
        if project.languages.language_of(path) not in _LANGUAGES:
            continue
        with suppress(LanguageServerError, PathError):
            for one in await project.languages.syntax.occurrences(path, symbol.name):
                if one.demands:
                    return f"a type in {path}:{one.range.start.line0} has a member of the same name"
    return None
