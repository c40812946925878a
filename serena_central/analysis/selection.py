"""Which files a question about a part of a project, or about what changed in it, is put for."""

from collections.abc import Collection

from serena_central.analysis.surroundings import Surroundings, imported_as
from serena_central.projects.project import Project


def code_below(project: Project, path: str) -> list[str]:
    """Files with symbols at or below a root-relative path. Raises PathError."""
    inside = project.locate(path) if path else ""
    return sorted(
        file
        for file in project.tree.files
        if (not inside or file == inside or file.startswith(inside + "/")) and project.languages.is_code(file)
    )


async def with_users(project: Project, changed: Collection[str]) -> list[str]:
    """Of the changed files, gone ones among them, those that are code, and all that name one as imports do."""
    code = code_below(project, "")
    around = await Surroundings.of(project, map(imported_as, changed))
    return [file for file in code if file in changed or any(around.names_file(file, one) for one in changed)]
