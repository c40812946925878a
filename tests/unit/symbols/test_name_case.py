"""Names that are the same in capitals and small letters: for which symbols, and where they stand in a text."""

import pytest

from serena_central.core.text import Position, Range, Text
from serena_central.editing.rename import completed
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.name_case import ignores_case
from serena_central.symbols.syntax.occurrences import occurrences

PHP = "<?php\nfunction ship() {}\nSHIP(); // Ship\n$ship = 'SHIP';\n"


@pytest.mark.parametrize(
    ("language", "kind", "expected"),
    [
        ("php", SymbolKind.FUNCTION, True),
        ("php", SymbolKind.CLASS, True),
        ("php", SymbolKind.VARIABLE, False),
        ("fortran", SymbolKind.VARIABLE, True),
        ("python", SymbolKind.FUNCTION, False),
        (None, SymbolKind.FUNCTION, False),
    ],
)
def test_a_languages_own_rule_counts(language: str | None, kind: int, *, expected: bool) -> None:
    assert ignores_case(language, kind) is expected


def test_places_in_any_case_are_told_with_what_they_stand_in() -> None:
    found = [(one.range.start.line0, one.kind) for one in occurrences("php", PHP.encode(), "ship")]
    assert found == [(1, "code"), (2, "code"), (2, "comment"), (3, "string")]
    assert len(occurrences("python", b"ship = SHIP", "ship")) == 1


def test_a_reference_in_another_case_is_added_to_a_rename_only_where_it_is_the_same_name() -> None:
    place = Range(Position(2, 0), Position(2, 4))
    for ignore_case in (True, False):
        rename = completed({}, {"a": [place]}, {"a": Text(PHP)}, "ship", "go", ignore_case=ignore_case)
        assert rename.places == int(ignore_case)
