"""Edits a text file that is a person's own: what an edit leaves alone keeps its bytes.

The edit itself sees no byte order mark and need not know how lines end. Standard library only.
"""

from collections.abc import Callable
from typing import TypeVar

MARK = "\ufeff"

After = TypeVar("After", str, str | None)


def exact_text(data: bytes) -> str:
    """All that a file holds; encoded as UTF-8 it is the same bytes: no line end is translated, and a mark stays.

    Raises:
        UnicodeDecodeError
    """
    return data.decode("utf-8")


def split_mark(text: str) -> tuple[str, str]:
    """The byte order mark, if there is one, and the text after it."""
    return (MARK, text[1:]) if text.startswith(MARK) else ("", text)


def edited(before: str, edit: Callable[[str], After]) -> After:
    """What `edit` makes of the text after the mark, with the mark; None if it makes none. Where all lines end in CRLF,
    new ones do."""
    mark, text = split_mark(before)
    after = edit(text)
    if after is None:
        return after
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    return mark + after
