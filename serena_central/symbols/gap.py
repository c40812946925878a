"""What an answer about symbols lacks, and the files that are known by syntax only."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

PATIENCE_S = 3.0
"""How long a caller waits for a server's first answer where symbols can be had by syntax: a quick server has started
and answered by then; the others take a minute for a large project, and a caller gives up within one."""

SLOW_START = (
    f"its language server has said nothing for {PATIENCE_S:g} s; it may be starting. Call again for its answer."
)

ANSWER_S = 5.0
"""How long a caller waits for all that servers can say of its files, where symbols can be had by syntax."""

SLOW_ANSWERS = (
    f"its language server takes longer than {ANSWER_S:g} s for all files that may hold an answer; it goes on in the "
    "background."
)

PATIENT_S = 45.0
"""How long a caller waits at most, also where there is no grammar: less than a call may take, so that what is known is
told."""

NOT_READ_YET = f"its language server did not come to it within {PATIENT_S:g} s. Call again, or name a file or folder."

DEEPEST = 256
"""Levels of a syntax tree that are looked at: sources nest 100 deep, hostile ones 200,000, in quadratic time."""

CUT = f"It nests deeper than {DEEPEST} levels of syntax: symbols of it may be missing here."

FROM_CACHE = "no language server could be asked when it was indexed; it is being asked again."


class Gap(NamedTuple):
    """Files that an answer does not cover, and why; with a `language`, files that it covers by syntax only."""

    reason: str
    files: int
    language: str | None = None

    def __str__(self) -> str:
        files = "file" if self.files == 1 else "files"
        if self.language:
            return f"By syntax only (tree-sitter): {self.files} {self.language} {files}, because: {self.reason}"
        return f"Incomplete: {self.files} {files} could not be indexed: {self.reason}"


class BySyntax:
    """Files whose symbols were read by syntax: their language, and why no language server said them."""

    def __init__(self) -> None:
        self._why: dict[str, tuple[str, str]] = {}
        self._count: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._why)

    def __contains__(self, path: str) -> bool:
        return path in self._why

    def paths(self) -> list[str]:
        return list(self._why)

    def add(self, path: str, language: str, reason: str) -> None:
        self.drop(path)
        self._why[path] = language, reason
        self._count[language, reason] += 1

    def drop(self, path: str) -> None:
        why = self._why.pop(path, None)
        if why is not None:
            self._count[why] -= 1
            if not self._count[why]:
                del self._count[why]

    def gaps(self, paths: Iterable[str] | None = None) -> list[Gap]:
        """Those of `paths` (None: all), by reason."""
        count = self._count if paths is None else Counter(self._why[path] for path in paths if path in self._why)
        return [Gap(reason, files, language) for (language, reason), files in count.items()]

    def gaps_below(self, folder: str) -> list[Gap]:
        """Those in a folder (root-relative) or right at this path."""
        if not self._why:
            return []
        return self.gaps(path for path in self._why if path == folder or path.startswith(folder + "/"))
