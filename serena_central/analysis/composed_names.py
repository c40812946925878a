"""Names that code composes at run time: a string with the beginning of one, as in `getattr(self, f"visit_{kind}")`."""

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.files.containing import find_containing
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

SHORTEST = 3
"""Characters of a beginning, its `_` included."""


async def put_together(project: Project, hit: Hit) -> str | None:
    """Why a symbol's name may be put together in the project's code of its language, as a clause."""
    name, language = hit.symbol.name, project.languages.language_of(hit.path)
    beginnings = [name[: at + 1] for at in range(SHORTEST - 1, len(name) - 1) if name[at] == "_" != name[at - 1]]
    if not beginnings:
        return None
    files = [path async for path in paced(list(project.tree.files)) if project.languages.language_of(path) == language]
    for beginning in reversed(beginnings):
        maybe = await project.navigation.possible.holding(files, beginning)
        found = (await find_containing(project.root, maybe, beginning, encoding=project.languages.encoding)).files
        for path in sorted(found):
            if (line0 := await _string_with(project, path, beginning)) is not None:
                return f"a string in {path}:{line0} holds the beginning of its name, {beginning}"
    return None


async def _string_with(project: Project, path: str, word: str) -> int | None:
    """The line of a string in which a word stands, if a grammar can tell."""
    try:
        occurrences = await project.languages.syntax.occurrences(path, word)
    except (LanguageServerError, PathError):
        return None
    return next((one.range.start.line0 for one in occurrences if one.kind == "string"), None)
