"""Which words of a comment are code to somebody."""

import pytest

from serena_central.analysis.code_in_comments import _of_go, _of_rust
from serena_central.core.text import Position, Range, Text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("//go:generate stringer -type=@day,Month", "directive"),
        ("//go:generate stringer -type=day,@Month", "directive"),
        ("//go:generate @stringer -type=day", None),
        ("//go:linkname now example.com/@runtime.now", None),
        ("//go:linkname now example.com/runtime.@now", "directive"),
        ("// go:generate stringer -type=@day", None),
        ("//go:generate stringer -type @day", "directive"),
        ("//go:generate go run ./gen -type @day", "directive"),
        ("//go:generate mockgen -source=main.go @store", "type"),
        ("//go:generate go tool mockgen @store,other", "type"),
        ("//go:generate go @run gen.go", None),
        ("//go:generate go run @gen.go", None),
        ("//go:generate mockgen -@source=main.go", None),
        ("//go:generate mockgen -source=@main.go", None),
        ("@", None),  # the file has changed since the word was found
    ],
)
def test_a_directive_of_go_names_symbols_and_not_words_of_commands(line: str, expected: str | None) -> None:
    before, _, behind = line.partition("@")
    start, length = len(before), len(behind.partition(",")[0].partition(" ")[0].partition(".")[0])
    span = Range(Position(0, start), Position(0, start + length))
    for is_type in (False, True):
        named = "directive" if expected == "type" and is_type else expected
        assert _of_go(before + behind, span, is_type) == (None if named == "type" else named), is_type


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("/// Text.\n/// ```\n/// use shop::@Name;\n/// ```", "doctest"),
        ("//! ~~~rust,no_run\n//! @Name::new();\n//! ~~~", "doctest"),
        ("    /// ```should_panic, edition2021\n    ///\n    /// # @Name::new();", "doctest"),
        ("/// ```\n/// a();\n/// ```\n/// See @Name.", None),
        ("/// ```text\n/// @Name\n/// ```", None),
        ("/// ```ignore\n/// @Name\n/// ```", None),
        ("/// ````\n/// ```\n/// @Name\n/// ````", "doctest"),
        ("// ```\n// @Name\n// ```", None),
        ("/// ```\n/// a();\nfn f() {}\n/// @Name", None),
        ("@Name", None),
    ],
)
def test_code_in_docs_of_rust_that_is_compiled_names_symbols(comment: str, expected: str | None) -> None:
    at = comment.index("@")
    line0, column = comment.count("\n", 0, at), at - comment.rfind("\n", 0, at) - 1
    span = Range(Position(line0, column), Position(line0, column + len("Name")))
    assert _of_rust(Text(comment.replace("@", "")), span) == expected
