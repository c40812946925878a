from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.lsp.symbol_filter import ANONYMOUS, named

HERE = Range(Position(0, 0), Position(0, 1))


def symbol(name: str, kind: SymbolKind, *children: DocumentSymbol) -> DocumentSymbol:
    return DocumentSymbol(name, kind, HERE, HERE, children=list(children))


def paths(symbols: list[DocumentSymbol], above: str = "") -> list[str]:
    found: list[str] = []
    for one in symbols:
        found += [f"{above}{one.name}", *paths(one.children, f"{above}{one.name}/")]
    return found


def test_variables_in_code_and_what_has_no_name_are_left_out_and_what_they_hold_is_kept() -> None:
    inner = symbol("inner", SymbolKind.FUNCTION, symbol("far", SymbolKind.CONSTANT))
    made = symbol("made", SymbolKind.CONSTANT, symbol("a", SymbolKind.PROPERTY, inner), symbol("b", SymbolKind.METHOD))
    callback = symbol(ANONYMOUS, SymbolKind.FUNCTION, symbol("x", SymbolKind.VARIABLE), symbol("g", SymbolKind.CLASS))
    run = symbol("run", SymbolKind.METHOD, made, callback, symbol("last", SymbolKind.FUNCTION))
    assert paths(named([symbol("C", SymbolKind.CLASS, run)])) == [
        "C", "C/run", "C/run/inner", "C/run/b", "C/run/g", "C/run/last",
    ]  # fmt: skip


def test_a_name_of_several_lines_is_the_text_of_what_has_none() -> None:
    snippet = symbol(")}\n  <li>{item}</li>\n", SymbolKind.FUNCTION, symbol("li", SymbolKind.FIELD))
    assert paths(named([symbol("line", SymbolKind.CONSTANT, snippet)])) == ["line", "line/li"]


def test_variables_of_files_types_and_objects_count() -> None:
    local = symbol("Local", SymbolKind.CLASS, symbol("here", SymbolKind.PROPERTY))
    symbols = [
        symbol("settings", SymbolKind.CONSTANT, symbol("level", SymbolKind.PROPERTY)),
        symbol("Space", SymbolKind.NAMESPACE, symbol("value", SymbolKind.VARIABLE)),
        symbol("f", SymbolKind.FUNCTION, local),
    ]
    assert paths(named(symbols)) == [
        "settings", "settings/level", "Space", "Space/value", "f", "f/Local", "f/Local/here",
    ]  # fmt: skip


def test_symbols_that_nest_deeper_than_calls_are_sorted_out_too() -> None:
    levels = 100_000
    deep = symbol("last", SymbolKind.FUNCTION)
    for level in range(levels):
        deep = symbol(ANONYMOUS if level % 2 else "f", SymbolKind.FUNCTION, deep)
    (found,) = named([deep])
    depth = 1
    while found.children:
        (found,) = found.children
        depth += 1
    assert (found.name, depth) == ("last", levels // 2 + 1)
