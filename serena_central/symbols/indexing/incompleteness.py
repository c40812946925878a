"""What an answer about symbols may lack."""

from typing import NamedTuple

PATIENT_S = 45.0
"""How long a caller waits at most, also where there is no grammar: less than a call may take, so that what is known is
told."""

NOT_READ_YET = "its language server did not reach it in time. Call again, or name a file or folder."

DEEPEST = 256
"""Levels of a syntax tree that are looked at: sources nest 100 deep, hostile ones 200,000, in quadratic time."""

CUT = f"It is nested deeper than {DEEPEST} levels of syntax; some of its symbols may be missing."

KEEPS_CHANGING = "it keeps changing; retry when the file no longer changes"


class Incompleteness(NamedTuple):
    """Files that an answer does not cover, and why; with a `language`, files that it covers by syntax only."""

    reason: str
    files: int
    language: str | None = None

    def __str__(self) -> str:
        files = "file" if self.files == 1 else "files"
        if self.language:
            return f"By syntax only (tree-sitter): {self.files} {self.language} {files}. Reason: {self.reason}"
        return f"Incomplete: {self.files} {files} could not be indexed: {self.reason}"
