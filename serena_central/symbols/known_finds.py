"""Finds of one root that are known until a file changes: agents ask for a symbol again, with its body or for those that
use it, and several of them for the same one."""

from serena_central.core.lru import Lru
from serena_central.symbols.index import FILES_KEPT, Hits, SymbolIndex
from serena_central.symbols.namepath import REMEMBERED_CHARS, Pattern

MOST_FINDS = 200
"""Each takes 3 KB …"""

MOST_SYMBOLS = 5_000
"""… and each symbol of them all up to 230 bytes, where it lies in a file of its own: two megabytes at most."""


class KnownFinds:
    """Belongs to the event loop's thread. Not the index's own: what was found holds the index, which would live on
    after its project until the garbage collector comes."""

    def __init__(self, index: SymbolIndex) -> None:
        self._index = index
        self._hits: Lru[tuple[Pattern, str | None], Hits] = Lru(MOST_FINDS, max_size=MOST_SYMBOLS, size_of=len)
        self._changes = index.changes
        """Those of the index when these were found."""

    async def find(self, pattern: Pattern, within: str | None) -> Hits:
        """As `SymbolIndex.find_paced`. Those in many files are not kept: they keep files decoded."""
        index = self._index
        if self._changes != index.changes:
            self._hits.clear()
            self._changes = index.changes
        known = self._hits.get((pattern, within))
        if known is not None:
            return known
        changes, hits = index.changes, await index.find_paced(pattern, within)
        is_small = hits.files <= FILES_KEPT and len(pattern.text) <= REMEMBERED_CHARS
        if is_small and changes == index.changes:
            self._hits[pattern, within] = hits
        return hits
