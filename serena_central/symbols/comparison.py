"""Which of two sources knows the files of a large project better: a language server that cannot know how they are
built, or the syntax. Decided by what both say of a sample of the project's own files."""

from collections.abc import Iterable, Sequence

from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.symbol import CALLABLE, TYPES

SAMPLE_FILES = 48
"""The comparison runs while all files are read by syntax, so that no caller waits for it."""

TOLERATED = 0.02
"""The share of functions and types that a server may miss: macros that no grammar sees through make as much."""

MANY_FILES = 200
"""Of so many files a sample is compared, while all are read by syntax; of fewer both sources are asked."""


class Comparison:
    """Of one server in one project."""

    def __init__(self, files: Sequence[str]) -> None:
        ordered, count = sorted(files), min(len(files), SAMPLE_FILES)
        self.sample = [ordered[nth * len(ordered) // count] for nth in range(count)]
        """Files to compare, far apart."""
        self.decided = False
        self._files = self._told = self._missed = self._extra = 0

    def close(self) -> None:
        """There is no more to compare."""
        self.decided = True

    @property
    def reads_by_syntax(self) -> bool:
        """Whether files are read by syntax now."""
        return self.prefers_syntax if self.decided else True

    @property
    def prefers_syntax(self) -> bool:
        """Whether the syntax tells more of the sample."""
        return self._missed > max(self._extra, self._told * TOLERATED)

    def __str__(self) -> str:
        alone = f"{self._missed} by syntax alone and {self._extra} by the server alone"
        return f"of {self._told} functions and types in {self._files} files, {alone}"

    def add(self, by_server: Iterable[DocumentSymbol], by_syntax: Iterable[DocumentSymbol]) -> None:
        """Takes a file into the sample."""
        server, syntax = names(by_server), names(by_syntax)
        if told := len(syntax | server):
            self._files += 1
            self._told += told
            self._missed, self._extra = self._missed + len(syntax - server), self._extra + len(server - syntax)


def names(symbols: Iterable[DocumentSymbol]) -> set[str]:
    """The last names of functions and types that take several lines, also of nested ones. Each counts once."""
    found = set[str]()
    pending = list(symbols)
    while pending:
        symbol = pending.pop()
        pending.extend(symbol.children)
        if is_whole(symbol):
            found.add(last_name(symbol))
    return found


def is_whole(symbol: DocumentSymbol) -> bool:
    """Whether it is a function or type that takes several lines. In one line may stand a mention (`struct file *f`) or
    a macro, which servers take for definitions."""
    is_long = symbol.range.start.line0 < symbol.range.end.line0
    return is_long and (symbol.kind in CALLABLE or symbol.kind in TYPES)


def last_name(symbol: DocumentSymbol) -> str:
    """Its name without the containers that some servers write before it."""
    return symbol.name.rpartition("::")[2]
