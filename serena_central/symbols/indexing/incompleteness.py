"""What an answer about symbols may lack."""

from collections.abc import Iterable
from typing import NamedTuple

from serena_central.core.quoting import quoted
from serena_central.lsp.answers import MOST_SYMBOLS

NOT_READ_YET = "not read yet. Reading goes on in the background: call again for the rest, or name a file or folder."

DEEPEST = 256
"""Levels of a syntax tree that are looked at: sources nest 100 deep, hostile ones 200,000, in quadratic time."""

KEEPS_CHANGING = "it keeps changing; retry when the file no longer changes"


class Incompleteness(NamedTuple):
    """Files that an answer does not cover, and why; with a `language`, files that it covers by syntax only."""

    reason: str
    files: int
    language: str | None = None
    partly: bool = False
    """Some symbols of the files are known."""
    of: int = 0
    """Of so many files that were asked about these are not read yet."""

    def __str__(self) -> str:
        files = "file" if self.files == 1 else "files"
        if self.language:
            return f"By syntax only (tree-sitter): {self.files} {self.language} {files}. Reason: {self.reason}"
        if self.of:
            return f"Incomplete: {self.files:,} of {self.of:,} files {self.reason}"
        indexed = "indexed only in part" if self.partly else "could not be indexed"
        return f"Incomplete: {self.files} {files} {indexed}: {self.reason}"


def not_read_yet(files: int, of: int) -> list[Incompleteness]:
    """One for files that could not be read in time, if there are any, of those that were asked about."""
    return [Incompleteness(NOT_READ_YET, files, of=of)] if files else []


def in_part(paths: Iterable[str]) -> list[Incompleteness]:
    """One for all files of which symbols are left out: an index that holds everything would stop everybody."""
    cut = list(paths)
    if not cut:
        return []
    reason = f"more than {MOST_SYMBOLS:,} symbols, or nested deeper than {DEEPEST} levels of syntax"
    return [
        Incompleteness(f"{reason}. Use search_for_pattern in {quoted(cut[0])} for the rest.", len(cut), partly=True)
    ]
