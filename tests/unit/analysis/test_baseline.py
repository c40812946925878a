"""What is new against a revision, by the names and lines of the files that differ."""

from collections.abc import Mapping

import pytest

from serena_central.analysis.baseline import Baseline
from serena_central.symbols.syntax.python_structure import structure

RING = "class Ring:\n    def __init__(self):\n        self.size = 1\n\n    def turn(self): ...\n"
USE = "def use(ring):\n    ring.turn()\n    ring.dynamic.x\n"

LOST = "Object of type `Ring` has no attribute `{}`"


NEWER = 'type Number = int\n\ndef one[T](x: T) -> T:\n    return t"{x}"\n\n'
"""What Python 3.11 can't parse."""


def compared(before: Mapping[str, str], now: Mapping[str, str]) -> Baseline:
    return Baseline(before, now, lambda text: structure(text.encode()))


@pytest.mark.parametrize(
    ("before", "now", "missed", "line", "new"),
    [
        (RING, RING.replace("def turn", "def spin"), "turn", "ring.turn()", True),
        (RING, RING.replace("self.size", "self.width"), "size", "print(ring.size)", True),
        (RING, RING + "\n", "turn", "ring.turn()", False),
        (RING, RING.replace("def turn", "def spin"), "dynamic", "ring.dynamic.x", False),
        (USE, USE + "    ring.trun()\n", "trun", "    ring.trun()", True),
        (USE, USE + "    ring.dynamic.y\n", "dynamic", "    ring.dynamic.y", True),
        (USE, USE.replace("dynamic.x", "dynamic.x.y"), "dynamic", "    ring.dynamic.x.y", False),
        (USE, "import os\n" + USE, "dynamic", "    ring.dynamic.x", False),
        (RING, "this is (no Python\n", "turn", "ring.turn()", True),
        (RING + USE, NEWER + RING.replace("def turn", "def spin") + USE, "turn", "ring.turn()", True),
        (NEWER + RING + USE, NEWER + RING.replace("def turn", "def spin") + USE, "turn", "ring.turn()", True),
        (NEWER + RING + "# spoke\n", NEWER + RING, "spoke", "ring.spoke()", False),
    ],
)
def test_a_finding_is_new_if_its_name_is_gone_or_its_line_was_written_since(
    before: str, now: str, missed: str, line: str, *, new: bool
) -> None:
    assert compared({"a.py": before}, {"a.py": now}).is_new(LOST.format(missed), line) is new


def test_what_moved_to_another_file_is_neither_gone_nor_new() -> None:
    baseline = compared({"a.py": RING + USE}, {"a.py": USE, "b.py": RING})
    assert not baseline.is_new(LOST.format("turn"), "    ring.turn()")
    assert not baseline.is_new(LOST.format("dynamic"), "    ring.dynamic.x")


def test_in_other_languages_a_word_that_is_gone_is_a_name_that_is_gone() -> None:
    baseline = compared({"a.js": "export const turn = 1;\n"}, {"a.js": "export const spin = 1;\n"})
    assert baseline.is_new("Property 'turn' does not exist on type 'Ring'", "ring.turn();")
    assert not baseline.is_new("Property 'other' does not exist on type 'Ring'", "ring.other();")


def test_a_message_without_quotes_names_what_it_misses_by_a_word_of_the_line() -> None:
    before = {"a/a.go": "package a\n\nfunc Hello() {}\n", "b.go": "func other(a int) {}\n"}
    baseline = compared(before, {"a/a.go": "package a\n\nfunc Hi() {}\n", "b.go": "func other() {}\n"})
    assert baseline.is_new("undefined: a.Hello", "\ta.Hello()")
    assert baseline.is_new("x.Hello undefined (type T has no field or method Hello)", "\tx.Hello()")
    assert not baseline.is_new("undefined: a.Other", "\ta.Other()")
