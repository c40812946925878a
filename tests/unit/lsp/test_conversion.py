import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import PathNotFound
from serena_central.core.text import Encoding, Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol, Location
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.conversion import (
    LARGE_TEXT,
    MANY_SYMBOLS,
    Converter,
    assigned,
    lsp_position,
    path_of,
    plain,
    scoped_name,
    take_long,
    uri_of,
    word_at,
)
from serena_central.lsp.patterns import NamePatterns
from serena_central.lsp.types import LspDiagnostic, LspLocation, LspPosition, LspRange, LspSymbol

WIDE = Text("a😀b\nüber\n")
HERE = Path("/r/x.py")


def lsp_span(line: int, start: int, end: int) -> LspRange:
    return LspRange(LspPosition(line, start), LspPosition(line, end))


def lsp_lines(first: int, last: int) -> LspRange:
    return LspRange(LspPosition(first, 0), LspPosition(last, 0))


def converter(encoding: Encoding = "utf-16") -> Converter:
    def text_of(path: Path) -> Text:
        if path != HERE:
            raise PathNotFound(str(path))
        return WIDE

    return Converter(encoding, text_of)


def names(symbols: list[DocumentSymbol]) -> list[tuple[str, list[object]]]:
    return [(symbol.name, list(names(symbol.children))) for symbol in symbols]


@pytest.mark.parametrize("path", ["/a b/ä.py", "/x/#?%41;[1].py", "/c:d/😀.py"])
def test_every_path_survives_the_way_to_a_uri_and_back(path: str) -> None:
    assert path_of(uri_of(Path(path))) == Path(path)


def test_a_path_that_is_no_text_survives_too() -> None:
    path = Path("/x/\udcff.py")
    assert path_of(uri_of(path)) == path


def test_uris_of_other_servers_are_understood_and_virtual_ones_are_no_paths() -> None:
    assert path_of("file:///c%3A/x%2By.py") == Path("/c:/x+y.py")
    assert path_of("file:///x/y.py") == path_of("file:///x/y.py#L1") == path_of("file:///x/y.py?z=1") == Path("/x/y.py")
    assert path_of("file:///x/\ty.py\n") == Path("/x/y.py")
    assert path_of("untitled:Untitled-1") is None
    assert path_of("jdt://contents/java.base") is None


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_columns_are_code_points_whatever_the_server_counts(encoding: Encoding, character: int) -> None:
    assert lsp_position(WIDE, Position(0, 2), encoding) == {"line": 0, "character": character}
    span = LspRange(LspPosition(0, character), LspPosition(0, character))
    assert converter(encoding).range(WIDE, span) == Range(Position(0, 2), Position(0, 2))


def test_locations_and_links_of_one_or_many_become_places_once_each() -> None:
    uri = uri_of(HERE)
    link = LspLocation(target_uri=uri, target_range=lsp_lines(0, 1), target_selection_range=lsp_span(0, 3, 4))
    expected = Location(HERE, Range(Position(0, 2), Position(0, 3)))
    assert converter().locations(None) == []
    assert converter().locations(link) == [expected]
    assert converter().locations([LspLocation(uri, lsp_span(0, 3, 4)), link]) == [expected]


def test_places_in_what_is_no_readable_file_are_left_out() -> None:
    gone = LspLocation("file:///r/gone.py", lsp_span(0, 0, 1))
    virtual = LspLocation("builtin:/x", lsp_span(0, 0, 1))
    assert converter().locations([gone, virtual]) == []


def test_nested_symbols_keep_their_tree_detail_and_unknown_kinds() -> None:
    child = LspSymbol("m", 99, range=lsp_span(1, 0, 4), selection_range=lsp_span(1, 0, 1), detail="() -> int")
    (parent,) = converter().symbols(WIDE, [LspSymbol("C", 5, range=lsp_lines(0, 2), children=[child])])
    assert names([parent]) == [("C", [("m", [])])]
    assert (parent.selection, parent.detail) == (parent.range, "")
    assert (parent.children[0].kind, parent.children[0].detail) == (99, "() -> int")


def flat(name: str, span: LspRange, container: str | None = None) -> LspSymbol:
    return LspSymbol(name, 12, location=LspLocation(uri_of(HERE), span), container_name=container)


def test_flat_symbols_are_nested_by_what_encloses_them() -> None:
    text = Text("\n" * 20)
    symbols = [
        flat("g", lsp_lines(12, 14)),
        flat("m", lsp_lines(2, 4), "C"),
        flat("C", lsp_lines(1, 10)),
        flat("inner", lsp_lines(3, 4), "m"),
        flat("n", lsp_lines(5, 6), "C"),
    ]
    found = converter().symbols(text, symbols)
    assert names(found) == [("C", [("m", [("inner", [])]), ("n", [])]), ("g", [])]


def test_flat_symbols_that_only_mark_names_are_nested_by_their_containers() -> None:
    text = Text("\n".join(["x" * 20] * 5))
    symbols = [flat("C", lsp_span(0, 0, 1)), flat("m", lsp_span(1, 0, 1), "C"), flat("f", lsp_span(2, 0, 1), "no such")]
    assert names(converter().symbols(text, symbols)) == [("C", [("m", [])]), ("f", [])]


def test_symbols_that_nest_deeper_than_anybody_writes_are_refused_whatever_python_decodes() -> None:
    text = Text("\n" * 1200)
    deepest = LspSymbol("f", 12, range=lsp_lines(0, 1), selection_range=lsp_span(0, 0, 1))
    for _ in range(500):
        deepest = LspSymbol("f", 12, range=lsp_lines(0, 1), selection_range=lsp_span(0, 0, 1), children=[deepest])
    with pytest.raises(RecursionError):
        converter().symbols(text, [deepest])
    with pytest.raises(RecursionError):
        converter().symbols(text, [flat("f", lsp_lines(level, 1200 - level)) for level in range(500)])


def test_hierarchy_items_keep_the_servers_own_words() -> None:
    raw = msgspec.Raw(
        b'{"name":"f","kind":12,"uri":"file:///r/x.py","data":{"secret":[1,2]},'
        b'"range":{"start":{"line":0,"character":0},"end":{"line":1,"character":0}},'
        b'"selectionRange":{"start":{"line":0,"character":3},"end":{"line":0,"character":4}}}'
    )
    (item,) = converter().items([raw])
    assert (item.name, item.path, item.selection.start) == ("f", HERE, Position(0, 2))
    assert bytes(item.raw) == bytes(raw)


def test_a_diagnostic_without_severity_is_an_error_and_codes_are_text() -> None:
    (found,) = converter().diagnostics(WIDE, [LspDiagnostic(lsp_span(0, 0, 1), "wrong", code=7)])
    assert (found.severity, found.code, found.source) == (1, "7", None)


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ({"kind": "markdown", "value": "**x**"}, "**x**"),
        ({"language": "go", "value": "func f()"}, "```go\nfunc f()\n```"),
        (["a", {"language": "go", "value": "b"}, "", None], "a\n\n```go\nb\n```"),
        (17, ""),
    ],
)
def test_hovers_of_every_form_are_text(contents: object, text: str) -> None:
    assert plain(contents) == text


@pytest.mark.parametrize(
    ("server", "name", "expected"),
    [
        ("gopls", "(Square).Area", ("Area", ("Square",))),
        ("gopls", "(*List[K, V]).Push", ("Push", ("List",))),
        ("gopls", "Area", ("Area", ())),
        ("clangd", "Square::area", ("area", ("Square",))),
        ("clangd", "ns::Box<std::pair<A, B>>::In::deep", ("deep", ("ns", "Box", "In"))),
        ("clangd", "ns::Box<T>::~Box", ("~Box", ("ns", "Box"))),
        ("clangd", "Box::operator std::string", ("operator std::string", ("Box",))),
        ("clangd", "Box::operator<", ("operator<", ("Box",))),
        ("clangd", "ns::Box<int>", ("Box<int>", ("ns",))),
        ("clangd", "area", ("area", ())),
        ("ty", "a.b", ("a.b", ())),
        ("jdtls", "total(int, List<String>)", ("total", ())),
        ("jdtls", "Cart<T extends Comparable<T>>", ("Cart", ())),
        ("jdtls", "Cart", ("Cart", ())),
        ("jdtls", "new Object() {...}", ("new Object() {...}", ())),
    ],
)
def test_a_name_that_says_its_container_is_taken_apart(
    server: str, name: str, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert scoped_name(name, NamePatterns(catalogue().server(server).naming)) == expected


@pytest.mark.parametrize(
    ("code", "whole", "name"),
    [
        ("app.get = (path) => 1;\n", (0, 21), (4, 7)),
        ("View.prototype.get ||= (path) => 1;\n", (0, 34), (15, 18)),
        ("handle((path) => 1);\n", (7, 18), (7, 18)),
    ],
)
def test_an_assigned_function_has_its_name_where_it_is_written(
    code: str, whole: tuple[int, int], name: tuple[int, int]
) -> None:
    start = code.index("(path)")
    end = code.index(" 1") + 2
    symbol = LspSymbol("get", 12, range=lsp_span(0, start, end), selection_range=lsp_span(0, start, start))
    (found,) = converter().symbols(Text(code), [symbol])
    assert (found.range, found.selection) == tuple(
        Range(Position(0, first), Position(0, last)) for first, last in (whole, name)
    )


def test_a_function_that_is_assigned_is_known_by_that_name_and_not_by_its_own() -> None:
    code = "app.use = function use() {};\n"
    own = LspSymbol("use", 12, range=lsp_span(0, 10, 27), selection_range=lsp_span(0, 19, 22))
    around = LspSymbol("use", 13, range=lsp_span(0, 0, 27), selection_range=lsp_span(0, 4, 7), children=[own])
    for drawn in (own, around):
        (found,) = converter().symbols(Text(code), [drawn])
        assert (found.kind, found.children) == (12, [])
        assert found.range == Range(Position(0, 0), Position(0, 27))
        assert found.selection == Range(Position(0, 4), Position(0, 7))


SOURCES = st.text(st.sampled_from("ab_é1$ .=|?&({\n"), max_size=30)
NAMES = st.sampled_from(["a", "ab", "a.b", "é", "_1", "$a", "a(b)", "{", ""])


@given(SOURCES, NAMES, st.integers(0, 30), st.integers(0, 30))
def test_a_word_is_found_where_an_expression_finds_it(content: str, word: str, first: int, last: int) -> None:
    first, last = sorted((min(first, len(content)), min(last, len(content))))
    found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(content, first, last)
    assert word_at(content, word, first, last) == (found.start() if found else -1)


@given(SOURCES, NAMES, st.sampled_from(["", "=", " = ", " ||= ", "?? =", "\n=\n"]))
def test_an_assignment_is_seen_where_an_expression_sees_it(content: str, name: str, sign: str) -> None:
    head = content + name + sign
    text = Text(head + "function () {}")
    start, end = text.position(len(head)), text.position(len(text.content))
    found = re.search(rf"(?:[\w$]+\.)*(?P<name>{re.escape(name)})\s*(?:[|?&]{{2}})?=\s*\Z", head)
    expected = found and (Range(text.position(found.start()), end), Range(*map(text.position, found.span("name"))))
    assert assigned(text, Range(start, end), name) == expected


def test_what_an_import_names_is_no_definition() -> None:
    code = """\
import first, { second as third } from "./b.js";
import type { Fourth } from './b.js'
import fifth = require("./b.js");
export { sixth } from "./b.js";
const seventh = await import("./b.js"), eighth = 1;
declare module "x" {
  import { ninth } from "y";
  let tenth: number;
}
export const eleventh = { twelfth: 1 };
"""
    text = Text(code)

    def symbol(name: str, *children: LspSymbol) -> LspSymbol:
        line, character = text.to_lsp(text.position(code.index(name)), "utf-16")
        span = lsp_span(line, character, character + len(name))
        return LspSymbol(name, 13, range=span, selection_range=span, children=list(children))

    module = LspSymbol("module", 2, range=lsp_lines(5, 8), children=[symbol("ninth"), symbol("tenth")])
    found = [symbol(name) for name in ("first", "third", "Fourth", "fifth", "sixth", "seventh", "eighth")]
    converter = Converter("utf-16", lambda path: text, NamePatterns(catalogue().server("typescript").naming))
    assert names(converter.symbols(text, [*found, module, symbol("eleventh")])) == [
        ("seventh", []),
        ("eighth", []),
        ("module", [("tenth", [])]),
        ("eleventh", []),
    ]


@pytest.mark.parametrize("server", ["deno", "typescript", "typescript-language-server", "vtsls"])
def test_functions_without_a_name_are_no_symbols_of_typescript_whatever_server_lists_them(server: str) -> None:
    code = "const run = () => {};\nuse(() => run(1));\n"

    def symbol(name: str, kind: int, at: str, *children: LspSymbol) -> LspSymbol:
        line, character = Text(code).to_lsp(Text(code).position(code.index(at)), "utf-16")
        span = lsp_span(line, character, character + len(at))
        return LspSymbol(name, kind, range=span, selection_range=span, children=list(children))

    found = [
        symbol("run", 14, "run", symbol("<function>", 12, "() =>")),
        symbol("use() callback", 12, "use", symbol("inner", 12, "run(1)")),
        symbol("<unknown>", 12, "use", symbol("local", 7, "use")),
        symbol("<unknown>", 14, "use", symbol("exported", 7, "use")),
    ]
    converter = Converter("utf-16", lambda path: Text(code), NamePatterns(catalogue().server(server).naming))
    assert names(converter.symbols(Text(code), found)) == [("run", []), ("inner", []), ("exported", [])]


def test_blocks_that_a_server_lists_as_modules_are_no_symbols_and_what_they_hold_is_kept() -> None:
    text = Text("\n" * 20)

    def symbol(name: str, kind: int, *children: LspSymbol) -> LspSymbol:
        return LspSymbol(name, kind, range=lsp_lines(1, 9), selection_range=lsp_lines(1, 1), children=list(children))

    block = symbol("if", 2, symbol("i", 16), symbol("for in", 2, symbol("closure", 2, symbol("inner", 12))))
    converter = Converter("utf-16", lambda path: text, NamePatterns(catalogue().server("emmylua").naming))
    found = converter.symbols(text, [symbol("run", 12, block), symbol("limit", 16), symbol("closure", 12)])
    assert names(found) == [("run", [("inner", [])]), ("limit", []), ("closure", [])]


def test_a_function_whose_made_up_name_stands_nowhere_is_no_symbol() -> None:
    text = Text("$f = function () {};\nclass Closure {}\n")
    converter = Converter("utf-16", lambda path: text, NamePatterns(catalogue().server("intelephense").naming))
    whole, head = lsp_span(0, 5, 19), lsp_span(0, 5, 13)
    made_up = LspSymbol("Closure", 12, range=whole, selection_range=head)
    own = LspSymbol("Closure", 5, range=lsp_span(1, 0, 16), selection_range=lsp_span(1, 6, 13))
    assert [one.kind for one in converter.symbols(text, [made_up, own])] == [5]


@pytest.mark.parametrize(
    ("content", "methods", "long"),
    [
        ("x = 1\n" * (LARGE_TEXT // 6 + 1), MANY_SYMBOLS // 2, False),
        ("x = 1\n" * (LARGE_TEXT // 6) + "é" * 6, 0, True),
        ("é", 0, False),
        ("", MANY_SYMBOLS, True),
    ],
)
def test_symbols_take_long_that_are_many_or_stand_in_a_long_text_with_foreign_letters(
    content: str, methods: int, long: bool
) -> None:
    method = LspSymbol(name="f", kind=6)
    assert take_long(Text(content), [LspSymbol(name="C", kind=5, children=[method] * methods)]) is long
