"""Names that a rename leaves alone although they lead to the renamed symbol, too.

Where `{ load }` becomes `{ fetch: load }`, a variable goes on under the old name. Language servers list its places as
references to the member, since they lead to both.
"""

from serena_central.core.text import Position, Range
from serena_central.editing.rename import Rename
from serena_central.projects.relations import Relations

Named = tuple[str, Position]
"""A root-relative path, and where a name begins in it."""


class KeptNames:
    """Places of one rename that name what keeps the old name, as the language server says."""

    def __init__(self, relations: Relations, rename: Rename) -> None:
        self._relations = relations
        self._rename = rename
        added = {(path, span.start) for path, span in rename.added}
        edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
        self._renamed = edited - added - rename.kept
        self._known: dict[Named, bool] = dict.fromkeys(rename.kept, True)

    async def added(self) -> set[tuple[str, Range]]:
        """Of the places that the rename adds to the server's own. Raises LanguageServerError."""
        if not self._rename.kept:
            return set()
        return {(path, span) for path, span in self._rename.added if await self._is_kept((path, span.start))}

    async def _is_kept(self, place: Named) -> bool:
        """Whether it leads to what keeps the old name, by itself or over others that do."""
        if place not in self._known:
            self._known[place] = False  # a cycle leads nowhere
            locations, _ = await self._relations.leads(*place)
            for location in locations:
                path = self._relations.inside(location.path)
                target = (path or "", location.range.start)
                if path is not None and target not in self._renamed and await self._is_kept(target):
                    self._known[place] = True
                    break
        return self._known[place]
