"""Which symbols of a file a place or a stretch of its text belongs to."""

import pytest

from serena_central.core.text import Position
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.symbol import FileSymbols, Symbol


def symbol(name: str, container: int, start: tuple[int, int], end: tuple[int, int]) -> Symbol:
    return Symbol(name, SymbolKind.CLASS, container, None, *start, *end, *start)


FILE = FileSymbols(
    (
        symbol("Cart", -1, (0, 0), (9, 4)),
        symbol("total", 0, (1, 4), (4, 12)),
        symbol("tax", 0, (4, 14), (6, 0)),
        symbol("Shop", -1, (12, 0), (20, 0)),
    )
)


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ((2, 0), (2, 9), ["Cart", "total"]),
        ((4, 13), (4, 13), ["Cart"]),
        ((4, 12), (4, 14), ["Cart", "total", "tax"]),
        ((9, 4), (12, 0), ["Cart", "Shop"]),
        ((9, 5), (11, 80), []),
        ((0, 0), (99, 0), ["Cart", "total", "tax", "Shop"]),
    ],
)
def test_a_stretch_meets_what_reaches_into_it(first: tuple[int, int], last: tuple[int, int], names: list[str]) -> None:
    met = FILE.meeting(Position(*first), Position(*last))
    assert [FILE.symbols[place].name for place in met] == names


@pytest.mark.parametrize(
    ("at", "name"), [((5, 3), "tax"), ((4, 12), "total"), ((4, 13), "Cart"), ((12, 0), "Shop"), ((10, 0), None)]
)
def test_the_innermost_definition_is_the_one_that_holds_a_place(at: tuple[int, int], name: str | None) -> None:
    place = FILE.enclosing(Position(*at))
    assert (None if place is None else FILE.symbols[place].name) == name
