"""What counts as used although nothing refers to it, by the text around it."""

import pytest

from serena_central.analysis.keep_rules import LanguageFacts, is_test, kept
from serena_central.analysis.self_registered import hands_itself_on
from serena_central.config.policies import ValidationPolicy
from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import DocumentSymbol, SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import flatten


def hit_in(text: str, name: str, path: str, holder: str = "") -> Hit:
    """The symbol of this name, within `holder`; both reach from their line to the end of the text."""
    lines = text.split("\n")
    end = Position(len(lines), 0)

    def symbol(called: str, kind: int, children: list[DocumentSymbol]) -> DocumentSymbol:
        line0 = next(number for number, line in enumerate(lines) if called in line)
        start = Position(line0, lines[line0].index(called))
        return DocumentSymbol(
            called,
            kind,
            Range(Position(line0, 0), end),
            Range(start, Position(line0, start.column + len(called))),
            children=children,
        )

    inner = symbol(name, SymbolKind.METHOD if holder else SymbolKind.FUNCTION, [])
    file = flatten([symbol(holder, SymbolKind.CLASS, [inner]) if holder else inner])
    return Hit(path, file, len(file.symbols) - 1)


CALLED_AS_OPERATOR = "operators are called without their name"
CALLED = "libraries call it by its name"
LINKED = 'it is linked by its name (extern "C")'
GIVEN_TO_OTHERS = "a directive gives it to C or to other packages by its name"
EMBEDDED = "it is embedded, and its fields and methods are used as those of what holds it"
CALLED_AS_LIFETIME = "constructors and destructors are called without their name"


@pytest.mark.parametrize(
    ("language", "path", "text", "name", "holder", "reason"),
    [
        ("python", "a.py", "def __call__(self): ...", "__call__", "", "the language calls it by its name"),
        ("python", "a.py", "def main(): ...", "main", "", "an entry point"),
        ("python", "tests/a.py", "def helper(): ...", "helper", "", "its file contains tests"),
        ("python", "a.py", "@app.get('/')\ndef index(): ...", "index", "", "it is decorated"),
        ("python", "a.py", "__all__ = [\n    'f',\n]\n\ndef  g_f(): ...\ndef f(): ...", "f", "", "it is exported"),
        (
            "go",
            "internal/a.go",
            "package a\ntype fault struct {}\nfunc (f fault) Unwrap() error",
            "Unwrap",
            "fault",
            CALLED,
        ),
        ("cpp", "a.cpp", "void Java_a_B_run() {}", "Java_a_B_run", "", "an entry point"),
        ("c", "a.c", "PyObject *PyInit_a(void) {}", "PyInit_a", "", "an entry point"),
        ("c", "a.c", "static void PyInit_a(void) {}", "PyInit_a", "", None),
        ("cpp", "a.cpp", 'extern "C" int run() {}', "run", "", LINKED),
        ("cpp", "a.cpp", 'extern "C" {\nint a() { { } }\nint run() {}\n}', "run", "", LINKED),
        ("cpp", "a.cpp", 'extern "C" {\nint a() {}\n}\nint run() {}', "run", "", None),
        ("cpp", "a.cpp", 'extern "C" int run();', "run", "", None),
        ("cpp", "a.cpp", "__attribute__((weak)) void run() {}", "run", "", "it is decorated"),
        ("cpp", "a.cpp", "class A {\n  UFUNCTION(Exec)\n  void run() {}\n};", "run", "class A", "it is decorated"),
        ("cpp", "a.cpp", "class A {\n  Q_INVOKABLE void run() {}\n};", "run", "class A", "it is decorated"),
        (
            "cpp",
            "a.cpp",
            "class A { Q_OBJECT\n  void on_a_go() {}\n};",
            "on_a_go",
            "class A",
            "Qt connects it by its name",
        ),
        ("cpp", "a.cpp", "class A {\n  void on_a_go() {}\n};", "on_a_go", "class A", None),
        ("csharp", "a.cs", "class A {\n    [Fact] void Runs() {}\n}", "Runs", "class A", "it is decorated"),
        ("csharp", "a.cs", "class A {\n    int[] runs = [1];\n}", "runs", "class A", None),
        ("python", "a.py", "__all__ = ['g']\n__all__ += ['f']\ndef f(): ...", "f", "", "it is exported"),
        ("python", "a.py", "__all__: list[str] = b.__all__ + ['f']\ndef f(): ...", "f", "", "it is exported"),
        ("python", "a.py", "__all__.extend(\n    ('g', 'f')\n)\ndef f(): ...", "f", "", "it is exported"),
        (
            "python",
            "a.py",
            "__all__ = [\n    # a) one\n    'g',  # :)\n    'f',\n]\ndef f(): ...",
            "f",
            "",
            "it is exported",
        ),
        ("python", "a.py", "__all__ = b.__all__ + \\\n    ['f']\ndef f(): ...", "f", "", "it is exported"),
        ("python", "a.py", "__all__ = [  # (one\n    'g',\n]\nx = 'f'\ndef f(): ...", "f", "", None),
        ("python", "a.py", "if 1:\n    __all__.append('f')\ndef f(): ...", "f", "", "it is exported"),
        ("python", "a.py", "__all__ = ['g']\nx = 'f'\n__all__.remove('f')\ndef f(): ...", "f", "", None),
        ("python", "a.py", "class A(Base):\n    def run(self): ...", "run", "class A", "it may be an override"),
        ("python", "a.py", "class A:\n    def run(self): ...", "run", "class A", None),
        ("python", "a.py", "def run(): ...", "run", "", None),
        ("typescript", "src/index.ts", "export function f() {}", "f", "", "it is exported"),
        ("typescript", "src/other.ts", "export function f() {}", "f", "", None),
        ("typescript", "a.ts", "class A implements B {\n  run() {}\n}", "run", "class A", "it may be an override"),
        ("go", "a/b.go", "package a\nfunc Open() {}", "Open", "", "it is exported"),
        ("go", "internal/a/b.go", "package a\nfunc Open() {}", "Open", "", None),
        ("go", "cmd/main.go", "package main\nfunc Open() {}", "Open", "", None),
        ("go", "a/b.go", "package a\nfunc close() {}", "close", "", "an interface has a member of the same name"),
        *(
            ("go", "a/b.go", f"package a\ntype box struct {field}", "label", "box", reason)
            for reason, fields in (
                (
                    EMBEDDED,
                    ("{\n\tlabel\n}", '{\n\t*x.label[int] `json:"-"`\n}', "{ a int; label }", "{\n\tlabel // it\n}"),
                ),
                (None, ("{\n\tlabel string\n}", "{\n\ta, label int\n}", "{\n\tlabel []int\n}", "{\n\tlabel, a int\n}")),
            )
            for field in fields
        ),
        (
            "go",
            "a/b.go",
            "package a\n\n// It is called by C.\n//\n//export open\nfunc open() {}",
            "open",
            "",
            GIVEN_TO_OTHERS,
        ),
        ("go", "a/b.go", "package a\n\n//go:linkname open b.open\nfunc open() {}", "open", "", GIVEN_TO_OTHERS),
        ("go", "a/b.go", "package a\n\n//go:noinline\nfunc open() {}", "open", "", None),
        ("rust", "src/lib.rs", "pub fn open() {}", "open", "", "it is exported"),
        ("rust", "src/lib.rs", "pub(crate) fn open() {}", "open", "", None),
        ("rust", "src/lib.rs", "#[no_mangle]\nfn open() {}", "open", "", "it is decorated"),
        ("rust", "src/lib.rs", "#[inline]\nfn open() {}", "open", "", None),
        ("rust", "src/lib.rs", "#[cold]\n#[expect(dead_code)]\nfn open() {}", "open", "", None),
        ("rust", "src/lib.rs", "#[inline] #[no_mangle]\nfn open() {}", "open", "", "it is decorated"),
        ("rust", "src/lib.rs", "#[unsafe(no_mangle)]\nfn open() {}", "open", "", "it is decorated"),
        ("rust", "src/lib.rs", "#[cfg(all(a, b))]\nfn open() {}", "open", "", None),
        ("rust", "src/lib.rs", "#[cfg_attr(all(a, b), inline, must_use)]\nfn open() {}", "open", "", None),
        (
            "rust",
            "src/lib.rs",
            "#[cfg_attr(all(a, b), inline, no_mangle)]\nfn open() {}",
            "open",
            "",
            "it is decorated",
        ),
        ("java", "A.java", "class A {\n  public void run() {}\n}", "run", "class A", "it is exported"),
        ("c", "include/a.h", "void open(void);", "open", "", "it is exported"),
        ("c", "a.c", "__attribute__((constructor)) void open(void) {}", "open", "", "it is decorated"),
        ("c", "a.c", "__attribute__((noinline)) void open(void) {}", "open", "", None),
        ("cpp", "a.cc", "struct A {\n  void operator()() {}\n};", "operator()", "struct A", CALLED_AS_OPERATOR),
        ("cpp", "a.cc", "struct A {\n  ~A() {}\n};", "~A", "struct A", CALLED_AS_LIFETIME),
        ("cpp", "a.cc", "struct A {\n  int begin() {}\n};", "begin", "struct A", "libraries call it by its name"),
        ("cpp", "a.cc", "int begin() {}", "begin", "", None),
        ("cpp", "a.cc", "class A : Base {\n  void run() {}\n};", "run", "class A", "it may be an override"),
        ("cpp", "a.cc", "enum class A : int {\n  Run\n};", "Run", "enum class A", None),
        ("c", "a.c", "int begin() {}", "begin", "", None),
        ("cpp", "a.cc", "template <> struct A<int> {};", "A<int>", "", "a specialization is chosen by its arguments"),
    ],
)
def test_rules(language: str, path: str, text: str, name: str, holder: str, reason: str | None) -> None:
    found = kept(
        hit_in(text, name, path, holder),
        Text(text),
        LanguageFacts(language, language == "rust", in_interface=name == "close"),
        ValidationPolicy(),
    )
    assert (found and found.reason) == reason


def test_settings_name_what_is_in_use_and_what_exports_are_worth() -> None:
    python, plain = LanguageFacts("python", library=False, in_interface=False), "def on_start(): ..."
    named = kept(hit_in(plain, "on_start", "a.py"), Text(plain), python, ValidationPolicy(keep_names=["on_*"]))
    placed = kept(
        hit_in(plain, "on_start", "hooks/a.py"), Text(plain), python, ValidationPolicy(keep_paths=["hooks/*"])
    )
    assert [one and one.reason for one in (named, placed)] == [
        "it matches validation.keep_names",
        "its file matches validation.keep_paths",
    ]
    text, go = "package a\nfunc Open() {}", LanguageFacts("go", library=False, in_interface=False)
    assert kept(hit_in(text, "Open", "a.go"), Text(text), go, ValidationPolicy(exported="report")) is None


@pytest.mark.parametrize(
    ("before", "is_expression"),
    [
        ("f();\n// one,\n// two\n", False),
        ("f();\n// what it is for:\n\n// more\n/* or,\n else in\n*/\n", False),
        (f"f();\n// {'a word, ' * 40}\n// two\n", False),
        ("f('http://a.example/b');\n", False),
        ("f(a, // one\n  // two\n", True),
        ("const a = /* b; */ // c;\n", True),
        ("f();\n/* a, // b */\n", False),
        ("f();\n/* a */\ng(); // b, */\n", False),
        ("count++\n", False),
        ("count--\r\n\r\n", False),
        ("type A = Map<string, number>\n", False),
        ("const a = find()!\n", False),
        ("return // a\n", False),
        ("declare const a: void\n", False),
        ("const a = b =>\n", True),
        ("const a = b +\n", True),
        ("new\n", True),
        ("", False),
    ],
)
def test_a_function_of_a_script_is_an_expression_by_the_code_before_it(before: str, is_expression: bool) -> None:
    text = f"{before}function go() {{}}"
    script = LanguageFacts("typescript", library=False, in_interface=False)
    found = kept(hit_in(text, "go", "src/a.ts"), Text(text), script, ValidationPolicy())
    assert (found is not None) == is_expression


def test_a_long_line_of_blanks_holds_nobody_up() -> None:
    text = f"type T struct {{\n{' ' * 300_000}a, b int\n}}"
    go = LanguageFacts("go", library=False, in_interface=False)
    found = kept(hit_in(text, "b int", "internal/a.go", "type T"), Text(text), go, ValidationPolicy())
    assert found is None or found.reason != EMBEDDED


def test_a_line_of_many_attributes_holds_nobody_up() -> None:
    text = f"{'__attribute__((x)) ' * 20_000}void go() {{}}"
    c = LanguageFacts("c", library=False, in_interface=False)
    assert kept(hit_in(text, "go()", "a.c"), Text(text), c, ValidationPolicy()) is None


def test_tests_are_known_by_file_and_folder() -> None:
    paths = ["test_a.py", "a_test.go", "src/a.spec.ts", "tests/deep/a.rs", "conftest.py", "latest.py"]
    assert [is_test(path) for path in paths] == [True, True, True, True, True, False]


@pytest.mark.parametrize(
    ("language", "body", "hands_on"),
    [
        ("typescript", "static { define('a', this) }", True),
        ("typescript", "static {\n  if (a) { b(A) }\n}", True),
        ("typescript", "static #own = register(A);", True),
        ("typescript", "static own: B =\n  register(new A())", True),
        ("typescript", "static own = register(this.own); run() { register(this) }", False),
        ("typescript", "static run() { register(this) }", False),
        ("typescript", "static own = new A()\n  one() { two(A) }", False),
        ("typescript", "own = register(this)", False),
        ("java", "static { Drivers.register(new A()); }", True),
        ("java", "static { Drivers.register(A.class, 1); }", True),
        ("java", "static { load(); } void run() { register(this); }", False),
        ("cpp", "static inline bool own = Registry::add<A>();", True),
        ("cpp", "static inline A own = A();", False),
        ("python", "static = register(A)", False),
    ],
)
def test_a_class_that_hands_itself_on_is_in_use(language: str, body: str, hands_on: bool) -> None:
    text = f"class A {{\n{body}\n}}"
    end = Position(text.count("\n"), 1)
    named = Range(Position(0, 6), Position(0, 7))
    file = flatten([DocumentSymbol("A", SymbolKind.CLASS, Range(Position(0, 0), end), named)])
    assert hands_itself_on(Hit("a.x", file, 0), Text(text), language) == hands_on


@pytest.mark.parametrize(
    ("line", "name", "reason"),
    [
        ("    public function __get($name) {}", "__get", "the language calls it by its name"),
        ("    public function count() {}", "count", "it may be an override"),
        ("    private function count() {}", "count", None),
    ],
)
def test_php_calls_magic_methods_and_what_bases_declare(line: str, name: str, reason: str | None) -> None:
    text = f"class Item implements Countable {{\n{line}\n}}"
    found = kept(
        hit_in(text, name, "Item.php", "Item"),
        Text(text),
        LanguageFacts("php", library=False, in_interface=False, may_override=True),
        ValidationPolicy(),
    )
    assert (found and found.reason) == reason


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("<style>\n  p {}\n</style>", "style", "an element of a page works where it stands"),
        ("  function go() {}", "go", None),
    ],
)
def test_elements_of_a_page_need_no_reference(text: str, name: str, reason: str | None) -> None:
    facts = LanguageFacts("svelte", library=False, in_interface=False, may_override=False)
    found = kept(hit_in(text, name, "App.svelte"), Text(text), facts, ValidationPolicy())
    assert (found and found.reason) == reason


@pytest.mark.parametrize(("language", "is_kept"), [("php", True), ("csharp", True), ("rust", False)])
def test_constants_of_an_enum_that_gives_them_without_their_names_are_in_use(language: str, is_kept: bool) -> None:
    text = "enum Suit { Hearts, Spades }"
    member = DocumentSymbol("Hearts", SymbolKind.ENUM_MEMBER, spanning(text, "Hearts"), spanning(text, "Hearts"))
    whole = Range(Position(0, 0), Position(0, len(text)))
    file = flatten([DocumentSymbol("Suit", SymbolKind.ENUM, whole, spanning(text, "Suit"), children=[member])])
    facts = LanguageFacts(language, library=False, in_interface=False, may_override=False)
    assert (kept(Hit("a.x", file, 1), Text(text), facts, ValidationPolicy()) is not None) == is_kept


def spanning(text: str, name: str) -> Range:
    first = text.index(name)
    return Range(Position(0, first), Position(0, first + len(name)))
