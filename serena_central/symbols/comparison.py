"""Which of two sources knows the files of a project better: a language server that cannot know how they are built, or
the syntax. Decided by what both say of a sample of the project's own files."""

from collections.abc import Iterable, Sequence

from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.kinds import CALLABLE, TYPES

SAMPLE_FILES = 8
"""Files that define something are compared before it is decided for the others …"""

SAMPLE_SYMBOLS = 40
"""… and so many functions and types of them."""

LARGE_SAMPLE_FILES = 48
"""Compared where all are read by syntax meanwhile, so that nobody waits for it."""

TOLERATED = 0.02
"""The share of functions and types that a server may miss: macros that no grammar sees through make as much."""


MANY_FILES = 200
"""Of so many files a sample is compared, while all are read by syntax; fewer are asked about one by one."""


class Comparison:
    """Of one server in one project. `sample`: files to compare while all are read by syntax."""

    def __init__(self, sample: Sequence[str] = ()) -> None:
        self.sample = sample
        self._files = self._told = self._missed = self._extra = 0
        self._is_over = False

    @classmethod
    def of_many(cls, files: Sequence[str]) -> "Comparison":
        """Of a project with so many files: those of the sample lie far apart."""
        ordered, count = sorted(files), min(len(files), LARGE_SAMPLE_FILES)
        return cls([ordered[nth * len(ordered) // count] for nth in range(count)])

    @property
    def decided(self) -> bool:
        if self.sample:
            return self._is_over
        return self._files >= SAMPLE_FILES and self._told >= SAMPLE_SYMBOLS

    def close(self) -> None:
        """There is no more to compare."""
        self._is_over = True

    @property
    def reads_by_syntax(self) -> bool:
        """Whether files are read by syntax now."""
        return self.prefers_syntax if self.decided else bool(self.sample)

    @property
    def prefers_syntax(self) -> bool:
        """Whether the syntax tells more of the sample."""
        return self._missed > max(self._extra, self._told * TOLERATED)

    def __str__(self) -> str:
        alone = f"{self._missed} by syntax alone and {self._extra} by the server alone"
        return f"of {self._told} functions and types in {self._files} files, {alone}"

    def add(self, by_server: Iterable[DocumentSymbol], by_syntax: Iterable[DocumentSymbol]) -> bool:
        """Takes a file into the sample; returns whether the syntax tells more of this one."""
        server, syntax = set(_names(by_server)), set(_names(by_syntax))
        told, missed, extra = len(syntax | server), len(syntax - server), len(server - syntax)
        if told:
            self._files += 1
            self._told, self._missed, self._extra = self._told + told, self._missed + missed, self._extra + extra
        return missed > max(extra, told * TOLERATED)


def _names(symbols: Iterable[DocumentSymbol]) -> Iterable[str]:
    """The last names of functions and types that take several lines, also of nested ones. In one line may stand a
    mention (`struct file *f`) or a macro, which servers take for definitions. Each counts once."""
    pending = list(symbols)
    while pending:
        symbol = pending.pop()
        pending.extend(symbol.children)
        is_whole = symbol.range.start.line0 < symbol.range.end.line0
        if is_whole and (symbol.kind in CALLABLE or symbol.kind in TYPES):
            yield symbol.name.rpartition("::")[2]
