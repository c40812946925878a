"""Fields of Go that a conversion between two structs needs: both must have the same fields in the same order, and a
conversion names none of them.
"""

import re

from serena_central.core.errors import PathError
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

_CONVERTS = re.compile(r"(?:\[[^\]\n]*\])?\)?\(")
"""What follows a type's name in `Row(other)`, `(*Row)(other)` and `Row[int](other)`."""


async def needed_to_convert(project: Project, hit: Hit) -> str | None:
    """A sentence about the first place where the struct of a field may be converted to another, or another to it; None
    if there is none. Structs without a name are not looked for.

    Raises:
        PathError
    """
    container = hit.symbol.container
    if project.languages.language_of(hit.path) != "go" or hit.symbol.kind != SymbolKind.FIELD or container < 0:
        return None
    own = Hit(hit.path, hit.file, container)
    alike = [own, *await _with_its_fields(project, hit, own)]
    if len(alike) == 1:
        return None
    files = [path for path in project.tree.files if project.languages.language_of(path) == "go"]
    for name in dict.fromkeys(one.symbol.name for one in alike):
        for place in await project.navigation.possible.words(files, name):
            try:
                text = (await project.read(place.path)).text
            except PathError:
                continue
            if _CONVERTS.match(text.content, text.offset(place.range.end)):
                others = " and ".join(one.name_path for one in alike[1:3])
                return (
                    f"{others} has the same fields, and {own.name_path} may be converted to or from it in "
                    f"{place.path}:{place.range.start.line0}."
                )
    return None


async def _with_its_fields(project: Project, field: Hit, own: Hit) -> list[Hit]:
    """Other structs of the project with the same fields as the one of a field."""
    fields, found = _fields(own), list[Hit]()
    for path in await project.navigation.possible.candidates(field):
        if path not in project.index or project.languages.language_of(path) != "go":
            continue
        file = project.index.file(path)
        for place, symbol in enumerate(file.symbols):
            other = Hit(path, file, place)
            is_other = symbol.kind == SymbolKind.STRUCT and (path, place) != (own.path, own.place)
            if is_other and _fields(other) == fields:
                found.append(other)
    return found


def _fields(struct: Hit) -> list[str]:
    children = (struct.file.symbols[place] for place in struct.file.children(struct.place))
    return [one.name for one in children if one.kind == SymbolKind.FIELD]
