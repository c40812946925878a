"""What a parser that does not know C's macros takes for variables."""

import pytest

from serena_central.symbols.syntax.outline import outline


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"asmlinkage __visible void f(void)\n{\n}\n", ["f"]),
        (b"static __always_inline struct rq *\nf(struct rq *rq)\n{\n}\n", ["f"]),
        (b"static void __sched notrace f(unsigned int mode)\n{\n}\n", ["f"]),
        (b"static unsigned int __maybe_unused least = MOST;\n", ["least"]),
        (b"int a;\nstatic bool has_it __ro_after_init;\nint b;\n", ["a", "has_it", "b"]),
        (b"bool is_up __read_mostly;\n", ["is_up"]),
        (b'struct { int a; } events SEC(".maps");\n', ["(anonymous struct)", "events"]),
        (b"int __cpu, last __read_mostly;\n", ["__cpu", "last"]),
    ],
)
def test_macros_are_no_variables_and_what_they_stand_beside_keeps_its_name(source: bytes, expected: list[str]) -> None:
    symbols, _ = outline("c", source)
    assert [symbol.name for symbol in symbols] == expected
