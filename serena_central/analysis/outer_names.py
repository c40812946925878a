"""Names that a symbol of C and C++ declares in the scope around it: enumerators, and in C the types within a type. Code
uses them without naming what they belong to.
"""

from serena_central.core.errors import LanguageServerError
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import THOROUGH
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES


async def used_by_outer_names(project: Project, hit: Hit) -> str | None:
    """What uses such a name outside of the symbol, or may do so, as a clause.

    Raises:
        PathError
    """
    for part in _outer_names(hit, project.languages.language_of(hit.path)):
        if reason := await _used(project, hit, part):
            return reason
    return None


def _outer_names(hit: Hit, language: str | None) -> list[Hit]:
    if language not in ("c", "cpp") or hit.symbol.kind == SymbolKind.ENUM_MEMBER:
        return []
    kinds = {SymbolKind.ENUM_MEMBER, *(TYPES if language == "c" else ())}
    return [
        Hit(hit.path, hit.file, place)
        for place, symbol in enumerate(hit.file.symbols)
        if place != hit.place and symbol.kind in kinds and hit.symbol.range.encloses(symbol.range)
    ]


async def _used(project: Project, whole: Hit, part: Hit) -> str | None:
    text = (await project.read(part.path)).text
    start = part.symbol.name_position
    if not text.line(start.line0).startswith(part.symbol.name, start.column):
        return f"a macro declares {part.symbol.name} in it, and its references are not known"
    candidates = await project.navigation.possible.candidates(part)
    if all(_is_within(whole, PlaceInCode(path, span)) for path, spans in candidates.items() for span in spans):
        return None
    try:
        known = await project.navigation.references.uses(part)
    except LanguageServerError:
        return f"the language server cannot tell whether {part.symbol.name} is used, which it declares"
    examined = await project.navigation.possible.examine(part, known, THOROUGH, candidates)
    listed = [PlaceInCode(path, span) for path, spans in known.places.items() for span in spans]
    for places, verb in (
        ([*listed, *examined.references], "is used"),
        ([*examined.possible, *examined.unexamined], "may be used"),
    ):
        for place in places:
            if not _is_within(whole, place):
                return f"{part.symbol.name}, which it declares, {verb} in {place.path}:{place.range.start.line0}"
    return None


def _is_within(whole: Hit, place: PlaceInCode) -> bool:
    return place.path == whole.path and whole.symbol.range.encloses(place.range)
