"""The indexer's interface to the sources of symbols: which server answers for a file, and how to ask it."""

from collections.abc import Hashable, Sequence
from contextlib import AbstractAsyncContextManager
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


class FileServer(Protocol):
    """A language server while it is leased."""

    @property
    def run(self) -> object:
        """Tells it from the one after it."""
        ...

    @property
    def lost(self) -> bool:
        """It came to its end; a new one may be asked."""
        ...

    async def outline(self, path: str) -> Outline:
        """Raises LanguageServerError, or PathError when the file can't be read."""
        ...


class SymbolSource(Protocol):
    """Where symbols come from."""

    def identity(self, path: str) -> str | None:
        """What would answer for this file (server, version, settings digest); None where no language is known."""
        ...

    def instead(self, path: str) -> str | None:
        """What `identity` is called where the syntax is asked instead of a server that can't know the file."""
        ...

    def place(self, path: str) -> Hashable:
        """Files with equal answers have the same identity, server and grammar, and are searched alike, at one moment:
        for loops over 100,000 of them."""
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

    def is_side(self, path: str) -> bool:
        """Whether the file is of a language of few files, of which answers about the whole project say nothing."""
        ...

    def standing(self, path: str) -> str:
        """Why no server has said yet what a file holds, as things are at this moment: for notes."""
        ...

    @property
    def read_retries(self) -> int:
        """How often a question may be put to a new server after a crash."""
        ...

    def server_for(self, path: str) -> AbstractAsyncContextManager[FileServer]:
        """The server for `path` while the block is open; it answers for all files of the same `server_of`.

        Raises:
            LanguageServerError: on entering, if there is no server.
        """
        ...

    def grammar(self, path: str) -> Grammar | None:
        """The grammar that reads this file by syntax."""
        ...

    async def read_by_syntax(self, paths: Sequence[str]) -> list[Read | LanguageServerError | PathError]:
        """What files that have a grammar hold, by syntax, in their order.

        Raises:
            LanguageServerError: none of them could be read.
        """
        ...
