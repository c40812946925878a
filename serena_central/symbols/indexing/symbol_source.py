"""Where symbols come from, as the indexer sees it: who would answer for a file, and how to ask."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple, Protocol

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.files.stamp import Stamp
from serena_central.lsp.answers import DocumentSymbol
from serena_central.symbols.syntax.grammars import Grammar
from serena_central.symbols.syntax.messages import Packed


class Outline(NamedTuple):
    """The symbols of a file. `cut`: it nests deeper than was looked at, and what lies there is left out."""

    symbols: Sequence[DocumentSymbol]
    cut: bool = False


class Read(NamedTuple):
    """A file as it was read by syntax: the stamp of what was read, and its symbols."""

    stamp: Stamp
    symbols: Packed


AskSymbols = Callable[[str], Awaitable[Outline]]
"""Asks one server about a file. Raises LanguageServerError, or PathError when the file can't be read."""


class Lent(NamedTuple):
    """A server for some files: how to ask it, and the server itself, to tell it from the one after it."""

    ask: AskSymbols
    server: object


class SymbolSource(Protocol):
    """Where symbols come from."""

    def identity(self, path: str) -> str | None:
        """What would answer for this file (server, version, settings digest); None where no language is known."""
        ...

    def instead(self, path: str) -> str | None:
        """What `identity` is called where the syntax is asked instead of a server that can't know the file."""
        ...

    def is_searched(self, path: str) -> bool:
        """Whether the file belongs to the index before somebody asks for it."""
        ...

    def server_of(self, path: str) -> Hashable:
        """Files with equal answers are read by one server."""
        ...

    def is_left_alone(self, path: str) -> bool:
        """Whether the file's server is not to be asked, or started, before somebody asks about such a file."""
        ...

    def standing(self, path: str) -> str:
        """Why no server has said yet what a file holds, as things are at this moment: for notes."""
        ...

    async def lend(self, path: str, work: Callable[[Lent], Awaitable[None]]) -> None:
        """Runs `work` with the server for `path`, again with a new one if `work` raises ServerCrashed.

        Raises LanguageServerError when there is no server, or none that stays.
        """
        ...

    def grammar(self, path: str) -> Grammar | None:
        """The grammar that reads this file by syntax."""
        ...

    async def read_by_syntax(self, paths: Sequence[str]) -> list[Read | LanguageServerError | PathError]:
        """What files that have a grammar hold, by syntax, in their order. Raises LanguageServerError for all."""
        ...
