"""Finds who changed a range of a file by walking its edits backwards, as `git blame` does with commits.

Conflict detection asks when a symbol is not what its session saw: if only that session changed it since, it knows
it anyway. So an edit counts as known to its author although the server was killed before it could note that. The
edits come from their journal; a text that none of them made is somebody else's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from serena_central.core.text import Position, Range, Text
from serena_central.editing.journal import Past
from serena_central.editing.patch import ChangedLines, FilePatch, MovedOn, changed_lines, reverted
from serena_central.files.text import FileText
from serena_central.projects.editing.edit_records import AppliedEdit, edits_in
from serena_central.symbols.symbol import hash_of

MOST_EDITS = 1000
"""Edits of one file that are walked back through, about a millisecond each."""


class FileEdit(NamedTuple):
    """What one edit did to one file: the digests before and after, None where there was no file."""

    edit: AppliedEdit
    patch: FilePatch
    old: str | None
    new: str | None


class Verdict(NamedTuple):
    """Whether the session knows a symbol as it is; else the edit that changed it, None if no edit did."""

    known: bool
    by: AppliedEdit | None = None


_CHANGED_OUTSIDE = Verdict(known=False)


def edits_of(past: Iterable[Past], file: str) -> list[FileEdit]:
    """The edits of one file, an absolute path, the newest first, by whichever project. A move ends them: the file was
    another one before."""
    found: list[FileEdit] = []
    for one in reversed(list(past)):
        step = next((step for step in one.entry.steps if step.path == file), None) if one.applied else None
        if step is not None:
            found += (
                FileEdit(edit, patch, step.old, step.new)
                for edit in edits_in(one)
                for patch in edit.patches
                if patch.moved_to is None and f"{edit.root}/{patch.path}" == file
            )
        if len(found) >= MOST_EDITS:
            break
    return found


class Blame:
    """Of one file as it is now, for one session. Blocks for as long as the walk takes."""

    def __init__(self, read: FileText, edits: Sequence[FileEdit], session: str) -> None:
        self._read = read
        self._edits = edits
        self._session = session

    def of_file(self, seen: str) -> Verdict:
        """Whether the session, which saw the content with the digest `seen`, knows what the file holds now."""
        digest: str | None = self._read.digest
        for one in self._edits:
            if digest == seen:
                break
            if one.new != digest:
                continue
            if one.edit.author.session != self._session:
                return Verdict(known=False, by=one.edit)
            if one.edit.wrote == "":
                return Verdict(known=True)
            digest = one.old
        return Verdict(known=digest == seen)

    def of_symbol(self, name_path: str, span: Range, seen: str) -> Verdict:
        """The same for a symbol that stands at `span`, whose body had the hash `seen`."""
        digest: str | None = self._read.digest
        after = self._read.text
        for one in self._edits:
            if one.new != digest:
                continue
            own = one.edit.author.session == self._session
            if own and _wrote(one.edit, name_path):
                return Verdict(known=True)
            try:
                before = Text(reverted(after.content, one.patch.hunks))
            except MovedOn:
                return _CHANGED_OUTSIDE
            step = _Step(after, before, changed_lines(one.patch.hunks))
            earlier = step.unchanged(span)
            if earlier is None and not own:
                return Verdict(known=False, by=one.edit)
            if earlier is None and step.is_new(span):
                return Verdict(known=True)
            earlier = earlier or step.changed(span)
            if earlier is None:
                return _CHANGED_OUTSIDE
            if hash_of(before.slice(earlier)) == seen:
                return Verdict(known=True)
            digest, after, span = one.old, before, earlier
        return _CHANGED_OUTSIDE


def _wrote(edit: AppliedEdit, name_path: str) -> bool:
    wrote = edit.wrote
    return wrote is not None and (not wrote or name_path == wrote or name_path.startswith(f"{wrote}/"))


class _Step(NamedTuple):
    """One step back: a text, what it was before an edit, and the lines that the edit changed."""

    after: Text
    before: Text
    lines: Sequence[ChangedLines]

    def unchanged(self, span: Range) -> Range | None:
        """Where the same text stood before; None if it did not, or if that is unknown."""
        body = self.after.slice(span)
        for position, ahead in ((span.start, 0), (span.end, len(body))):
            line0 = self._line_before(position.line0)
            if line0 is not None:
                start = self.before.offset(Position(line0, position.column)) - ahead
                if start >= 0 and self.before.content.startswith(body, start):
                    return self._range(start, start + len(body))
        start = self.before.content.find(body)
        once = start >= 0 and self.before.content.find(body, start + 1) < 0
        return self._range(start, start + len(body)) if once else None

    def is_new(self, span: Range) -> bool:
        """Whether the edit wrote each of its lines."""
        return all(
            any(lines.new_start <= line0 < lines.new_end for lines in self.lines)
            for line0 in range(span.start.line0, span.end.line0 + 1)
        )

    def changed(self, span: Range) -> Range | None:
        """What stood there before, as far as the ends of the stretch can be told."""
        start, end = self._start_before(span.start), self._end_before(span.end)
        return Range(start, end) if start is not None and end is not None and start <= end else None

    def _start_before(self, start: Position) -> Position | None:
        line0 = self._line_before(start.line0)
        if line0 is None:
            line0 = next((lines.old_start for lines in self.lines if lines.new_start == start.line0), None)
        return None if line0 is None else Position(line0, start.column)

    def _end_before(self, end: Position) -> Position | None:
        line0 = self._line_before(end.line0)
        if line0 is not None:
            return Position(line0, end.column)
        line0 = next((lines.old_end - 1 for lines in self.lines if lines.new_end - 1 == end.line0), None)
        return None if line0 is None else Position(line0, len(self.before.line(line0)))

    def _line_before(self, line0: int) -> int | None:
        """The line that an unchanged one was; None for one that the edit made."""
        moved = 0
        for lines in self.lines:
            if lines.new_start <= line0 < lines.new_end:
                return None
            if lines.new_end <= line0:
                moved = lines.old_end - lines.new_end
        return line0 + moved

    def _range(self, start: int, end: int) -> Range:
        return Range(self.before.position(start), self.before.position(end))
