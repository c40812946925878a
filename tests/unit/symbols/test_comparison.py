"""Which source knows the files of a project better is decided by what both say of a sample."""

import pytest

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.comparison import SAMPLE_FILES, Comparison

SPAN = Range(Position(0, 0), Position(0, 1))


def outline(*names: str, kind: int = SymbolKind.FUNCTION) -> list[DocumentSymbol]:
    return [DocumentSymbol(name, kind, SPAN, SPAN) for name in names]


def compared(server: list[DocumentSymbol], syntax: list[DocumentSymbol], files: int = SAMPLE_FILES) -> Comparison:
    comparison = Comparison()
    for _ in range(files):
        comparison.add(server, syntax)
    return comparison


TEN = [f"f{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("server", "syntax", "prefers_syntax"),
    [
        (outline(*TEN), outline(*TEN), False),
        (outline(*TEN[:4]), outline(*TEN), True),
        (outline(*TEN[:4], *["EXPORT_SYMBOL"] * 20), outline(*TEN), True),  # what it made up counts once
        (outline(*TEN), outline(*TEN[:4]), False),
        (outline(*TEN[:8], "a", "b", "c"), outline(*TEN), False),  # each lacks something: the server's word counts
        (outline(*[f"ns::{name}" for name in TEN]), outline(*TEN), False),
        (outline(*TEN), [*outline(*TEN), *outline("x", "y", kind=SymbolKind.VARIABLE)], False),
    ],
)
def test_the_source_that_tells_more_functions_and_types_is_preferred(
    server: list[DocumentSymbol], syntax: list[DocumentSymbol], prefers_syntax: bool
) -> None:
    comparison = compared(server, syntax)
    assert (comparison.decided, comparison.prefers_syntax) == (True, prefers_syntax)
    assert Comparison().add(server, syntax) == prefers_syntax


def test_few_files_and_files_of_nothing_decide_nothing() -> None:
    assert not compared([], outline(*TEN), SAMPLE_FILES - 1).decided
    assert not compared([], outline("one")).decided
    assert not compared([], []).decided


def test_members_count_as_well() -> None:
    inner = DocumentSymbol("m", SymbolKind.METHOD, SPAN, SPAN)
    holder = DocumentSymbol("C", SymbolKind.CLASS, SPAN, SPAN, children=[inner])
    assert Comparison().add(outline("C", kind=SymbolKind.CLASS), [holder])
