"""The record of an applied edit, as the history and the journal keep it; how it is made of changes of files, and the
checks that apply to every edit."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.core.decoding import MsgpackDecoder, msgpack_decoder
from serena_central.core.errors import PathRefused
from serena_central.editing.change import Author, FileChange
from serena_central.editing.disk import standing_folder
from serena_central.editing.journal import Past
from serena_central.editing.patch import FilePatch
from serena_central.editing.plan import Difference, difference, unified_diff
from serena_central.files.boundary import in_git
from serena_central.files.walk import is_utf8


def new_edit_id() -> str:
    """An edit id; short enough to be typed, unique among the edits that are kept."""
    return "e-" + secrets.token_hex(6)


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


_RECORD: MsgpackDecoder[AppliedEdit | list[AppliedEdit]] = msgpack_decoder(AppliedEdit | list[AppliedEdit])


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


class Recorded(NamedTuple):
    """Changes of files below one root, in the forms that history, undo and answers need."""

    root: Path
    changes: Sequence[tuple[FileChange, Difference]]

    @classmethod
    def of(cls, root: Path, changes: Sequence[FileChange]) -> "Recorded":
        return cls(root, [(change, difference(_content(change), change.after)) for change in changes])

    def files(self) -> list[ChangedFile]:
        return [
            ChangedFile(
                path=self._shown(change.path),
                moved_to=self._shown(change.moved_to) if change.moved_to else None,
                created=change.before is None,
                deleted=change.after is None,
                added=found.counts.added,
                removed=found.counts.removed,
            )
            for change, found in self.changes
        ]

    def patches(self) -> list[FilePatch]:
        return [self._patch(change, found) for change, found in self.changes]

    def diff(self) -> str:
        return "".join(
            unified_diff(
                self._shown(change.path),
                _content(change),
                change.after,
                new_path=self._shown(change.moved_to) if change.moved_to else None,
                known=found,
            )
            for change, found in self.changes
        )

    def _patch(self, change: FileChange, found: Difference) -> FilePatch:
        read = change.before
        return FilePatch(
            path=self._shown(change.path),
            moved_to=self._shown(change.moved_to) if change.moved_to else None,
            old_hash=read.digest if read else None,
            encoding=read.encoding if read else change.encoding,
            bom=bool(read and read.bom),
            created=read is None,
            folders=_missing_folders(change.path) if read is None else 0,
            deleted=change.after is None,
            hunks=found.hunks,
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _missing_folders(path: Path) -> int:
    """How many folders around a path have to be made."""
    return len(path.parent.relative_to(standing_folder(str(path))).parts)


def differs(change: FileChange) -> bool:
    return change.moved_to is not None or _content(change) != change.after


def check_targets(changes: Sequence[FileChange]) -> None:
    """The one place that every edit passes.

    Raises:
        PathRefused: for what is git's own, which says what git runs, and for names that neither journal nor history
            could keep.
    """
    for change in changes:
        for path in (change.path, change.moved_to):
            if path is not None and not is_utf8(str(path)):
                raise PathRefused(f"{str(path)!r} is not UTF-8 and cannot be edited. Nothing was changed.")
            if path is not None and in_git(str(path)):
                raise PathRefused(f"{str(path)!r} belongs to git and is never edited. Nothing was changed.")


def _content(change: FileChange) -> str | None:
    return change.before.text.content if change.before else None
