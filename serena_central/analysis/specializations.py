"""Specializations of templates of C++: a template has to be declared before them, and code that uses one names the
template. Language servers take each for a symbol of its own, so the template itself may have no reference.
"""

from serena_central.projects.project import Project
from serena_central.symbols.index import Hit


async def specialized(project: Project, hit: Hit) -> str | None:
    """Where a template is specialized, as a clause. By the index alone; files that hold its name are read for it."""
    if project.languages.language_of(hit.path) != "cpp" or hit.symbol.name.endswith(">"):
        return None
    beginning, holder = f"{hit.symbol.name}<", _holder(hit)
    for path in await project.navigation.possible.candidates(hit):
        if path not in project.index:
            continue
        file = project.index.file(path)
        for place, symbol in enumerate(file.symbols):
            other = Hit(path, file, place)
            if symbol.name.startswith(beginning) and symbol.name.endswith(">") and _holder(other) in (holder, None):
                return f"it is specialized in {path}:{symbol.name_line}"
    return None


def _holder(hit: Hit) -> str | None:
    """The name of what directly holds a symbol; None where that is not part of its file, or nothing does."""
    return hit.file.symbols[hit.symbol.container].name if hit.symbol.container >= 0 else None
