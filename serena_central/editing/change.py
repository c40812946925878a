"""A change of files as plain data: their old and new texts, and who asked for it.

Paths are absolute, with all symlinks followed: a linked file is changed where it really is.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.files.text import DEFAULT_ENCODING, FileText


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Who asked for an edit. `editing` knows no sessions: to it these are words."""

    session: str
    owner: str = ""
    """Whose session it is, where others must not see that; empty: everybody may be told."""
    client: str = ""
    tool: str
    call: str
    repeat: str | None = None
    """Identifies a repetition of the same call; None where none can be."""
    symbol: str = ""
    """Name path of the symbol that it is about, as its caller named it; empty for edits of text."""


class FileChange(NamedTuple):
    """What becomes of one file.

    `before` is the reading that the change was planned on, None for a file that must not exist yet; the change is made
    only if the file is still the same. `after` is the whole new text, None to delete the file. With `moved_to` the text
    goes there, where nothing may be yet, and the file goes away here. Of the folders around a file that is deleted, so
    many as `folders` go along if that leaves them empty.
    """

    path: Path
    before: FileText | None
    after: str | None
    moved_to: Path | None = None
    encoding: str = DEFAULT_ENCODING
    """Of a file that is created; others keep theirs."""
    folders: int = 0


class Operation(NamedTuple):
    """Changes that are made all or not at all. `record` and `repeat` are kept with it in the journal, for
    recovery."""

    id: str
    changes: tuple[FileChange, ...]
    record: bytes = b""
    repeat: str | None = None
