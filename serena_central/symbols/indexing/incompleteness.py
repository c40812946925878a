"""What an answer about symbols may lack, and the files that are known by syntax only."""

from collections.abc import Callable, Iterable
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


Standing = Callable[[str], str]
"""Why no server has said what a file holds, at this moment."""


class _Why(NamedTuple):
    """`reason`: what was wrong with the file; None where its server was, which is looked at when it is told."""

    language: str
    reason: str | None
    cut: bool


class BySyntax:
    """Files whose symbols were read by syntax: their language, and why no language server said them."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._why: dict[str, _Why] = {}
        self._alike: dict[_Why, dict[str, None]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._why

    def paths(self, *, but: Callable[[str], bool] = lambda _path: False) -> list[str]:
        """All of them, without languages of which a file is `but`."""
        return [path for alike in self._alike.values() if not but(next(iter(alike))) for path in alike]

    def count(self, *, but: Callable[[str], bool]) -> int:
        return sum(len(alike) for alike in self._alike.values() if not but(next(iter(alike))))

    def add(self, path: str, language: str, reason: str | None, *, cut: bool) -> None:
        self.drop(path)
        why = self._why[path] = _Why(language, reason, cut)
        self._alike.setdefault(why, {})[path] = None

    def drop(self, path: str) -> None:
        why = self._why.pop(path, None)
        if why is not None:
            alike = self._alike[why]
            del alike[path]
            if not alike:
                del self._alike[why]

    def gaps(self, paths: Iterable[str]) -> list[Incompleteness]:
        """Those of `paths`, by reason."""
        found: dict[_Why, tuple[str, int]] = {}
        for path in paths:
            why = self._why.get(path)
            if why is not None:
                first, files = found.get(why, (path, 0))
                found[why] = first, files + 1
        return [self._gap(why, first, files) for why, (first, files) in found.items()]

    def all_gaps(self, *, but: Callable[[str], bool]) -> list[Incompleteness]:
        """All of them, by reason, without languages of which a file is `but`."""
        firsts = [(why, next(iter(alike)), len(alike)) for why, alike in self._alike.items()]
        return [self._gap(why, first, files) for why, first, files in firsts if why.cut or not but(first)]

    def _gap(self, why: _Why, first: str, files: int) -> Incompleteness:
        reason = why.reason or self._standing(first)
        return Incompleteness(f"{reason} {CUT}" if why.cut else reason, files, why.language)

    def gaps_below(self, folder: str, *, but: Callable[[str], bool]) -> list[Incompleteness]:
        """Those in a folder (root-relative) or right at this path; of a folder, without languages that are `but`."""
        below = folder + "/"
        return self.gaps(
            path
            for path, why in self._why.items()
            if path == folder or (path.startswith(below) and (why.cut or not but(path)))
        )
