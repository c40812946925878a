"""What is handed values by position, and whether a change moves them."""

import pytest

from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.projects.editing.declaration_changes import called_as, is_by_position, is_moved, values
from serena_central.symbols.symbol import flatten


def symbol(text: str, name: str, kind: SymbolKind, *children: DocumentSymbol) -> DocumentSymbol:
    whole = Text(text)
    at = text.index(name)
    place = Range(whole.position(at), whole.position(at + len(name)))
    end = Position(whole.line_count - 1, len(whole.line(whole.line_count - 1)))
    return DocumentSymbol(name=name, kind=kind, range=Range(place.start, end), selection=place, children=list(children))


@pytest.mark.parametrize(
    ("text", "name", "kind", "expected"),
    [
        ("def total(a, b=1, *c):\n    pass\n", "total", SymbolKind.FUNCTION, ["a", "b", "* c"]),
        (
            "func Sum[T any](x int, y map[string]int) error {",
            "Sum",
            SymbolKind.FUNCTION,
            ["x int", "y map [ string ] int"],
        ),
        ("struct P(i32, Vec<(u8, u8)>);", "P", SymbolKind.STRUCT, ["i32", "Vec < ( u8 , u8 ) >"]),
        ("record Point(int x, int y) {}", "Point", SymbolKind.CLASS, ["int x", "int y"]),
        (
            "function g(x: A<B>, y: () => void = () => {}) {}",
            "g",
            SymbolKind.FUNCTION,
            ["x : A < B >", "y : ( ) => void"],
        ),
        ("class Plain { }", "Plain", SymbolKind.CLASS, []),
    ],
)
def test_parameters_are_told_in_order(text: str, name: str, kind: SymbolKind, expected: list[str]) -> None:
    assert values(Text(text), flatten([symbol(text, name, kind)]), 0) == expected


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("type Pair struct {\n\tLeft, Right int\n}\n", SymbolKind.STRUCT, ["Left", "Right"]),
        ("@dataclass\nclass Pair:\n    Left: int\n    Right: int\n", SymbolKind.CLASS, ["Left", "Right"]),
        ("class Pair:\n    Left = 1\n    Right = 2\n", SymbolKind.CLASS, []),
        ("struct Pair {\n  int Left;\n  int Right;\n};\n", SymbolKind.CLASS, ["Left", "Right"]),
    ],
)
def test_fields_count_where_they_are_listed(text: str, kind: SymbolKind, expected: list[str]) -> None:
    fields = [symbol(text, name, SymbolKind.FIELD) for name in ("Left", "Right")]
    assert values(Text(text), flatten([symbol(text, "Pair", kind, *fields)]), 0) == expected


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [
        ("ab", "ab", False),
        ("ab", "abc", False),
        ("ab", "ax", False),
        ("ab", "ba", True),
        ("ab", "xab", True),
        ("ab", "b", True),
        ("ab", "a", True),
        ("ab", "xy", True),
    ],
)
def test_what_is_appended_or_replaced_moves_nothing(before: str, now: str, *, moved: bool) -> None:
    assert is_moved(before, now) is moved


def test_a_constructor_is_called_by_its_types_name() -> None:
    text = "class Box:\n    def __init__(self):\n        pass\n"
    made = symbol(text, "__init__", SymbolKind.METHOD)
    file = flatten([symbol(text, "Box", SymbolKind.CLASS, made)])
    assert [called_as(file, place) for place in (0, 1)] == ["Box", "Box"]


@pytest.mark.parametrize(
    ("text", "language", "is_type", "expected"),
    [
        ("x = Pair{1, 2}", "go", True, True),
        ("x = Pair{Left: 1}", "go", True, False),
        ("x = Pair[int]{1}", "go", True, True),
        ("let x = Pair(1, 2);", "rust", True, True),
        ("let Pair { left, right } = x;", "rust", True, False),
        ("x: Pair = y", "python", True, False),
        ("struct Pair p = {1, 2};", "c", True, True),
        ("struct Pair p = {.left = 1};", "c", True, False),
        ("from a import Pair", "python", False, False),
        ('export { Pair } from "./a.js";', "typescript", False, False),
        ("export const x = new Pair(1);", "typescript", True, True),
        ("map(Pair, xs)", "python", False, True),
    ],
)
def test_values_without_names_are_told_from_those_with_names(
    text: str, language: str, *, is_type: bool, expected: bool
) -> None:
    end = text.index("Pair") + len("Pair")
    assert is_by_position(Text(text), end, language, is_type=is_type) is expected
