"""Which strings with a symbol's name in them mean the symbol, as far as the name and what stands around it can tell."""

from collections.abc import Sequence

from serena_central.projects.navigation.common_names import as_argument, behind_holder, is_unusual
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.project_places import ProjectPlaces
from serena_central.symbols.index import Hit

_QUOTES = "\"'`"


async def named_in_strings(
    places: ProjectPlaces, hit: Hit, strings: Sequence[PlaceInCode]
) -> tuple[Sequence[PlaceInCode], Sequence[PlaceInCode]]:
    """Those of the places in strings that mean a symbol: an everyday word does behind its module or type, and where it
    is all that a call is given, which may be reflection. And those of the others at which it is all of a string."""
    name = hit.symbol.name
    if is_unusual(name) or not strings:
        return strings, ()
    texts = await places.readings({place.path for place in strings})
    qualified, argument, quoted = behind_holder(hit), as_argument(name), {f"{one}{name}{one}" for one in _QUOTES}
    meant: list[PlaceInCode] = []
    alone: list[PlaceInCode] = []
    for place in strings:
        if place.path not in texts:
            continue
        start, end = place.range.start, place.range.end
        line = texts[place.path].text.line(end.line0)
        behind = any(found.end() == end.column for found in qualified.finditer(line))
        if behind or any(found.end("name") == end.column for found in argument.finditer(line)):
            meant.append(place)
        elif line[max(start.column - 1, 0) : end.column + 1] in quoted:
            alone.append(place)
    return meant, alone
