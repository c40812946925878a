"""Objections to deleting a symbol without references in its own project: keep rules, and other projects."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from serena_central.analysis.code_in_comments import named_in_comments
from serena_central.analysis.composed_names import ComposedNames
from serena_central.analysis.converted_structs import needed_to_convert
from serena_central.analysis.crates import Crates
from serena_central.analysis.framework_files import FrameworkFiles, exported
from serena_central.analysis.go_lookups import GoLookups
from serena_central.analysis.interfaces import Interfaces
from serena_central.analysis.keep_rules import KeepReason, LanguageFacts, kept
from serena_central.analysis.loaded_by_name import LoadedByName
from serena_central.analysis.other_language_mentions import (
    Named,
    NamedAround,
    may_mean,
    named_around,
    named_elsewhere,
    used_as_property,
)
from serena_central.analysis.outer_names import used_by_outer_names
from serena_central.analysis.positional_fields import filled_by_position
from serena_central.analysis.published import Published
from serena_central.analysis.python_lookups import PythonLookups
from serena_central.analysis.sibling_objections import bound_to, used_by_siblings, used_under_other_names
from serena_central.analysis.sibling_uses import Siblings
from serena_central.analysis.specializations import specialized
from serena_central.analysis.structural_members import demanded_by_type
from serena_central.analysis.whole_modules import WholeModules
from serena_central.core.errors import PathError, listed
from serena_central.core.text import Text
from serena_central.projects.navigation.common_names import is_unusual
from serena_central.projects.navigation.same_hierarchy import SameHierarchy
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_SCRIPTS = ("javascript", "typescript")

REGISTERED_UNKNOWN = "whether its base class is told of subclasses, or asked for them, could not be determined"


class KeepRules:
    """The rules of `keep_rules` with what they must know of one project. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._libraries = _libraries(project.tree.files)
        self._crates = Crates(project.tree.files, self._read)
        self._interfaces = Interfaces(project)
        self._named: dict[tuple[str, int], Named] = {}
        self._published = Published(project.tree.files, self._read)
        self._loaded = LoadedByName(project)
        self._composed = ComposedNames(project)
        self._lookups = PythonLookups(project)
        self._go_lookups = GoLookups(project)
        self._whole = WholeModules(project)
        self._frameworks = FrameworkFiles(project.tree.files, self._read)
        self._hierarchies: dict[str, SameHierarchy] = {}

    async def kept(self, hit: Hit, text: Text) -> KeepReason | None:
        """Why a symbol counts as used; None if no rule says so."""
        found = await self._kept(hit, text)
        if found is None or found.is_known:
            return found
        unread = await self._project.navigation.possible.unread_holders(hit.symbol.name)
        if not unread:
            return found
        why = self._project.languages.standing(unread[0]).rstrip(".")
        return found._replace(reason=f"{found.reason}, since the symbols of {listed(unread)} are not known: {why}")

    async def _kept(self, hit: Hit, text: Text) -> KeepReason | None:
        name = self._project.languages.language_of(hit.path) or ""
        found = await self.kept_by_text(hit, text)
        if found is not None and found.is_known:
            return found
        if name == "go" and (reason := await self._interfaces.implemented(hit)):
            return KeepReason(reason)
        if files := (await self.named_elsewhere(hit)).certain:
            return KeepReason(f"it is named in {listed(files)}", is_listed=True)
        is_class = name == "python" and hit.symbol.kind in TYPES
        registered = await self._project.navigation.possible.is_registered(hit) if is_class else False
        if registered:
            return KeepReason(
                "its base class is told of its subclasses (__init_subclass__, metaclass) or asked for them"
            )
        composed = await self._composed.reason(hit) or await used_as_property(self._project, hit)
        if reason := composed or await named_in_comments(self._project, hit, name):
            return KeepReason(reason)
        if reason := await self._looked_up(name, hit, text):
            return KeepReason(reason)
        unnamed = await used_by_outer_names(self._project, hit) or await specialized(self._project, hit)
        if reason := unnamed or await demanded_by_type(self._project, hit, text):
            return KeepReason(reason, by_name=False)
        if registered is None:
            return KeepReason(REGISTERED_UNKNOWN, is_known=False)
        holder = Hit(hit.path, hit.file, hit.symbol.container)
        if found is None and name == "python" and await self._loaded.may_call(hit):
            of_class = await self.kept(holder, text)
            return of_class and of_class._replace(reason=f"no code refers to its class, of which {of_class.reason}")
        return found

    async def kept_by_text(self, hit: Hit, text: Text) -> KeepReason | None:
        """The same by those rules alone for which no server is asked and no file is searched."""
        name = self._project.languages.language_of(hit.path) or ""
        overrides = await self._hierarchy(name).may_override(hit)
        if overrides is None:
            del self._hierarchies[name]  # the next question may find it out
        in_interface = await self._interfaces.hold(hit.symbol.name)
        is_rust = name == "rust"
        library = self._crates.in_library(hit.path) if is_rust else _is_below(hit.path, self._libraries)
        language = LanguageFacts(name, library, in_interface, overrides)
        found = kept(hit, text, language, self._project.settings.validation)
        if found is None and name in _SCRIPTS and (reason := self._frameworks.reason(hit.path)):
            its = exported(hit, text)
            return KeepReason(reason, by_name=not its.is_default) if its else None
        if found is None and name == "python" and (inner := _inner_class(hit)):
            of_class = await self.kept_by_text(inner, text)
            return of_class and of_class._replace(
                reason=f"it is part of {inner.name_path}, which is kept: {of_class.reason}"
            )
        return found

    def _hierarchy(self, language: str) -> SameHierarchy:
        if language not in self._hierarchies:
            self._hierarchies[language] = self._project.navigation.possible.hierarchy(language)
        return self._hierarchies[language]

    async def _looked_up(self, language: str, hit: Hit, text: Text) -> str | None:
        """What may use a symbol by a name that no code writes, as a clause."""
        match language:
            case "go":
                return await self._go_lookups.reason(hit)
            case "python":
                looked_up = self._lookups.reason
                return await self._loaded.reason(hit) or await looked_up(hit, text, self._hierarchy("python"))
            case "javascript" | "typescript":
                return await self._whole.reason(hit, text)
            case _:
                return None

    async def named_elsewhere(self, hit: Hit) -> Named:
        """Files of other languages that name a symbol."""
        key = hit.path, hit.place
        if key not in self._named:
            self._named[key] = await named_elsewhere(self._project, hit)
        return self._named[key]

    def is_public(self, hit: Hit, text: Text) -> bool:
        """Whether others may use a symbol by its name, unless the settings exclude that."""
        if self._project.settings.validation.exported == "report":
            return False
        return self._published.is_public(hit, text, self._project.languages.language_of(hit.path) or "")

    def _read(self, file: str) -> str:
        try:
            return self._project.languages.read_text(self._project.root / file).content
        except PathError:
            return ""


async def objections(project: Project, siblings: Siblings, hit: Hit) -> list[str]:
    """Sentences about why a symbol may be in use although nothing in its project refers to it.

    Raises:
        PathError
    """
    reason = await reason_to_keep(project, hit)
    against = [f"It may be referenced from elsewhere: {reason}."] if reason else []
    if named := [path for path in (await named_elsewhere(project, hit)).possible if may_mean(project, hit, path)]:
        against.append(f"Its name occurs in {listed(named)}, in another language, and may mean this symbol.")
    if filled := await filled_by_position(project, hit):
        against.append(filled)
    if converted := await needed_to_convert(project, hit):
        against.append(converted)
    against += _about_files_around(hit, await named_around(project, siblings, [hit]))
    elsewhere = await used_by_siblings(project, siblings, hit)
    against += elsewhere.sentences or await used_under_other_names(project, siblings, hit)
    if elsewhere.strings and is_unusual(hit.symbol.name):
        against.append(f"Its name occurs in strings elsewhere: {elsewhere.strings}.")
    return against + await bound_to(project, siblings, hit)


def _about_files_around(hit: Hit, around: NamedAround) -> list[str]:
    named = around.of(hit)
    if around.error:
        return [f"Cannot determine whether files of other languages around this project name it: {around.error}."]
    if named.certain:
        return [f"It is named in {listed(named.certain)}, around this project."]
    if named.possible and is_unusual(hit.symbol.name):
        return [f"Its name occurs in {listed(named.possible)}, in another language, and may mean this symbol."]
    return []


async def reason_to_keep(project: Project, hit: Hit, *, by_name: bool = False) -> str | None:
    """Why a symbol may be used from outside of its project; `by_name`: by its name alone, which a rename
    does not tell by itself.

    Raises:
        PathError
    """
    rules, text = KeepRules(project), (await project.read(hit.path)).text
    found = await rules.kept(hit, text)
    if by_name and found and (found.is_listed or not found.by_name):
        found = None
    if found is None and rules.is_public(hit, text):
        return "the package exports it to its users"
    return found.reason if found else None


def _inner_class(hit: Hit) -> Hit | None:
    """The class within a class that a symbol is directly part of: the outer one's base may read it (`Meta`)."""
    holder = Hit(hit.path, hit.file, hit.symbol.container) if hit.symbol.container >= 0 else None
    if holder is None or holder.symbol.kind not in TYPES or holder.symbol.container < 0:
        return None
    return holder if hit.file.symbols[holder.symbol.container].kind in TYPES else None


def _libraries(files: Collection[str]) -> list[str]:
    """Folders of crates that are libraries."""
    return [str(PurePosixPath(path).parent) for path in files if path.endswith("src/lib.rs")]


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
