"""What is taken for a whole declaration: the definitions of each grammar's sample are, their ranges shifted are not."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.syntax.declarations import declared
from serena_central.symbols.syntax.messages import Built, Claimed
from serena_central.symbols.syntax.outline import outline

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"))

SHIFTS = [(lines, columns) for step in (1, 2, 4) for lines, columns in ((0, step), (0, -step), (step, 0), (-step, 0))]

ASIDE = re.compile(r"^\s*(?:@\w+|#!?\[?[ \w(./].*|///? ?.*|\[\w+\])$|\s|[;,]", re.MULTILINE)
"""What may be counted to a definition or not: blanks, separators, and lines of comments, decorators and attributes."""

HEAD = re.compile(r"^template\s*<[^<>]*>\s*")


def all_of(symbols: Sequence[DocumentSymbol]) -> Iterator[DocumentSymbol]:
    for symbol in symbols:
        yield symbol
        yield from all_of(symbol.children)


def moved(position: Position, shift: tuple[int, int]) -> Position:
    return Position(max(position.line0 + shift[0], 0), max(position.column + shift[1], 0))


def shifted(symbol: DocumentSymbol) -> Iterator[Claimed]:
    """The claim for a symbol with its range's start, its end, both, or all of it moved."""
    start, end, name = symbol.range.start, symbol.range.end, symbol.selection.start
    for shift in SHIFTS:
        yield Claimed(symbol.name, Range(moved(start, shift), end), name)
        yield Claimed(symbol.name, Range(start, moved(end, shift)), name)
        yield Claimed(symbol.name, Range(moved(start, shift), moved(end, shift)), name)
        yield Claimed(symbol.name, Range(moved(start, shift), moved(end, shift)), moved(name, shift))


def core(text: str) -> str:
    return ASIDE.sub("", text)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_definitions_are_declarations_and_shifted_ones_are_not(sample: Path) -> None:
    source = sample.read_bytes()
    text = Text(source.decode())
    symbols = list(all_of(outline(sample.stem, source)[0]))
    for symbol in symbols:
        known = declared(sample.stem, source, Claimed(symbol.name, symbol.range, symbol.selection.start))
        assert known.is_whole
        named = {core(text.slice(one.range)) for one in symbols if one.name == symbol.name}
        if known.statement is not None:
            # Or but for the template's head, where the server says that the definition begins behind that.
            whole = text.slice(known.statement)
            named |= {core(whole), core(whole[len(whole) - len(HEAD.sub("", whole)) :])}
        for claimed in shifted(symbol):
            found = text.slice(claimed.range)
            assert core(found) in named or not declared(sample.stem, source, claimed).is_whole, (symbol.name, found)


@pytest.mark.parametrize(
    ("identifier", "source", "name", "part", "expected"),
    [
        ("php", "<?php\nfunction helper($b) { return 1; }\n", "helper", "helper($b) { return 1; }", False),
        ("php", "<?php\nfunction helper($b) { return 1; }\n", "helper", "function helper($b) { return 1; }", True),
        ("php", "<?php class A { const ONE = 1; }", "ONE", "ONE = 1", True),
        ("python", "@cached\ndef total(): pass\n", "total", "def total(): pass", True),
        ("python", "def total(): pass  # all\n", "total", "def total(): pass  # all", True),
        ("python", "for total in []: pass\n", "total", "total", False),
        ("java", "class A { @B\n int x = 1; }", "x", "x = 1", False),
        ("typescript", "/** Doc. */\nexport function f() {}\n", "f", "/** Doc. */\nexport function f() {}", True),
        ("typescript", "enum A { B = 1 }\n@sealed\nclass C {}", "A", "enum A { B = 1 }\n@sealed", False),
        ("javascript", "exports.get = function (a) {};\n", "get", "function (a) {}", True),
        ("c", "int a, *b;\n", "a", "int a", False),
        ("toml", "hello = 1\n", "hello", "1", False),
        ("go", "package p\nfunc A() {}\nfunc B() {}\n", "A", "func A() {}\nfunc B() {}", False),
    ],
)
def test_a_part_of_a_declaration_is_none(identifier: str, source: str, name: str, part: str, expected: bool) -> None:
    text = Text(source)
    start = source.index(part)
    found = re.search(rf"\b{name}\b", part)
    span = Range(text.position(start), text.position(start + len(part)))
    claimed = Claimed(name, span, text.position(start + (found.start() if found else 0)))
    assert declared(identifier, source.encode(), claimed).is_whole is expected


EXPORTED = """\
typedef struct store store_t;

API_EXPORT store_t* store_open(const char* name);
API_EXPORT void store_close(store_t* store);
API_EXPORT const char* store_names(
    store_t* store, void (*each)(void*, const char* name));
"""


@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("store_open", "store_t* store_open"),
        ("store_close", "void store_close"),
        ("store_names", "const char* store_names"),
    ],
)
def test_a_macro_that_stands_for_nothing_is_removed_with_its_declaration(language: str, name: str, begins: str) -> None:
    text = Text(EXPORTED)
    start, at = EXPORTED.index(begins), EXPORTED.index(name)
    end = EXPORTED.index(";", at)
    claimed = Claimed(name, Range(text.position(start), text.position(end)), text.position(at))
    known = declared(language, EXPORTED.encode(), claimed)
    assert known.is_whole
    assert known.removal is not None
    removed = text.slice(known.removal)
    assert removed.startswith("API_EXPORT")
    assert removed.endswith(";")
    assert removed.count("store_t* store") == 1 or name == "store_open"
    part = Claimed(name, Range(text.position(start), text.position(end - 3)), text.position(at))
    assert not declared(language, EXPORTED.encode(), part).is_whole


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ('class A { label = "x"; run() {} idle = 1 }', 'class A { label = "x";  idle = 1 }'),
        ("class A { label = 1; run() {} }", "class A { label = 1 }"),
    ],
)
def test_a_semicolon_stays_that_keeps_apart_what_is_left(source: str, left: str) -> None:
    text = Text(source)
    start, end = source.index("run"), source.index("{}") + 2
    claimed = Claimed("run", Range(text.position(start), text.position(end)), text.position(start))
    known = declared("typescript", source.encode(), claimed)
    assert known.removal is not None
    first, last = text.offset(known.removal.start), text.offset(known.removal.end)
    assert source[:first] + source[last:] == left


@pytest.mark.parametrize(
    ("identifier", "source", "calls"),
    [
        ("python", "a = f(1)", True),
        ("python", "a = sum(x for x in y)", True),
        ("python", "a = [lambda: f(1), f(2).b]", True),
        ("python", "a = ['f(1)', (2)]  # f()", False),
        ("python", "a: Annotated[int, F(1)] = lambda: f(1)", False),
        ("python", "a = " + "(" * 10_000 + "1" + ")" * 10_000, False),
        ("typescript", "const a = `x${f(1)}`", True),
        ("typescript", "const a: (b: string) => void = /f(1)/", False),
        ("typescript", "const a = { run() { return f(1) } }", False),
        ("go", "package a\n\nvar a = []B{{f(1)}}", True),
        ("go", "package a\n\nvar a = func() int { return f(1) }", False),
        ("java", 'class C {\n@B(c = f()) Runnable a = () -> f("a");\n}', False),
        ("php", "<?php\n$a = f(1);", True),
        ("csharp", "class C { int a { get { return f(1); } } }", False),
        ("typescript", "class a { b = f(1); run() { f(1) } }", False),
        ("typescript", "class a { static b = () => f(1); static { } }", False),
        ("typescript", "class a {\n  static { f(1) }\n}", True),
        ("typescript", "export class a { static #b = f(this) }", True),
        ("typescript", "const a = { b: class { static { f(1) } } }", True),
        ("typescript", "namespace a { f(1) }", True),
        ("javascript", "const a = class { b = f(1) }", False),
        ("java", "class a { static int b = f(1); { f(1); } }", False),
        ("java", "class a { static class B { static { f(1); } } }", True),
        ("java", "enum a { B(1); static { f(1); } }", True),
        ("java", "enum a { B(1) }", False),
        ("python", "class a(f(1)):\n    b = f(1)\n    @f(1)\n    def c(self): f(1)\n    if f(1): pass", False),
        ("python", "class a:\n    if True:\n        try: pass\n        finally: f(1)", True),
        ("python", "class a:\n    class b: f(1)", True),
        ("cpp", "class a { int b = f(1); static int c; };", False),
        ("cpp", "class a { static inline int b = f(1); };", True),
        ("cpp", "namespace a { int b = f(1); }", True),
        ("cpp", "namespace a { static_assert(sizeof(f(1)) == 1); int f(int b = f(1)); }", False),
        ("python", "class a:\n" + "".join(" " * n + "class b:\n" for n in range(1, 90)) + " " * 90 + "f(1)", True),
    ],
)
def test_a_call_counts_where_the_declaration_makes_it(identifier: str, source: str, calls: bool) -> None:
    (symbol,) = [one for one in all_of(outline(identifier, source.encode())[0]) if one.name.lstrip("$") == "a"]
    claimed = Claimed(symbol.name, symbol.range, symbol.selection.start)
    found = declared(identifier, source.encode(), claimed).calls
    assert (found is not None) == calls
    assert found is None or Text(source).content[Text(source).offset(found)] == "("


@pytest.mark.parametrize(
    ("source", "built"),
    [
        ("static Made a{1};", [Built("Made", True)]),
        ("static own::Made<int> a;", [Built("Made", False)]),
        ("static Made a = 1, *b, &c = d, e[2];", [Built("Made", False)]),
        ("static std::vector<int> a{1};", [Built("vector", False)]),
        ("namespace a { namespace { Made b{1}; Other c; } }", [Built("Made", True), Built("Other", False)]),
        ("struct a { static inline Made b{1}; Made c{1}; static Made d; };", []),
        ("extern Made a;", []),
        ("static constexpr Made a{1};", []),
        ("static Made a(1);", [Built("Made", False)]),
        ("static Made a();", []),
        ("static int a{1};", []),
        ("static auto a{1};", []),
        ("Made* a{nullptr};", []),
    ],
)
def test_an_object_of_cpp_is_built_where_it_is_declared(source: str, built: list[Built]) -> None:
    symbol = next(one for one in all_of(outline("cpp", source.encode())[0]) if one.name == "a")
    claimed = Claimed(symbol.name, symbol.range, symbol.selection.start)
    assert declared("cpp", source.encode(), claimed).built == built


@pytest.mark.parametrize(
    ("identifier", "source", "target"),
    [
        ("javascript", "const a = module.exports = {}", "module.exports"),
        ("javascript", "const a = (count++)", "count"),
        ("typescript", "let b, a = b ??= 3", "b"),
        ("python", "a = other.b = 1", "other.b"),
        ("java", "class C { int a = b = 1; }", "b"),
        ("cpp", "int a = b = 1;", "b"),
        ("php", "<?php\n$a = $b->c = 1;", "$b->c"),
        ("javascript", "const a = { b: c = 1 }", None),
        ("javascript", "const a = () => c = 1", None),
        ("python", "a = f(b=1)", None),
        ("cpp", "int a = b == 1;", None),
    ],
)
def test_what_also_gives_something_else_its_value_is_kept(identifier: str, source: str, target: str | None) -> None:
    symbol = next(one for one in all_of(outline(identifier, source.encode())[0]) if one.name.lstrip("$") == "a")
    claimed = Claimed(symbol.name, symbol.range, symbol.selection.start)
    kept = declared(identifier, source.encode(), claimed).kept
    assert kept == (f"its value is an assignment to {target}, which would go with it" if target else "")
