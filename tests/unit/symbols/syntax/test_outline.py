"""What each grammar's query finds in a small real file, exactly. `pytest --update` writes the outlines anew."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.symbol import flatten, kind_name
from serena_central.symbols.syntax.grammars import GRAMMARS, QUERIES, grammar_of
from serena_central.symbols.syntax.outline import outline

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"))


def told(symbols: Sequence[DocumentSymbol], depth: int = 0) -> Iterator[str]:
    """A line for each symbol: kind, name, where its range and its name lie, as line:column, 0-based."""
    for symbol in symbols:
        start, end, name = (
            f"{at.line0}:{at.column}" for at in (symbol.range.start, symbol.range.end, symbol.selection.start)
        )
        where = f"{start}-{end} at {name}"
        yield f"{'  ' * depth}{kind_name(symbol.kind)} {'/'.join((*symbol.scope, symbol.name))} {where}"
        yield from told(symbol.children, depth + 1)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_has_exactly_these_symbols(sample: Path, pytestconfig: pytest.Config) -> None:
    content = sample.read_text(encoding="utf-8")
    found = "\n".join(told(outline(sample.stem, content.encode())[0])) + "\n"
    expected = sample.with_suffix(".outline")
    if pytestconfig.getoption("--update"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_language_that_is_read_has_a_sample() -> None:
    samples = {GRAMMARS[sample.stem].query for sample in SAMPLES}
    assert {grammar.query for grammar in GRAMMARS.values()} == samples == {file.stem for file in QUERIES.iterdir()}
    assert all(grammar_of(identifier) for identifier in GRAMMARS)
    assert grammar_of("cobol") is None


def test_positions_count_characters_behind_wide_ones_and_windows_line_ends() -> None:
    source = "# ü📏\r\nx = 'é📏'; y = 1\r\nclass C:\r\n    def m(self): pass\r\n"
    assert list(told(outline("python", source.encode())[0])) == [
        "Variable x 1:0-1:8 at 1:0",
        "Variable y 1:10-1:15 at 1:10",
        "Class C 2:0-3:21 at 2:6",
        "  Method m 3:4-3:21 at 3:8",
    ]


def test_each_kind_of_line_end_ends_one_line() -> None:
    source = b"int a;\rint b;\r\nint c;\n\rint d;"
    assert list(told(outline("cpp", source)[0])) == [
        "Variable a 0:0-0:6 at 0:4",
        "Variable b 1:0-1:6 at 1:4",
        "Variable c 2:0-2:6 at 2:4",
        "Variable d 4:0-4:6 at 4:4",
    ]


def test_member_functions_of_a_header_that_is_read_as_c_are_methods() -> None:
    source = b"struct A {\n  double area();\n  char *name();\n  int (*open)(void);\n  int a;\n};\n"
    (symbol,), _ = outline("c", source)
    assert [f"{kind_name(child.kind)} {child.name}" for child in symbol.children] == [
        "Method area", "Method name", "Field open", "Field a",
    ]  # fmt: skip


def test_what_is_nested_deeper_than_anybody_writes_is_left_out_in_time() -> None:
    source = "def top(): pass\nx = " + "[" * 20_000 + "]" * 20_000 + "\n"
    symbols, cut = outline("python", source.encode())
    assert "top" in [symbol.name for symbol in symbols]
    assert cut


@pytest.mark.parametrize(("functions", "is_cut"), [(1, False), (100, False), (200, True), (1500, True)])
def test_what_nests_deeper_than_is_looked_at_is_said_to_be_cut(functions: int, is_cut: bool) -> None:
    nested = "".join(f"{' ' * level}def f{level}():\n" for level in range(functions))
    wide = "x = [" + "1, " * 2000 + "]\n" + "def f(): pass\n" * 500
    assert outline("python", (nested + " " * functions + "pass\n" + wide).encode())[1] == is_cut


@pytest.mark.parametrize("identifier", GRAMMARS)
def test_text_that_is_no_source_has_no_symbols_and_no_failure(identifier: str) -> None:
    for source in ("", "\0", "))(({}{", "?" * 1000, "class " * 500, "📏" * 50):
        flatten(outline(identifier, source.encode())[0])
