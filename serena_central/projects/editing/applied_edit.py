"""An applied edit, as the history and the journal keep it. Plain data."""

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
    """An edit that was made: what history keeps of it. `at` is Unix time. An operation on several roots is one edit
    for each of them, which are made, and undone, together."""

    id: str
    at: float
    author: Author
    root: str
    files: list[ChangedFile]
    patches: list[FilePatch]
    undoes: str | None = None
    """The edit that this one undoes."""
    wrote: str | None = None
    """The name path of a symbol that its author wrote as a whole; empty: the file."""
    amends: str | None = None
    """In the journal alone: the edit that this one became a part of. It holds what a hook changed in its files."""


_RECORD: msgspec.msgpack.Decoder[AppliedEdit | list[AppliedEdit]] = msgspec.msgpack.Decoder(
    AppliedEdit | list[AppliedEdit]
)


def edits_in(past: Past) -> list[AppliedEdit]:
    """The edits that the journal has a record of, one for each root of the operation; none if it has none, or one of
    another version."""
    try:
        found = _RECORD.decode(past.entry.record)
    except msgspec.DecodeError:
        return []
    return found if isinstance(found, list) else [found]


def part_id(operation: str, number: int) -> str:
    """The id of one root's part of an operation: the first has the operation's own."""
    return f"{operation}.{number + 1}" if number else operation


def operation_of(edit_id: str) -> str:
    """The id of the operation that an edit is a part of."""
    return edit_id.partition(".")[0]
