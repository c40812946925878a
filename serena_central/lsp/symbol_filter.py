"""Decides what counts as a symbol, from a language server or by syntax: a definition with a name.

Variables in code do not count, nor do properties of objects that are made there, nor functions without a name, for
which some servers give their text. What they hold (functions, classes) belongs to what they lie in.
"""

from collections.abc import Sequence

import msgspec

from serena_central.lsp.answers import DocumentSymbol, SymbolKind

ANONYMOUS = ""
"""The name of a function without one."""

CODE = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})

_TYPES = frozenset(
    {SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.ENUM, SymbolKind.OBJECT, SymbolKind.MODULE}
)

_VALUES = frozenset({SymbolKind.STRING, SymbolKind.NUMBER, SymbolKind.BOOLEAN, SymbolKind.ARRAY, SymbolKind.NULL})
"""What some servers call variables, by the values that these have."""

_LOCAL = _VALUES | {SymbolKind.VARIABLE, SymbolKind.CONSTANT, SymbolKind.PROPERTY}


def named(symbols: Sequence[DocumentSymbol]) -> list[DocumentSymbol]:
    """The symbols that count, in their order. Without recursion: sources nest deeper than Python calls."""
    found: list[DocumentSymbol] = []
    around = [(iter(symbols), found, False)]
    while around:
        nested, siblings, in_code = around[-1]
        symbol = next(nested, None)
        if symbol is None:
            around.pop()
        elif symbol.name == ANONYMOUS or "\n" in symbol.name or (in_code and symbol.kind in _LOCAL):
            # What `module.exports = {}` holds is in no code.
            around.append((iter(symbol.children), siblings, in_code or symbol.kind not in _LOCAL))
        elif not symbol.children:
            siblings.append(symbol)
        else:
            kept = msgspec.structs.replace(symbol, children=[])
            siblings.append(kept)
            in_code = symbol.kind in CODE or (in_code and symbol.kind not in _TYPES)
            around.append((iter(symbol.children), kept.children, in_code))
    return found
