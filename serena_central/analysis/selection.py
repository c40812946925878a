"""Selects the files that a question about part of a project, or about changes in it, covers."""

from collections.abc import Collection
from fnmatch import fnmatchcase

from serena_central.analysis.word_index import Surroundings, imported_as
from serena_central.core.words import counted
from serena_central.projects.project import Project

PACKAGES_ARE_FOLDERS = frozenset({"go", "java", "csharp", "kotlin"})
"""Languages whose files use what others of their folder declare without importing it."""

BUILD_FILES = (
    *("tsconfig*.json", "jsconfig*.json", "package.json", "go.mod", "go.work", "Cargo.toml", "pyproject.toml"),
    *("compile_commands.json", "compile_flags.txt", "CMakeLists.txt", "*.cmake", "*.gradle", "*.gradle.kts"),
    *("pom.xml", "*.csproj", "*.props", "*.targets"),
)
"""Besides those by which the roots of language servers are known: what they read, or hand on to others."""


def code_below(project: Project, path: str) -> list[str]:
    """Files with symbols at or below a root-relative path.

    Raises:
        PathError
    """
    inside = project.locate(path) if path else ""
    return sorted(
        file
        for file in project.tree.files
        if (not inside or file == inside or file.startswith(inside + "/")) and project.languages.is_code(file)
    )


async def dependents(project: Project, changed: Collection[str], gone: Collection[str]) -> tuple[list[str], str | None]:
    """Code that a change may break, the changed files (some may be gone) among it; and a note on what is left out.

    That is all of the project when a file that says how it is built has changed; else what names a changed file as
    imports do, also by way of files that hand on what they import; what lies in one package with a changed file,
    without naming it; and what holds a name that is `gone`, by which members are found whose type nobody names.
    """
    code = code_below(project, "")
    if any(is_of_build(project, path) for path in changed):
        return code, None
    reached = {name for path in changed for name in _names(project, path)}
    around = await Surroundings.of(project, {*gone, *reached}, with_modules=True)
    of_gone = around.holding(gone)
    packages = {_folder(path) for path in changed if project.languages.language_of(path) in PACKAGES_ARE_FOLDERS}
    found = {path for path in code if path in changed or _is_in(packages, project, path) or path in of_gone}
    while True:
        more = around.holding(reached).intersection(code)
        handed_on = {imported_as(path) for path in more if around.hands_on(path)} - reached
        found |= more
        if not handed_on:
            break
        reached |= handed_on
    left_out = len(code) - len(found)
    note = f"{counted(left_out, 'file')} not checked: they neither import a changed file nor contain a removed name."
    return sorted(found), note if left_out else None


def is_of_build(project: Project, path: str) -> bool:
    """Whether a file says how the project is built."""
    name = path.rpartition("/")[2]
    return project.languages.is_marker(path) or any(fnmatchcase(name, pattern) for pattern in BUILD_FILES)


def _is_in(packages: Collection[str], project: Project, path: str) -> bool:
    return _folder(path) in packages and project.languages.language_of(path) in PACKAGES_ARE_FOLDERS


def _names(project: Project, path: str) -> list[str]:
    """The words by which other files import a file."""
    names = [imported_as(path)]
    if project.languages.language_of(path) in PACKAGES_ARE_FOLDERS:
        names.append(_folder(path).rpartition("/")[2])
    return [name for name in names if name]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
