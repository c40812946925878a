"""Which constants get their values from their order, and which of them have others after an edit."""

import pytest

from serena_central.projects.editing.declaration_changes import Counted, counted, may_count, renumbered

GO = """\
package p

const (
	// A comes first, not iota.
	A Kind = iota + 1
	_
	B, Other = iota, "x, y"
	C, Last

	D = "iota"
)

const (
	KB = 1 << (10 * (iota + 1))
	MB
)

const Single = 3
"""

C = """\
enum color { RED, GREEN = 5, /* enum x { Y } */ BLUE, // , TEAL
#ifdef MORE
  TEAL,
#endif
};
typedef enum { ONE, TWO } count;
enum class Deep : int { Left [[deprecated]], Right };
enum color paint(int a) { return RED; }
"""

TYPESCRIPT = 'export const enum Kind { A, B = "b,", C = 1 << 2, D }\nconst text = "enum X { Y, Z }";\n'

RUST = """\
#[repr(u8)]
pub enum Kind { #[default] A, B = 7, C }
enum Data { One, Two(i32), Three }
"""


OF_NAMES = "const BASE = 3\nenum Kind { A = BASE, B = A << 1, C, D = BASE, E }\nuse(Kind.A) // A is first\n"
GO_OF_NAMES = "package p\n\nconst base = 3\n\nconst (\n\tA = iota + base\n\tB\n)\n"

PYTHON = '''\
import enum
from enum import Enum, IntFlag, StrEnum, auto


class Kind(str, Enum):
    """Kinds: A = auto() is the first."""

    A = auto()  # B = auto()
    B: int = enum.auto()
    C = 5
    D = (
        auto()
    )

    def f(self):
        g = auto()

    class Inner(IntFlag):
        E = auto(), "text ( with a bracket"
        F = auto(), "other"


class Named(StrEnum):
    G = auto()


class ByName(Enum):
    def _generate_next_value_(name, start, count, last_values):
        return name


class Also(ByName):
    H = auto()


class Car(Vehicle):
    wheels = auto()
'''


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "go",
            GO,
            {"A": ("iota + 1", 0), "B": ("iota", 2), "C": ("iota", 3)}
            | {"KB": ("1 << ( 10 * ( iota + 1 ) )", 0), "MB": ("1 << ( 10 * ( iota + 1 ) )", 1)},
        ),
        (
            "cpp",
            C,
            {"color.RED": ("", 0), "color.BLUE": ("5", 1), "color.TEAL": ("5", 2), "ONE": ("", 0), "TWO": ("", 1)}
            | {"Deep.Left": ("", 0), "Deep.Right": ("", 1)},
        ),
        ("typescript", TYPESCRIPT, {"Kind.A": ("", 0), "Kind.D": ("1 << 2", 1)}),
        ("rust", RUST, {"Kind.A": ("", 0), "Kind.C": ("7", 1)}),
        ("python", "enum = iota", {}),
        (
            "python",
            PYTHON,
            {"Kind.A": ("", 0), "Kind.B": ("", 1), "Kind.D": ("5", 1), "Inner.E": ("", 0), "Inner.F": ("", 1)},
        ),
    ],
)
def test_constants_are_counted_from_the_last_written_value(
    language: str, text: str, expected: dict[str, tuple[str, int]]
) -> None:
    found = counted(language, text)
    assert {name: (value.base.replace("< <", "<<"), value.steps) for name, value in found.items()} == expected
    assert all(isinstance(value, Counted) for value in found.values())


@pytest.mark.parametrize(
    ("language", "text", "old", "new", "expected"),
    [
        ("go", GO, "\tB, Other", "\tNew = iota\n\tB, Other", ["B", "C"]),
        ("go", GO, "\t_\n", "", ["B", "C"]),
        ("go", GO, "\tMB\n", "\tMB\n\tGB\n", []),
        ("go", GO, "// A comes first", "// A, then", []),
        ("cpp", C, "RED,", "RED, PINK,", []),
        ("cpp", C, "BLUE,", "PINK, BLUE,", ["color.BLUE", "color.TEAL"]),
        ("cpp", C, "ONE, TWO", "TWO, ONE", ["TWO", "ONE"]),
        ("typescript", TYPESCRIPT, "1 << 2", "1 << 3", ["Kind.D"]),
        ("rust", RUST, "B = 7, C", "C, B = 7", ["Kind.C"]),
        ("typescript", OF_NAMES, "A", "More", []),
        ("typescript", OF_NAMES, "BASE", "base", []),
        ("typescript", OF_NAMES, "A << 1", "C << 1", ["Kind.C"]),
        ("typescript", OF_NAMES, "A << 1", "Other << 1", ["Kind.C"]),
        ("typescript", OF_NAMES, "A << 1", "A << 2", ["Kind.C"]),
        ("typescript", OF_NAMES, "BASE = 3", "BASE = 3, More = 4", []),
        ("go", GO_OF_NAMES, "base", "first", []),
        ("go", GO_OF_NAMES, "iota + base", "iota + 4", ["A", "B"]),
        ("python", PYTHON, "    A = auto()", "    New = auto()\n    A = auto()", ["Kind.A", "Kind.B"]),
        ("python", PYTHON, "    B: int = enum.auto()\n", "", []),
        ("python", PYTHON, "    C = 5\n", "", ["Kind.D"]),
        ("python", PYTHON, "    G = auto()", "    New = auto()\n    G = auto()", []),
    ],
)
def test_those_with_another_value_are_told(language: str, text: str, old: str, new: str, expected: list[str]) -> None:
    assert old in text
    assert renumbered(language, text, text.replace(old, new)) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "class A(Enum):\n    B = auto()", True),
        ("python", "class A(Enum):\n    B = (enum.auto  # numbered\n        \\\n ())", True),
        ("python", "auto_now = automatic(1) + semiauto()  # auto", False),
        ("go", "const A = iota", True),
        ("go", "const A = kiota + iotas", False),
        ("rust", "pub enum A { B }", True),
        ("rust", "fn enumerate() {}", False),
        ("java", "enum A { B }", False),
    ],
)
def test_a_text_without_a_word_that_numbers_constants_is_not_read(language: str, text: str, expected: bool) -> None:
    assert may_count(language, text) is expected
    assert expected or not counted(language, text)


def test_text_that_never_closes_is_read_to_its_end() -> None:
    for language, text in (
        ("cpp", "enum x { " * 3_000),
        ("go", "const ( a = iota\n" * 3_000),
        ("python", "auto" + "(('" * 30_000),
    ):
        assert isinstance(counted(language, text), dict)
