"""Turns changes of files into the record of an edit, and makes the checks that apply to every edit. Pure."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import PathRefused
from serena_central.editing.change import FileChange
from serena_central.editing.patch import FilePatch, hunks_of
from serena_central.editing.plan import Difference, difference, unified_diff
from serena_central.files.boundary import in_git
from serena_central.files.walk import is_utf8
from serena_central.projects.editing.applied_edit import ChangedFile


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
            deleted=change.after is None,
            hunks=hunks_of(found),
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


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
