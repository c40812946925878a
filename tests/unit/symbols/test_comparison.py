"""Which source knows the files of a project better is decided by what both say of a sample."""

import pytest

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.comparison import SAMPLE_FILES, Comparison

SPAN = Range(Position(0, 0), Position(2, 1))
LINE = Range(Position(0, 0), Position(0, 9))


def outline(*names: str, kind: int = SymbolKind.FUNCTION) -> list[DocumentSymbol]:
    return [DocumentSymbol(name, kind, SPAN, SPAN) for name in names]


def compared(server: list[DocumentSymbol], syntax: list[DocumentSymbol]) -> Comparison:
    comparison = Comparison(["a.c", "b.c"])
    for _ in comparison.sample:
        comparison.add(server, syntax)
    comparison.close()
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
    assert (comparison.prefers_syntax, comparison.reads_by_syntax) == (prefers_syntax, prefers_syntax)


def test_members_count_as_well() -> None:
    inner = DocumentSymbol("m", SymbolKind.METHOD, SPAN, SPAN)
    holder = DocumentSymbol("C", SymbolKind.CLASS, SPAN, SPAN, children=[inner])
    assert compared(outline("C", kind=SymbolKind.CLASS), [holder]).prefers_syntax


def test_what_takes_one_line_may_be_a_mention_or_a_macro_and_does_not_count() -> None:
    mentions = [DocumentSymbol(f"mention{number}", SymbolKind.STRUCT, LINE, LINE) for number in range(20)]
    assert compared([*mentions, *outline(*TEN[:4])], outline(*TEN)).prefers_syntax


def test_of_many_files_a_sample_from_everywhere_is_compared_while_all_are_read_by_syntax() -> None:
    files = [f"{number:04}.c" for number in range(1000)]
    comparison = Comparison(files)
    assert (len(comparison.sample), comparison.sample[-1] > "0950.c") == (SAMPLE_FILES, True)
    assert comparison.reads_by_syntax
    for _ in comparison.sample:
        comparison.add(outline(*TEN), outline(*TEN))
        assert comparison.reads_by_syntax
    comparison.close()
    assert not comparison.reads_by_syntax
