"""Possible references in a collection: places of a name in code of which the language server can't tell what they mean.

Of a single symbol `projects/navigation/possible_references.py` finds them with more care. Here they are found beside
all references of a project, and the cost is bounded; places that were not checked are counted.
"""

from collections.abc import Iterable, Mapping

from serena_central.analysis.collection import Definition
from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.text import Position, Range
from serena_central.core.words import counted
from serena_central.projects.navigation.common_names import is_common
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

MOST_PARSED = 3_000
"""Times that a file is parsed for the places of one name, in one collection: 2 to 10 ms each, in another process."""

Doubtful = Mapping[str, list[Range]]
"""Path → places."""

NOWHERE: Doubtful = {}


class UncertainPlaces:
    """Of one collection. Belongs to the event loop's thread."""

    def __init__(self, project: Project, most_parsed: int = MOST_PARSED) -> None:
        self._project = project
        self._left = most_parsed

    async def in_code(self, hit: Hit, places: Doubtful) -> tuple[Doubtful, int]:
        """Those places of a symbol's name that are code, and define nothing; and how many were not looked at.

        Names that built-in types have, too, are not looked for: most places mean those.
        """
        total = sum(map(len, places.values()))
        if not total or is_common(self._project.languages.language_of(hit.path), hit.symbol.name):
            return {}, total
        found: dict[str, list[Range]] = {}
        unexamined = 0
        for path, spans in places.items():
            texts = await self._texts(path, hit.symbol.name)
            if texts is None:
                unexamined += len(spans)
            elif code := [span for span in spans if span.start not in texts and not self._defines(path, span.start)]:
                found[path] = code
        return found, unexamined

    async def _texts(self, path: str, name: str) -> set[Position] | None:
        """Where a name stands in strings and comments of a file; None if this cannot be determined."""
        if self._left <= 0 or self._project.languages.grammar(path) is None:
            return None
        self._left -= 1
        try:
            places = await self._project.languages.syntax.occurrences(path, name)
        except (LanguageServerError, PathError):
            return None
        return {place.range.start for place in places if place.kind != "code"}

    def _defines(self, path: str, position: Position) -> bool:
        if path not in self._project.index:
            return False
        return any(symbol.name_position == position for symbol in self._project.index.file(path).symbols)


def doubt_notes(definitions: Iterable[Definition]) -> list[str]:
    """The notes on possible references, and on places that were not checked."""
    doubtful = [one for one in definitions if one.possible]
    unexamined = [one for one in definitions if one.unexamined]
    said: list[str] = []
    if doubtful:
        places = sum(len(spans) for one in doubtful for spans in one.possible.values())
        said.append(
            f"Possible references: {counted(places, 'place')} in code with names of "
            f"{counted(len(doubtful), 'symbol')} that the language server cannot resolve. They are "
            "dashed in drawings and `possible` in JSON, and do not count in cycles, layers or rankings."
        )
    if unexamined:
        places = sum(one.unexamined for one in unexamined)
        said.append(
            f"{counted(places, 'further place')} with names of {counted(len(unexamined), 'symbol')} (including strings "
            "and comments), not examined: the names are common or occur in too many places."
        )
    return said
