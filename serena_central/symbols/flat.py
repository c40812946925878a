"""Whole definitions for symbols of servers that answer flat (LSP's SymbolInformation): one range, in which the name is
not marked, and which may begin behind the definition's own keyword. The syntax of the same text says where each begins.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol


def is_flat(symbols: Sequence[DocumentSymbol]) -> bool:
    """Whether a server's answer is flat; one answer has one form."""
    return bool(symbols) and symbols[0].flat


def completed(symbols: Sequence[DocumentSymbol], syntax: Sequence[DocumentSymbol]) -> list[DocumentSymbol]:
    """The symbols with the ranges that the syntax gives to the definition of the same name at the same place. Those
    that it does not know stay flat."""
    by_name: dict[str, list[DocumentSymbol]] = {}
    for symbol in _all(syntax):
        by_name.setdefault(_bare(symbol.name), []).append(symbol)
    for named in by_name.values():
        named.sort(key=_starts_at)
    return [_completed(symbol, by_name) for symbol in symbols]


def _completed(symbol: DocumentSymbol, by_name: dict[str, list[DocumentSymbol]]) -> DocumentSymbol:
    children = [_completed(child, by_name) for child in symbol.children]
    named = by_name.get(_bare(symbol.name), [])
    # The first of that name in the range: a class's constructor of the same name lies behind the class's own name.
    place = bisect_left(named, symbol.range.start, key=_starts_at)
    if place == len(named) or not symbol.range.encloses(named[place].selection):
        return msgspec.structs.replace(symbol, children=children)
    found = named[place]
    sigils = len(symbol.name) - len(found.name)
    start = found.selection.start
    selection = Range(Position(start.line0, start.column - sigils), found.selection.end)
    return msgspec.structs.replace(symbol, range=found.range, selection=selection, children=children, flat=False)


def _all(symbols: Sequence[DocumentSymbol]) -> Iterator[DocumentSymbol]:
    for symbol in symbols:
        yield symbol
        yield from _all(symbol.children)


def _bare(name: str) -> str:
    """Without the sigil that PHP's server counts to a variable's name, and its grammar does not."""
    return name.removeprefix("$")


def _starts_at(symbol: DocumentSymbol) -> Position:
    return symbol.selection.start
