"""What two sources know of one file together, where neither knows all: a language server that cannot know how the file
is built, and the syntax, which knows no macros. Pure: outlines in, outline out."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from serena_central.core.text import Range
from serena_central.lsp.answers import DocumentSymbol, at_all_levels
from serena_central.symbols.comparison import TOLERATED, is_whole, last_name, names
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.symbol import CALLABLE, GROUPS, TYPES


def united(by_server: Outline, by_syntax: Outline) -> Outline:
    """The outline with more functions and types, plus those of the other one whose names it lacks, in the order of the
    file. If both have about as many, the server's outline counts."""
    server, syntax = names(by_server.symbols), names(by_syntax.symbols)
    missed, extra = len(syntax - server), len(server - syntax)
    prefers_syntax = missed > max(extra, len(syntax | server) * TOLERATED)
    better, other, known = (by_syntax, by_server, syntax) if prefers_syntax else (by_server, by_syntax, server)
    return Outline(_Known(better, known).merged(better.symbols, other.symbols), better.cut or other.cut)


class _Known:
    """What one outline tells, and what another one adds to it."""

    def __init__(self, outline: Outline, known: Collection[str]) -> None:
        self._names = known
        self._functions = [
            one.selection.start for one in at_all_levels(outline.symbols) if is_whole(one) and one.kind in CALLABLE
        ]

    def merged(self, symbols: Sequence[DocumentSymbol], others: Sequence[DocumentSymbol]) -> list[DocumentSymbol]:
        """What is unknown of `others`, put to `symbols`; what is in a container of both stays in it."""
        found, added = list(symbols), list[DocumentSymbol]()
        for one in others:
            at = next((at for at, same in enumerate(found) if _is_same_container(same, one)), None)
            if at is None:
                added += self._unknown([one])
            else:
                found[at] = _with_children(found[at], self.merged(found[at].children, one.children))
        if not added:
            return found
        # What stands in a type that was unknown is told as its member alone.
        inside = [one.range for one in added if one.kind in TYPES]
        members = {last_name(member) for one in added for member in at_all_levels(one.children)}
        found = [one for one in found if not (last_name(one) in members and _is_in(one.range, inside))]
        return sorted([*found, *added], key=lambda symbol: symbol.range.start)

    def _unknown(self, symbols: Iterable[DocumentSymbol]) -> Iterator[DocumentSymbol]:
        for one in symbols:
            if is_whole(one) and last_name(one) not in self._names and not self._is_made_up(one):
                yield one
            elif one.kind not in CALLABLE:
                yield from self._unknown(one.children)

    def _is_made_up(self, function: DocumentSymbol) -> bool:
        """It takes in a function that is known: a macro before that one, or a name in its head."""
        span = function.range
        return function.kind in CALLABLE and any(span.start <= at <= span.end for at in self._functions)


def _is_same_container(one: DocumentSymbol, other: DocumentSymbol) -> bool:
    is_container = (one.kind in GROUPS and other.kind in GROUPS) or (one.kind in TYPES and other.kind in TYPES)
    overlaps = one.range.start <= other.range.end and other.range.start <= one.range.end
    return is_container and overlaps and last_name(one) == last_name(other)


def _with_children(symbol: DocumentSymbol, children: list[DocumentSymbol]) -> DocumentSymbol:
    return msgspec.structs.replace(symbol, children=children)


def _is_in(inner: Range, ranges: Iterable[Range]) -> bool:
    return any(one.start <= inner.start and inner.end <= one.end for one in ranges)
