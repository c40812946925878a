"""Edits by 0-based line numbers, for text that neither a symbol nor its content identifies. Pure."""

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text
from serena_central.editing.plan import TextEdit, with_newlines


def delete_lines(text: Text, first: int, last: int) -> TextEdit:
    """The lines from `first` to `last`, both included, go.

    Raises:
        InvalidArguments: for lines that don't exist.
    """
    return TextEdit(_lines(text, first, last), "")


def replace_lines(text: Text, first: int, last: int, content: str, newline: str) -> TextEdit:
    """`content` stands, as whole lines, where those lines were.

    Raises:
        InvalidArguments
    """
    span = _lines(text, first, last)
    whole = _whole(content, newline)
    if not whole or span.end.column == 0:
        return TextEdit(span, whole)
    # The last line of the file has no end, and its new last line has none either.
    return TextEdit(Range(Position(first, 0), span.end), whole.removesuffix(newline))


def insert_lines(text: Text, line: int, content: str, newline: str) -> TextEdit:
    """Inserts `content`, as whole lines, before `line`; at the end of the file for the number after the last line's.

    Raises:
        InvalidArguments: the file is shorter.
    """
    count = _count(text)
    if line > count:
        raise InvalidArguments(f"The file has {count} lines; line {line} is past the end of the file.")
    whole = _whole(content, newline)
    if line < text.line_count:
        return TextEdit(_at(Position(line, 0)), whole)
    end = _at(Position(text.line_count - 1, len(text.line(text.line_count - 1))))
    return TextEdit(end, newline + whole.removesuffix(newline))


def _lines(text: Text, first: int, last: int) -> Range:
    count = _count(text)
    if first > last or last >= count:
        raise InvalidArguments(f"Lines {first} to {last} don't exist: the file has {count} lines, counted from 0.")
    if last + 1 < text.line_count:
        return Range(Position(first, 0), Position(last + 1, 0))
    # The last line has no end: the one before it loses its own.
    start = Position(first - 1, len(text.line(first - 1))) if first else Position(0, 0)
    return Range(start, Position(last, len(text.line(last))))


def _count(text: Text) -> int:
    """Lines as people count them: what follows the last line end is none if it is empty."""
    return text.line_count - (text.line(text.line_count - 1) == "")


def _at(position: Position) -> Range:
    return Range(position, position)


def _whole(content: str, newline: str) -> str:
    plain = with_newlines(content, newline)
    return plain if not plain or plain.endswith(newline) else plain + newline
