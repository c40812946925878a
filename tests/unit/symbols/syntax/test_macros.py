"""Macros in declarations are left out where nothing else makes a text readable."""

import pytest

from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.macros import without_macros
from serena_central.symbols.syntax.outline import outline
from serena_central.symbols.syntax.trees import parsed


def names(source: bytes, identifier: str = "c") -> list[str]:
    file = flatten(outline(identifier, source)[0])
    return [file.name_path(place) for place in range(len(file.symbols))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"ZEXTERN int ZEXPORT inflate(int flush);\nint last;\n", ["inflate", "last"]),
        (b"ZEXTERN const char FAR * ZEXPORT text(void);\n", ["text"]),
        (b"BOOL WINAPI Start(HANDLE one);\n", ["Start"]),
        (b"local TCONST tree_desc static_l_desc = {1};\n", ["static_l_desc"]),
        (b"extern struct HANDLE FAR *held;\n", ["held"]),
        (b"struct a { int b; } FAR c;\n", ["a", "a/b", "c"]),
    ],
)
def test_a_declaration_with_macros_has_its_name(source: bytes, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"class EXPORT A : public B { int c; };\n", ["A", "A/c"]),
        (b"class EXPORT(1) A final { int c; };\n", ["A", "A/c"]),
        (b"class A { int c GUARDED_BY(m); void d() const LOCKED(m) {} };\n", ["A", "A/c", "A/d"]),
        (b"EXPORT extern std::vector<int> all(int a);\n", ["all"]),
    ],
)
def test_members_and_classes_with_annotations_have_their_names(source: bytes, expected: list[str]) -> None:
    assert names(source, "cpp") == expected


@pytest.mark.parametrize(
    "source", [b"BOOL first(HANDLE one) { return TRUE; }\n", b"MODULE(a)\nint b(int c) { return c; }\n", b"int f( {\n"]
)
def test_a_text_that_has_no_fewer_errors_without_them_is_read_as_it_is(source: bytes) -> None:
    root = parsed("c", source).root_node
    assert without_macros("c", source, root) is root


def test_a_declaration_still_begins_with_its_macro() -> None:
    (inflate,), _ = outline("c", b"int a;\nZEXTERN int ZEXPORT inflate(int flush);\n"[7:])
    assert inflate.range.start.column == 0


@pytest.mark.parametrize("source", [b"A_B " * 100_000, b"int x " + b"ABC(a) " * 30_000, b"int ABC(" * 30_000])
def test_what_looks_like_macros_without_end_is_read_in_time(source: bytes) -> None:
    outline("c", source)
