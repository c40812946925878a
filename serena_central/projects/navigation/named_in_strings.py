"""Which strings with a symbol's name in them mean the symbol, as far as the name and what stands around it can tell."""

from collections.abc import Sequence
from itertools import groupby

from serena_central.core.pacing import paced
from serena_central.projects.navigation.common_names import (
    BehindHolder,
    as_argument,
    as_command,
    as_qualified,
    in_format,
    is_unusual,
)
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.project_places import ProjectPlaces
from serena_central.symbols.index import Hit

_QUOTES = "\"'`"

_SHELLS = ("bash", "fish")
"""Languages whose functions are commands, which strings run."""


async def named_in_strings(
    places: ProjectPlaces, hit: Hit, strings: Sequence[PlaceInCode]
) -> tuple[Sequence[PlaceInCode], Sequence[PlaceInCode]]:
    """Those of the places in strings that mean a symbol: an everyday word does behind its module, type or namespace,
    where it is all that a call is given, which may be reflection, and as the command in what a shell runs. And those of
    the others at which it is all of a string."""
    name = hit.symbol.name
    if is_unusual(name) or not strings:
        return strings, ()
    texts = await places.readings({place.path for place in strings})
    qualified, quoted = BehindHolder(hit), {f"{one}{name}{one}" for one in _QUOTES}
    named = [as_argument(name), as_qualified(name)]
    if places.language_of(hit.path) in _SHELLS:
        named.append(as_command(name))
    if "/" in hit.name_path:
        named.append(in_format(name))
    meant: list[PlaceInCode] = []
    alone: list[PlaceInCode] = []
    # Each line is read once: a file of data may have thousands of places in one line of a megabyte.
    lines = groupby(strings, key=lambda place: (place.path, place.range.end.line0))
    async for (path, line0), group in paced((key, list(group)) for key, group in lines):
        if path not in texts:
            continue
        line = texts[path].text.line(line0)
        ends = set(qualified.ends(line))
        ends.update(found.end("name") for one in named for found in one.finditer(line))
        for place in group:
            start, end = place.range.start.column, place.range.end.column
            if end in ends:
                meant.append(place)
            elif line[max(start - 1, 0) : end + 1] in quoted:
                alone.append(place)
    return meant, alone
