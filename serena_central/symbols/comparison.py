"""Which of two sources knows the files of a project better: a language server that cannot know how they are built, or
the syntax. Decided by what both say of a sample of the project's own files."""

from collections.abc import Iterable

from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.kinds import CALLABLE, TYPES

SAMPLE_FILES = 8
"""Files that define something are compared before it is decided for the others …"""

SAMPLE_SYMBOLS = 40
"""… and so many functions and types of them."""

TOLERATED = 0.02
"""The share of functions and types that a server may miss: macros that no grammar sees through make as much."""


class Comparison:
    """Of one server in one project."""

    def __init__(self) -> None:
        self._files = self._told = self._missed = self._extra = 0

    @property
    def decided(self) -> bool:
        return self._files >= SAMPLE_FILES and self._told >= SAMPLE_SYMBOLS

    @property
    def prefers_syntax(self) -> bool:
        """Whether the syntax tells more of the sample."""
        return self._missed > max(self._extra, self._told * TOLERATED)

    def add(self, by_server: Iterable[DocumentSymbol], by_syntax: Iterable[DocumentSymbol]) -> bool:
        """Takes a file into the sample; returns whether the syntax tells more of this one."""
        server, syntax = set(_names(by_server)), set(_names(by_syntax))
        told, missed, extra = len(syntax | server), len(syntax - server), len(server - syntax)
        if told:
            self._files += 1
            self._told, self._missed, self._extra = self._told + told, self._missed + missed, self._extra + extra
        return missed > max(extra, told * TOLERATED)


def _names(symbols: Iterable[DocumentSymbol]) -> Iterable[str]:
    """The last names of functions and types, also of nested ones. Each counts once: a server that takes a macro for a
    function finds it a hundred times."""
    pending = list(symbols)
    while pending:
        symbol = pending.pop()
        pending.extend(symbol.children)
        if symbol.kind in CALLABLE or symbol.kind in TYPES:
            yield symbol.name.rpartition("::")[2]
