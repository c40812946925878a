"""What speaks against deleting a symbol that its own project does not refer to: keep rules, and sibling projects."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from serena_central.analysis.liveness import Kept, Language, kept
from serena_central.analysis.siblings import Siblings, told_by_siblings
from serena_central.analysis.uses import Definition
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit


class KeepRules:
    """The rules of `liveness` with what they must know of one project. Made anew for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._libraries = _libraries(project.tree.files)
        self._interface_methods = _interface_methods(project)

    async def kept(self, hit: Hit, text: Text) -> Kept | None:
        """Why a symbol counts as used; None if no rule says so."""
        name = self._project.languages.language_of(hit.path) or ""
        overrides = await self._project.relations.may_override(hit)
        language = Language(name, _below(hit.path, self._libraries), self._interface_methods, overrides)
        return kept(hit, text, language, self._project.settings.validation)


async def objections(project: Project, siblings: Siblings, hit: Hit) -> list[str]:
    """Sentences about why a symbol may be in use although nothing in its project refers to it. Raises PathError."""
    reason = await KeepRules(project).kept(hit, (await project.read(hit.path)).text)
    kept_for = [f"It may be used from elsewhere: {reason.reason}."] if reason else []
    return [*kept_for, *await used_by_siblings(project, siblings, hit)]


async def used_by_siblings(project: Project, siblings: Siblings, hit: Hit) -> list[str]:
    """Sentences about the modules of the super-repo that refer to a symbol, or that may."""
    definition = Definition(hit.path, hit.name_path, hit.symbol.kind, hit.symbol.name_line)
    told = await told_by_siblings(project, siblings, [definition])
    found = list(told.remarks)
    if (hit.path, hit.name_path) in told.used:
        found.append(f"Other modules of the super-repo use it: {', '.join(sorted(told.users))}.")
    elif told.untold:
        where = ", ".join(sorted({sibling for places in told.untold.values() for sibling in places}))
        found.append(f"Its name stands in {where}, where nobody can tell whether it means this symbol.")
    return found


def _libraries(files: Collection[str]) -> list[str]:
    """Folders of crates that are libraries."""
    return [str(PurePosixPath(path).parent) for path in files if path.endswith("src/lib.rs")]


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _interface_methods(project: Project) -> set[str]:
    """Names that interfaces of the project hold: in Go and others a method need not say that it implements one."""
    names: set[str] = set()
    for path in project.index.paths():
        symbols = project.index.file(path).symbols
        names.update(
            symbol.name
            for symbol in symbols
            if symbol.container >= 0 and symbols[symbol.container].kind == SymbolKind.INTERFACE
        )
    return names
