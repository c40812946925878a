"""Reserved words that C's grammar takes for types or names are left out where they are attributes, and only there."""

import pytest

from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.syntax.attributes import without_attributes
from serena_central.symbols.syntax.outline import outline


def names(symbols: list[DocumentSymbol]) -> list[str]:
    return [symbol.name for symbol in symbols]


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("static u32 __init foo(void);", "static u32 foo(void);"),
        ("void __init\nfoo(void);", "void foo(void);"),
        ("static struct p * __init\nfoo(void);", "static struct p * foo(void);"),
        ("__visible void f(void);", "const void f(void);"),
        ("asmlinkage void __sched notrace f(void);", "const void f(void);"),
        ("int f(const void __user *from, int __maybe_unused n);", "int f(const void *from, int n);"),
        ("typedef __u32 __bitwise __be32;", "typedef __u32 __be32;"),
        ("int x __read_mostly = 1;", "int x = 1;"),
        ("int a[] __initdata = { 1 };", "int a[] = { 1 };"),
        ("struct s { int a; } __packed __aligned(8);", "struct s { int a; } ;"),
        ("int __printf(1, 2)\nfoo(int a);", "int foo(int a);"),
        ("static inline __alloc_size(1, 2) void *f(int n) { }", "static inline void *f(int n) { }"),
        ("extern __printf(2, 3)\nvoid f(int a, ...);", "extern void f(int a, ...);"),
        ("extern __printf(2, 3) __cold\nvoid f(int a, ...);", "extern void f(int a, ...);"),
        ("u8 a[4] __aligned(8) __packed;", "u8 a[4] ;"),
        (
            "static int __f(int (*g)(int))\n\t__releases(&a->lock) __acquires(&a->lock)\n{ }",
            "static int __f(int (*g)(int)) { }",
        ),
        ("void f(void)\n\t__releases(&x->lock)\n{ }", "void f(void) { }"),
        ("int a;\nstatic DEFINE_PER_CPU(unsigned long, count);\nint b;", "int a; int b;"),
        ("int a;\nOPS(first)\nOPS(second);\nint b;", "int a; int b;"),
    ],
)
def test_attributes_are_left_out(source: str, left: str) -> None:
    found = without_attributes("c", source.encode())
    assert len(found) == len(source)
    assert b" ".join(found.split()).decode() == left
    assert all(after in (before, *b" const") for before, after in zip(source.encode(), found, strict=True))


@pytest.mark.parametrize(
    "source",
    [
        "__u32 x;",
        "struct foo __bar;",
        "u32 __foo = 1;",
        "extern unsigned long __guard;",
        "static __wsum __csum(const void *from);",
        "void __foo(int x);",
        "static inline void __foo(pgd_t *x)\n{\n}\n\nint __bar(int y);",
        "typedef struct { int a; } __kernel_t;",
        "static __inline__ int f(void);",
        "__attribute__((used)) int f(void);",
        "#if defined(FIELDS)\n\t__be32 layer : 4;\n#endif",
        "#define __foo(x) bar x",
        "int a;\nSYSCALL_DEFINE1(exit, int, code)\n{\n}",
        "\tDEFINE(x);",
    ],
)
def test_types_and_names_stay(source: str) -> None:
    assert without_attributes("c", source.encode()) == source.encode()


def test_other_languages_are_left_alone() -> None:
    assert without_attributes("cpp", b"void __init f();") == b"void __init f();"


def test_a_function_behind_macros_that_no_grammar_knows_is_found_with_its_whole_range() -> None:
    source = (
        "static const DECLARE_TLV_DB_SCALE(first, -4500, 75, 0);\n"
        "static const DECLARE_TLV_DB_RANGE(second,\n\t0, 0, ITEM(1200, 0, 0),\n\t1, 1, ITEM(1800, 0, 0)\n);\n"
        "static char name[] __initdata = {\n\t1,\n\t2,\n};\n"
        "noinline static int __init start(void __iomem *base)\n{\n\treturn 0;\n}\n"
    )
    symbols, _ = outline("c", source.encode())
    assert names(symbols)[-2:] == ["name", "start"]
    start = symbols[-1].range.start
    assert source.splitlines()[start.line0].startswith("noinline static int")
    assert start.column == 0
