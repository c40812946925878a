"""An edit that was made, as history and the journal keep it. Plain data."""

import msgspec

from serena_central.editing.change import Author
from serena_central.editing.journal import Past
from serena_central.editing.patch import FilePatch


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an edit. `path` is root-relative; `moved_to` is where it went."""

    path: str
    moved_to: str | None = None
    created: bool = False
    deleted: bool = False
    added: int = 0
    removed: int = 0
    """Lines of the diff."""


class AppliedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that was made: what history keeps of it. `at` is Unix time."""

    id: str
    at: float
    author: Author
    root: str
    files: list[ChangedFile]
    patches: list[FilePatch]
    undoes: str | None = None
    """The edit that this one takes back."""
    wrote: str | None = None
    """The name path of a symbol that its author wrote as a whole; empty: the file."""


def edit_in(past: Past) -> AppliedEdit | None:
    """The edit that the journal has a record of; None if it has none, or one of another version."""
    try:
        return msgspec.msgpack.decode(past.entry.record, type=AppliedEdit)
    except msgspec.DecodeError:
        return None
