"""Places in files of a project, and which of its symbols stand there."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import Location
from serena_central.symbols.index import Hit, SymbolIndex

LOOKED_BACK = 2_000
"""Characters before a name in which an import statement would begin."""

_IMPORT = re.compile(r"\bimport\b[^;=()'\"`]*\Z")


class PlaceInCode(NamedTuple):
    """A word in a file, by its root-relative path."""

    path: str
    range: Range


class IndexedPlaces:
    """Of one project, as far as its files are indexed. Belongs to the event loop's thread."""

    def __init__(self, root: Path, index: SymbolIndex) -> None:
        self._below = f"{root}/"
        self._index = index

    def relative(self, path: Path) -> str | None:
        """The root-relative form of a path below the root. Both are normal: as strings in a tenth of the time."""
        whole = str(path)
        return whole.removeprefix(self._below) if whole.startswith(self._below) else None

    def named_at(self, location: Location, name: str) -> Hit | None:
        """The symbol of this name that stands at a place."""
        path = self.relative(location.path)
        if path is None or path not in self._index:
            return None
        file, at = self._index.file(path), location.range.start
        if name not in file.names:
            return None
        alike = (place for place, one in enumerate(file.names) if one == name)
        return next((Hit(path, file, place) for place in alike if file.symbols[place].name_position == at), None)

    def defined_in(self, path: str, name: str) -> Collection[Position]:
        """Where symbols of a file have a name that holds this one, in any case: definitions are no uses of others."""
        if path not in self._index:
            return ()
        file, part = self._index.file(path), name.lower()
        if part not in "\n".join(file.names).lower():
            return ()
        return {file.symbols[place].name_position for place, one in enumerate(file.names) if part in one.lower()}


def is_imported(text: Text, position: Position) -> bool:
    """Whether a name of JavaScript stands in an import statement."""
    start = text.offset(position)
    return _IMPORT.search(text.content, max(0, start - LOOKED_BACK), start) is not None
