"""Repeats a question about a symbol until its answer is consistent: no file that it concerns changed meanwhile.

A symbol's position is of the text that was indexed, the places in an answer are of texts that a language server has
read, and both are shown in what is on disk then. If a file changes in between, for example while a hanging server is
replaced, wrong symbols would be named. It knows no language server.
"""

from collections.abc import Awaitable, Callable, Collection, Container
from typing import TypeVar

from serena_central.core.errors import SymbolNotFound
from serena_central.files.tree import FileTree
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer

T = TypeVar("T")

TRIES = 4
"""How often a question is asked while the files of its answer change."""


class Steady:
    """Belongs to the event loop's thread."""

    def __init__(self, tree: FileTree, index: SymbolIndex, indexer: Indexer) -> None:
        self._tree = tree
        self._index = index
        self._indexer = indexer

    async def ask(
        self, hit: Hit, question: Callable[[Hit], Awaitable[tuple[T, Container[str]]]]
    ) -> tuple[T, str | None]:
        """What `question` answers of a symbol that was just found, and a note if its files never held still.

        `question` also tells which files its answer is about, beside the symbol's own.

        Raises:
            SymbolNotFound: the symbol is gone meanwhile.
        """
        tries_left = TRIES
        while True:
            tries_left -= 1
            with self._tree.noting() as noted:
                answer, files = await question(hit)
                await self._tree.fresh()
            changed = {path for path in noted if path == hit.path or path in files}
            if not changed or not tries_left:
                return answer, unsteady_note(changed) if changed else None
            hit = await self._found_again(hit)

    async def _found_again(self, hit: Hit) -> Hit:
        """The symbol as it stands in its file now; as it was, where that is not known."""
        await self._indexer.ensure([hit.path])
        if hit.path not in self._index:
            return hit
        file = self._index.file(hit.path)
        place = file.place_of(hit.name_path)
        if place is None:
            raise SymbolNotFound(hit.name_path, hit.path)
        return Hit(hit.path, file, place)


def unsteady_note(changed: Collection[str]) -> str:
    """Says that an answer may lack something, because these files never held still."""
    files = ", ".join(sorted(changed)[:3]) + (", …" if len(changed) > 3 else "")
    return f"{files} kept changing during the request; the answer may be incomplete. Call again"
