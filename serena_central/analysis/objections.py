"""Objections to deleting a symbol without references in its own project: keep rules, and sibling projects."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio

from serena_central.analysis.composed_names import put_together
from serena_central.analysis.interfaces import Interfaces
from serena_central.analysis.keep_rules import KeepReason, LanguageFacts, kept
from serena_central.analysis.other_language_mentions import Named, named_elsewhere
from serena_central.analysis.positional_fields import filled_by_position
from serena_central.analysis.published import Published
from serena_central.analysis.sibling_uses import Siblings
from serena_central.core.errors import PathError, SerenaCentralError, listed
from serena_central.core.progress import report
from serena_central.core.quoting import quoted
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.common_names import is_common, is_unusual
from serena_central.projects.navigation.same_hierarchy import type_of
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_definitions import SiblingPlace
from serena_central.projects.superrepo.sibling_hierarchies import counterparts
from serena_central.projects.superrepo.sibling_places import SiblingPlaces, places_in, shown
from serena_central.projects.superrepo.sibling_references import Declaration
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE, TYPES

_UNBOUND = frozenset({"python"})
"""Languages without interfaces whose methods a type has to have: overrides are told as what keeps the old name."""

_BOUND = CALLABLE | {SymbolKind.PROPERTY}
"""Kinds of members that interfaces declare and types implement by name."""

SIBLING_S = 60.0
"""How long one sibling may take: its server may have to start, and to load it."""

PLACES_LISTED = 10
"""Places that one sentence names of each sibling."""


class KeepRules:
    """The rules of `keep_rules` with what they must know of one project. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._libraries = _libraries(project.tree.files)
        self._interfaces = Interfaces(project)
        self._named: dict[tuple[str, int], Named] = {}
        self._published = Published(project.tree.files, self._read)

    async def kept(self, hit: Hit, text: Text) -> KeepReason | None:
        """Why a symbol counts as used; None if no rule says so."""
        name = self._project.languages.language_of(hit.path) or ""
        found = await self.kept_by_text(hit, text)
        if found is None and name == "go" and (reason := await self._interfaces.implemented(hit)):
            return KeepReason(reason)
        if found is None and (files := (await self.named_elsewhere(hit)).certain):
            return KeepReason(f"it is named in {listed(files)}")
        is_class = name == "python" and hit.symbol.kind in TYPES
        if found is None and is_class and await self._project.navigation.possible.is_registered(hit):
            return KeepReason("its base class is told of subclasses (__init_subclass__)")
        if found is None and (reason := await put_together(self._project, hit)):
            return KeepReason(reason)
        return found

    async def kept_by_text(self, hit: Hit, text: Text) -> KeepReason | None:
        """The same by those rules alone for which no server is asked and no file is searched."""
        name = self._project.languages.language_of(hit.path) or ""
        overrides = await self._project.navigation.possible.may_override(hit)
        in_interface = await self._interfaces.hold(hit.symbol.name)
        language = LanguageFacts(name, _below(hit.path, self._libraries), in_interface, overrides)
        return kept(hit, text, language, self._project.settings.validation)

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
    named = (await named_elsewhere(project, hit)).possible if is_unusual(hit.symbol.name) else []
    if named:
        against.append(f"Its name occurs in {listed(named)}, in another language, and may mean this symbol.")
    if filled := await filled_by_position(project, hit):
        against.append(filled)
    against += (await used_by_siblings(project, siblings, hit)).sentences
    return against + await bound_to(project, siblings, hit)


async def reason_to_keep(project: Project, hit: Hit) -> str | None:
    """Why a symbol may be used by its name from outside of its project.

    Raises:
        PathError
    """
    rules, text = KeepRules(project), (await project.read(hit.path)).text
    found = await rules.kept(hit, text)
    if found is None and rules.is_public(hit, text):
        return "the package exports it to its users"
    return found.reason if found else None


class UsedBySiblings(NamedTuple):
    """`sentences` are about the modules of the super-repo that refer to a symbol, or that may. `namesakes`: where
    modules that mention its package give symbols of their own the name of a type's member, as overrides do."""

    sentences: list[str]
    namesakes: str = ""


async def used_by_siblings(
    project: Project, siblings: Siblings, hit: Hit, *, besides: Collection[Path] = ()
) -> UsedBySiblings:
    """What the modules of the super-repo say, `besides` those of some roots."""
    found, sentences = await _asked(project, siblings, hit, besides)
    common = is_common(project.languages.language_of(hit.path), hit.symbol.name)
    used = {name: places.references for name, places in found.items() if places.references}
    unclear = {
        name: [*places.possible, *places.unasked]
        for name, places in found.items()
        if name not in used and (places.mentions or not common) and (places.possible or places.unasked)
    }
    if used:
        sentences.append(f"Other modules of the super-repo reference it: {', '.join(used)} ({_some(used)}).")
    if unclear:
        sentences.append(
            f"Its name occurs in {', '.join(unclear)}, where it may or may not mean this symbol ({_some(unclear)})."
        )
    namesakes = {name: places.definitions for name, places in found.items() if places.mentions and places.definitions}
    return UsedBySiblings(sentences, _some(namesakes) if type_of(hit) else "")


async def _asked(
    project: Project, siblings: Siblings, hit: Hit, besides: Collection[Path]
) -> tuple[dict[str, SiblingPlaces], list[str]]:
    """Where siblings name a symbol; and sentences about those that could not say, or not all."""
    others, missing = await siblings.of(project, besides=besides)
    sentences = [f"{root} can't be searched for references: {error}" for root, error in missing.items()]
    found: dict[str, SiblingPlaces] = {}
    for other in others:
        report(f"searching {other.name} for references")
        try:
            with anyio.fail_after(SIBLING_S):
                places = found[other.name] = await places_in(other, Declaration(project, hit.name_path, hit.path))
        except (SerenaCentralError, TimeoutError) as error:
            why = str(error) or f"it took longer than {SIBLING_S:g} s"
            sentences.append(f"Cannot determine whether {quoted(other.name)} references it: {why}")
            continue
        if places.note:
            sentences.append(f"{quoted(other.name)}: {places.note}.")
    return found, sentences


async def bound_to(project: Project, siblings: Siblings, hit: Hit, *, also: Collection[Path] = ()) -> list[str]:
    """Sentences about members of other modules that implement one, or that it implements: all must have one name.
    Of the super-repo, and of the open projects at the roots `also`."""
    language = project.languages.language_of(hit.path)
    if language in _UNBOUND or hit.symbol.kind not in _BOUND or hit.symbol.container < 0:
        return []
    others, _ = await siblings.of(project)
    others += [one for one in siblings.opened_at(also) if one not in (*others, project)]
    try:
        with anyio.fail_after(SIBLING_S):
            places, sentences = await counterparts(others, project, hit)
    except (SerenaCentralError, TimeoutError) as error:
        why = str(error) or f"it took longer than {SIBLING_S:g} s"
        return [f"Whether other modules implement it, or declare it in an interface, can't be told: {why}"]
    by_module: dict[str, list[str]] = {}
    for path, line0 in places:
        homes = [one for one in others if path.is_relative_to(one.root)]
        if homes:
            home = max(homes, key=lambda one: len(one.root.parts))
            by_module.setdefault(home.name, []).append(f"{path.relative_to(home.root)}:{line0}")
    if by_module:
        where = "; ".join(f"{quoted(name)}: {', '.join(lines[:PLACES_LISTED])}" for name, lines in by_module.items())
        sentences.append(f"It implements members of other modules, or is implemented by them: {where}.")
    return sentences


def _some(by_module: Mapping[str, Sequence[SiblingPlace]]) -> str:
    parts: list[str] = []
    for name, places in by_module.items():
        lines = shown(places)
        more = f" and {len(lines) - PLACES_LISTED} more" if len(lines) > PLACES_LISTED else ""
        parts.append(f"{quoted(name)}: {', '.join(lines[:PLACES_LISTED])}{more}")
    return "; ".join(parts)


def _libraries(files: Collection[str]) -> list[str]:
    """Folders of crates that are libraries."""
    return [str(PurePosixPath(path).parent) for path in files if path.endswith("src/lib.rs")]


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
