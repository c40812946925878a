"""Explains, once for all symbols of a part, which references the language servers cannot see.

These are Go modules and crates that use others by path without being joined to them, and sources without build
information.
"""

from collections.abc import Hashable, Iterable

from serena_central.analysis.collection import Definition
from serena_central.analysis.graph import folder_of
from serena_central.core.errors import LanguageServerError
from serena_central.projects.navigation.server_questions import unjoined
from serena_central.projects.project import Project


async def blind_spots(project: Project, definitions: Iterable[Definition]) -> list[str]:
    """Notes on what the uses of these may lack; those that modules out of sight may use are no longer `known`."""
    places: dict[Hashable, list[Definition]] = {}
    for definition in definitions:
        places.setdefault(project.languages.workplace_of(definition.path), []).append(definition)
    notes = caveats(project, (definition.path for group in places.values() for definition in group))
    for group in places.values():
        try:
            found = await project.navigation.questions.elsewhere(
                group[0].path, {definition.name for definition in group}
            )
        except LanguageServerError:
            continue  # of a server that is not to be had: the collection says so
        for definition in group:
            definition.known = definition.known and definition.name not in found
        if found:
            files = sorted({file for files in found.values() for file in files})
            notes.append(f"Possibly incomplete: {unjoined(sorted(found), files)}")
    return notes


def caveats(project: Project, paths: Iterable[str]) -> list[str]:
    """What answers about these files may lack as long as the project doesn't say how it is built."""
    one_of_each = {(folder_of(path), project.languages.language_of(path)): path for path in paths}
    found = map(project.languages.caveat, one_of_each.values())
    return list(dict.fromkeys(f"Possibly incomplete: {caveat}" for caveat in found if caveat))
