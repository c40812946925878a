"""Which words of a comment are code to somebody."""

import pytest

from serena_central.analysis.code_in_comments import _of_go
from serena_central.core.text import Position, Range


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
