"""Which symbols of a file a place or a stretch of its text belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.symbol import FileSymbols, Symbol, below, flatten, kind_numbers


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


def outlined(name: str, line: int, *scope: str, children: tuple[DocumentSymbol, ...] = ()) -> DocumentSymbol:
    whole = Range(Position(line, 0), Position(line, 9))
    return DocumentSymbol(name, SymbolKind.CLASS, whole, whole, "", list(children), scope)


def paths(tree: list[DocumentSymbol]) -> list[str]:
    file = flatten(tree)
    paths = [file.name_path(place) for place in range(len(file.symbols))]
    assert file.name_paths == paths
    return paths


def test_what_stands_outside_of_its_container_is_put_into_the_last_one_so_named_before_it() -> None:
    tree = [
        outlined("bin", 0),
        outlined("early", 1, "late"),
        outlined("first", 2, "bin"),
        outlined("bin", 3),
        outlined("second", 4, "bin"),
        outlined("late", 5),
        outlined("Space", 6, children=(outlined("Inner", 6),)),
        outlined("method", 7, "Space", "Inner"),
        outlined("Made", 8, "Space"),
        outlined("of_made", 9, "Space", "Made"),
        outlined("lost", 10, "Nowhere"),
    ]
    assert paths(tree) == [
        "bin[0]",
        "bin[0]/first",
        "bin[1]",
        "bin[1]/second",
        "late",
        "late/early",
        "Space",
        "Space/Inner",
        "Space/Inner/method",
        "Space/Made",
        "Space/Made/of_made",
        "Nowhere/lost",
    ]


def test_finding_containers_looks_at_each_symbol_some_times_however_many_there_are() -> None:
    """Generated Go code has thousands of methods beside thousands of types in one file."""
    looked = 0

    class Counting(str):
        def __eq__(self, other: object) -> bool:
            nonlocal looked
            looked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    many = 2000
    types = [outlined(Counting(f"Type{number}"), number) for number in range(many)]
    methods = [outlined("Marshal", many + number, f"Type{number}") for number in range(many)]
    assert len(paths([*types, *methods])) == 2 * many
    assert looked < 20 * many


def test_symbols_of_a_file_are_bounded_on_all_levels_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.symbols.symbol.MOST_SYMBOLS", 3)
    leaves = tuple(outlined(f"leaf{line}", line) for line in range(5))
    assert flatten(leaves[:2]) == flatten(leaves[:2], cut=False)
    wide, deep = flatten(leaves), flatten([outlined("top", 0, children=leaves), outlined("other", 9)])
    assert ([one.name for one in wide.symbols], wide.cut) == (["leaf0", "leaf1", "leaf2"], True)
    assert ([one.name for one in deep.symbols], deep.cut) == (["top", "leaf0", "leaf1"], True)


_places = st.tuples(st.integers(0, 5), st.integers(0, 3))


@given(st.lists(st.tuples(_places, _places)), st.lists(_places))
def test_many_places_have_the_holders_that_each_has(
    spans: list[tuple[tuple[int, int], tuple[int, int]]], at: list[tuple[int, int]]
) -> None:
    file = FileSymbols(tuple(symbol(f"s{number}", -1, *sorted(span)) for number, span in enumerate(spans)))
    positions = [Position(*place) for place in sorted(at)]
    assert list(file.enclosing_each(positions)) == [file.enclosing(one) for one in positions]


def test_a_name_path_has_overloads_and_containers_of_other_files() -> None:
    file = FileSymbols(
        (
            Symbol("run", SymbolKind.METHOD, -1, 1, 0, 0, 9, 0, 0, 0, "", "shop/Cart"),
            Symbol("a/b", SymbolKind.FUNCTION, 0, None, 1, 0, 2, 0, 1, 0),
            Symbol("inner", SymbolKind.FUNCTION, 1, 0, 1, 0, 2, 0, 1, 0),
        )
    )
    paths = [file.name_path(place) for place in range(3)]
    assert file.name_paths == paths
    assert paths == ["shop/Cart/run[1]", "shop/Cart/run[1]/a/b", "shop/Cart/run[1]/a/b/inner[0]"]
    assert paths == ["/".join(map(str, file.path(place))) for place in range(3)]


@given(st.lists(st.integers(0, 30), max_size=12), st.data())
def test_what_a_symbol_contains_has_it_for_a_container_however_deep(drawn: list[int], data: st.DataObject) -> None:
    containers = [number % (place + 2) - 1 for place, number in enumerate(drawn)]  # each before what it holds
    file = FileSymbols(tuple(symbol("s", container, (0, 0), (0, 0)) for container in (-1, *containers)))

    def lies_in(place: int, outer: int) -> bool:
        return place == outer or (place >= 0 and lies_in(file.symbols[place].container, outer))

    chosen = data.draw(st.integers(0, len(containers)))
    assert below(file, chosen) == [place for place in range(len(file.symbols)) if lies_in(place, chosen)]


def test_kinds_are_names_or_numbers_and_anything_else_is_refused() -> None:
    assert kind_numbers(["class", "6", 12]) == {5, 6, 12}
    for odd in ("", "99", "9" * 5000, "\u00b2", -1):
        with pytest.raises(InvalidArguments, match="is not a symbol kind"):
            kind_numbers([odd])
