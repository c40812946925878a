"""Which declarations of C and C++ in different files meet: at the linker, or where one file includes the other."""

import re
from pathlib import PurePosixPath

from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit

_SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".m", ".mm"})
"""Files that no other file includes."""

_LINKED = frozenset({SymbolKind.FUNCTION, SymbolKind.VARIABLE, SymbolKind.CONSTANT})

_STATIC = re.compile(r"\bstatic\b")


def may_meet(one: Hit, text: Text, other: Hit, other_text: Text) -> bool:
    """Whether declarations of two files in one namespace may be in each other's way."""
    if not (_is_in_source(one) and _is_in_source(other)):
        return True
    return _is_linked(one, text) and _is_linked(other, other_text)


def macros_called(text: Text, name: str) -> list[int]:
    """Lines in which a macro of a name is defined."""
    found = re.finditer(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", text.content, re.MULTILINE)
    return [text.position(match.start()).line0 for match in found]


def _is_in_source(hit: Hit) -> bool:
    return PurePosixPath(hit.path).suffix in _SOURCES


def _is_linked(hit: Hit, text: Text) -> bool:
    """Whether the linker sees it: not what is static or in a namespace without a name."""
    symbol = hit.symbol
    heading = text.lines(symbol.start_line, symbol.name_line)
    is_nameless = any(part.name.startswith("(anonymous") for part in hit.file.path(hit.place)[:-1])
    return symbol.kind in _LINKED and not is_nameless and _STATIC.search(heading) is None
