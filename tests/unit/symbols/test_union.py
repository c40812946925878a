"""What a server and the syntax know of one file together."""

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.union import united


def symbol(
    name: str, first: int, last: int, kind: int = SymbolKind.FUNCTION, *children: DocumentSymbol
) -> DocumentSymbol:
    name_range = Range(Position(first, 4), Position(first, 4 + len(name)))
    return DocumentSymbol(name, kind, Range(Position(first, 0), Position(last, 1)), name_range, "", list(children))


def names(server: list[DocumentSymbol], syntax: list[DocumentSymbol]) -> list[str]:
    return [one.name for one in united(Outline(server), Outline(syntax)).symbols]


def test_the_better_outline_gets_what_only_the_other_one_knows_in_the_order_of_the_file() -> None:
    a, b, c, d = (symbol(name, at, at + 5) for at, name in ((0, "a"), (10, "b"), (20, "c"), (30, "d")))
    assert names([a, b], [b, c, d]) == ["a", "b", "c", "d"]
    assert names([a, c, d], [b, c]) == ["a", "b", "c", "d"]


def test_variables_and_what_takes_one_line_are_told_by_the_better_one_alone() -> None:
    known, other = [symbol(name, 10 * at, 10 * at + 5) for at, name in enumerate("abc")], symbol("b", 10, 15)
    assert names(known, [other, symbol("v", 40, 42, SymbolKind.VARIABLE), symbol("x", 50, 50)]) == ["a", "b", "c"]


def test_a_macro_before_a_known_function_is_none() -> None:
    known = [symbol("a", 1, 5), symbol("b", 7, 12)]
    assert names([symbol("EXPORT", 6, 12)], known) == ["a", "b"]


def test_members_that_one_source_misses_come_into_their_class_and_not_beside_it() -> None:
    one, two = symbol("one", 2, 4, SymbolKind.METHOD), symbol("two", 5, 8, SymbolKind.METHOD)
    server = symbol("C", 0, 20, SymbolKind.CLASS, one)
    (both,) = united(Outline([server]), Outline([symbol("C", 0, 20, SymbolKind.CLASS, two)])).symbols
    assert [member.name for member in both.children] == ["one", "two"]
    loose = [one, two, symbol("f", 30, 33), symbol("g", 34, 36)]
    (kept, *_) = united(Outline([symbol("C", 0, 20, SymbolKind.CLASS, one, two)]), Outline(loose)).symbols
    assert (kept.name, len(kept.children)) == ("C", 2)
    assert server.children == [one]
