"""Replaces text in many files: finds every occurrence, gives each an id, and changes the chosen ones, or none.

An id stands for one place in one content of one file: when the file changes, its ids are no longer known, and who uses
them is refused. Runs in a worker thread.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.core.errors import InvalidArguments, NothingMatched, PathError
from serena_central.editing.change import FileChange
from serena_central.editing.replacing import Mode, Replacement, replaced, replacements
from serena_central.files.text import FileText

SECONDS = 30.0
"""How long all files together may be searched."""

MOST_OCCURRENCES = 10_000
"""Maximum of occurrences; with more nobody can review them, and the pattern is too wide."""

SHOWN_CHARS = 200
"""Of a line in the list of occurrences."""


class Occurrence(msgspec.Struct, frozen=True):
    """One place. `line` is 0-based; `before` and `after` are its first line with and without the needle."""

    id: str
    path: str
    line: int
    before: str
    after: str


class FoundIn(NamedTuple):
    """One file's occurrences, with the replacement that each stands for."""

    path: str
    read: FileText
    changes: list[Replacement]
    occurrences: list[Occurrence]


class Found(NamedTuple):
    files: list[FoundIn]
    skipped: list[str]
    """Files that could not be read as text."""

    @property
    def occurrences(self) -> list[Occurrence]:
        return [one for file in self.files for one in file.occurrences]


def find(
    paths: Iterable[str],
    read: Callable[[str], FileText],
    needle: str,
    repl: str,
    mode: Mode,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> Found:
    """Every occurrence in the files at `paths` (root-relative).

    Raises:
        InvalidArguments: the needle can't be one, there are too many occurrences, or the time was not enough.
    """
    end = time.monotonic() + SECONDS
    files: list[FoundIn] = []
    skipped: list[str] = []
    count = 0
    for path in paths:
        if cancelled():
            break
        if time.monotonic() > end:
            raise InvalidArguments(f"Not all files could be searched within {SECONDS:g} s. Narrow the paths.")
        try:
            text = read(path)
        except PathError:
            skipped.append(path)
            continue
        try:
            changes = replacements(text.text.content, needle, repl, mode, several=True)
        except NothingMatched:
            continue
        count += len(changes)
        if count > MOST_OCCURRENCES:
            raise InvalidArguments(
                f"There are more than {MOST_OCCURRENCES} occurrences. Narrow the needle or the paths."
            )
        files.append(FoundIn(path, text, changes, [_occurrence(path, text, change) for change in changes]))
    return Found(files, skipped)


def changes_of(root: Path, found: Found, wanted: Collection[str] | None) -> list[FileChange]:
    """The changes that make the wanted occurrences (None: all).

    Raises:
        InvalidArguments: an id is not known: its file has changed since, or it was never given.
    """
    stale = set(wanted or ()) - {one.id for one in found.occurrences}
    if stale:
        raise InvalidArguments(
            f"{len(stale)} of the occurrence_ids no longer exist, for example {min(stale)!r}: the files have "
            "changed, or the arguments differ. Nothing was changed; repeat the dry run."
        )
    return [
        FileChange(root / file.path, file.read, replaced(file.read.text.content, _chosen(file, wanted)))
        for file in found.files
    ]


def _chosen(file: FoundIn, wanted: Collection[str] | None) -> list[Replacement]:
    pairs = zip(file.changes, file.occurrences, strict=True)
    return [change for change, one in pairs if wanted is None or one.id in wanted]


def _occurrence(path: str, read: FileText, change: Replacement) -> Occurrence:
    text = read.text
    start, end = text.position(change.start), text.position(change.end)
    mark = f"{path}\0{read.digest}\0{change.start}\0{change.end}\0{change.new}".encode("utf-8", "surrogatepass")
    head, tail = text.line(start.line0)[: start.column], text.line(end.line0)[end.column :]
    after = (head + change.new + tail).splitlines() or [""]
    return Occurrence(
        blake2b(mark, digest_size=6).hexdigest(),
        path,
        start.line0,
        text.line(start.line0)[:SHOWN_CHARS],
        after[0][:SHOWN_CHARS],
    )


def check_count(occurrences: Sequence[Occurrence], expected: int | None) -> None:
    """Raises InvalidArguments if there are not as many as expected."""
    if expected is not None and len(occurrences) != expected:
        raise InvalidArguments(
            f"There are {len(occurrences)} occurrences, not {expected}. Nothing was changed; repeat the dry run."
        )
