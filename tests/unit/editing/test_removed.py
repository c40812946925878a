"""A definition goes with its lines and with the space that set it apart, and with nothing of its neighbours."""

import pytest

from serena_central.core.text import Position, Range, Text
from serena_central.editing.placement import removed, removed_in_python
from serena_central.editing.plan import apply_edits


def without(content: str, what: str) -> str:
    text = Text(content)
    start = content.index(what)
    return apply_edits(text, [removed(text, Range(text.position(start), text.position(start + len(what))))])


@pytest.mark.parametrize(
    ("content", "what", "left"),
    [
        ("a\n\n\ndef f():\n    x\n\n\nb\n", "def f():\n    x", "a\n\n\nb\n"),
        ("a\n\ndef f():\n    x\n\n\nb\n", "def f():\n    x", "a\n\n\nb\n"),
        ("def f():\n    x\n\n\nb\n", "def f():\n    x", "b\n"),
        ("a\n\n\ndef f():\n    x\n", "def f():\n    x", "a\n"),
        ("a\n\n\ndef f():\n    x", "def f():\n    x", "a"),
        ("def f():\n    x\n", "def f():\n    x", ""),
        ("def f():\n    x", "def f():\n    x", ""),
        ("a\r\n\r\nf\r\n\r\nb\r\n", "f", "a\r\n\r\nb\r\n"),
        ("class A {\n  x() {\n  }\n\n  y() {\n  }\n}\n", "y() {\n  }", "class A {\n  x() {\n  }\n}\n"),
        ("a = 1; b = 2\n", "b = 2", "a = 1; \n"),
        ("a\nb\nc\n", "b", "a\nc\n"),
    ],
)
def test_lines_go_and_blank_lines_stay_as_many_as_there_were(content: str, what: str, left: str) -> None:
    assert without(content, what) == left


def test_a_range_that_ends_where_the_next_line_begins_is_as_good() -> None:
    text = Text("a\n\nf\n\nb\n")
    assert apply_edits(text, [removed(text, Range(Position(2, 0), Position(3, 0)))]) == "a\n\nb\n"


@pytest.mark.parametrize(
    ("content", "what", "left"),
    [
        ("class A:\n    def f(self):\n        x\n", "def f(self):\n        x", "class A:\n    pass\n"),
        ("class A:\n    def f(self):\n        x", "def f(self):\n        x", "class A:\n    pass"),
        ("if a:\n\n    # why\n    go\nelse:\n    b\n", "go", "if a:\n\n    # why\n    pass\nelse:\n    b\n"),
        ("if (a and\n        b):  # so\n    go\n\nc\n", "go", "if (a and\n        b):  # so\n    pass\n\nc\n"),
        ("class A:\n    b\n    f\n", "f", "class A:\n    b\n"),
        ("class A:\n    f\n    b\n", "f", "class A:\n    b\n"),
        ("class A:\n    b = 1; f = 2\n", "f = 2", "class A:\n    b = 1; \n"),
        ("a\n\n\nf\n", "f", "a\n"),
        ("f\n", "f", ""),
    ],
)
def test_in_python_no_block_is_left_empty(content: str, what: str, left: str) -> None:
    text = Text(content)
    start = content.index(what)
    span = Range(text.position(start), text.position(start + len(what)))
    assert apply_edits(text, [removed_in_python(text, span)]) == left
