"""Lines by number, with line ends and the end of the file kept as they are."""

import pytest

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Text
from serena_central.editing.lines import delete_lines, insert_lines, replace_lines
from serena_central.editing.plan import TextEdit, apply_edits


def applied(content: str, edit: TextEdit) -> str:
    return apply_edits(Text(content), [edit])


@pytest.mark.parametrize(
    ("content", "first", "last", "left"),
    [
        ("a\nb\nc\n", 1, 1, "a\nc\n"),
        ("a\nb\nc\n", 0, 2, ""),
        ("a\nb\nc", 2, 2, "a\nb"),
        ("a\nb\nc", 0, 2, ""),
        ("a\r\nb\r\n", 0, 0, "b\r\n"),
    ],
)
def test_lines_go(content: str, first: int, last: int, left: str) -> None:
    assert applied(content, delete_lines(Text(content), first, last)) == left


@pytest.mark.parametrize(
    ("content", "first", "last", "new", "expected"),
    [
        ("a\nb\nc\n", 1, 1, "x\ny", "a\nx\ny\nc\n"),
        ("a\nb\nc\n", 2, 2, "x\n", "a\nb\nx\n"),
        ("a\nb\nc", 2, 2, "x\n", "a\nb\nx"),
        ("a\nb", 0, 1, "x", "x"),
        ("a\r\nb\r\n", 0, 0, "x\ny\n", "x\r\ny\r\nb\r\n"),
        ("a\nb\nc\n", 1, 1, "", "a\nc\n"),
    ],
)
def test_lines_are_replaced(content: str, first: int, last: int, new: str, expected: str) -> None:
    newline = "\r\n" if "\r" in content else "\n"
    assert applied(content, replace_lines(Text(content), first, last, new, newline)) == expected


@pytest.mark.parametrize(
    ("content", "line", "new", "expected"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 2, "x\n", "a\nb\nx"),
        ("", 0, "x", "x\n"),
        ("a\r\nb\r\n", 1, "x", "a\r\nx\r\nb\r\n"),
    ],
)
def test_lines_are_inserted(content: str, line: int, new: str, expected: str) -> None:
    newline = "\r\n" if "\r" in content else "\n"
    assert applied(content, insert_lines(Text(content), line, new, newline)) == expected


def test_lines_that_do_not_exist_are_refused() -> None:
    for first, last in ((2, 1), (0, 2), (7, 7)):
        with pytest.raises(InvalidArguments, match="the file has 2 lines"):
            delete_lines(Text("a\nb\n"), first, last)
    with pytest.raises(InvalidArguments, match="The file has 2 lines"):
        insert_lines(Text("a\nb\n"), 3, "x", "\n")
