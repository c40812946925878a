"""What other projects have against deleting or renaming a symbol: siblings in a super-repo, and what encloses it."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio

from serena_central.analysis.sibling_uses import Siblings
from serena_central.core.errors import SerenaCentralError
from serena_central.core.progress import report
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.common_names import is_common
from serena_central.projects.navigation.same_hierarchy import type_of
from serena_central.projects.project import Project
from serena_central.projects.superrepo.aliases import exported
from serena_central.projects.superrepo.sibling_definitions import SiblingPlace
from serena_central.projects.superrepo.sibling_hierarchies import counterparts
from serena_central.projects.superrepo.sibling_places import SiblingPlaces, places_in, shown
from serena_central.projects.superrepo.sibling_references import Declaration, module_of, uses_in_sibling
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE

_UNBOUND = frozenset({"python"})
"""Languages without interfaces whose methods a type has to have: overrides are told as what keeps the old name."""

_BOUND = CALLABLE | {SymbolKind.PROPERTY}
"""Kinds of members that interfaces declare and types implement by name."""

SIBLING_S = 60.0
"""How long one sibling may take: its server may have to start, and to load it."""

PLACES_LISTED = 10
"""Places that one sentence names of each sibling."""


class UsedBySiblings(NamedTuple):
    """`sentences` are about the modules of the super-repo that refer to a symbol, or that may, and about what encloses
    the project. `namesakes`: where those that mention its package give symbols of their own the name of a type's
    member, as overrides do. `strings`: where its name stands in strings there. `enclosing`: the root that holds such
    users, and the project itself."""

    sentences: list[str]
    namesakes: str = ""
    strings: str = ""
    enclosing: Path | None = None


async def used_by_siblings(
    project: Project, siblings: Siblings, hit: Hit, *, besides: Collection[Path] = ()
) -> UsedBySiblings:
    """What the modules of the super-repo say, and what encloses the project, `besides` those of some roots."""
    found, sentences = await _asked(project, siblings, hit, besides)
    common = is_common(project.languages.language_of(hit.path), hit.symbol.name)
    enclosing = siblings.enclosing(project)
    around = next((one for one in found if enclosing and one.root == enclosing.root), None)
    told: list[str] = []
    if around is not None:
        told = _around(around.root, found[around], common=common)
    name = Declaration(project, hit.name_path, hit.path).name
    told += await _around_by_words(project, siblings, {hit.path: {name}})
    modules = {other.name: places for other, places in found.items() if other is not around}
    used = {name: places.references for name, places in modules.items() if places.references}
    unclear = {
        name: _unclear(places, common=common)
        for name, places in modules.items()
        if name not in used and _unclear(places, common=common)
    }
    if used:
        sentences.append(f"Other modules of the super-repo reference it: {', '.join(used)} ({_some(used)}).")
    if unclear:
        sentences.append(
            f"Its name occurs in {', '.join(unclear)}, where it may or may not mean this symbol ({_some(unclear)})."
        )
    mentioning = {other.name: places for other, places in found.items() if places.mentions}
    namesakes = {name: places.definitions for name, places in mentioning.items() if places.definitions}
    strings = {name: places.strings for name, places in mentioning.items() if places.strings}
    return UsedBySiblings(
        [*sentences, *told],
        _some(namesakes) if type_of(hit) else "",
        _some(strings),
        enclosing.root if enclosing and told else None,
    )


def _unclear(places: SiblingPlaces, *, common: bool) -> list[SiblingPlace]:
    """Where a name may mean a symbol, of places that are worth telling."""
    return [*places.possible, *places.unasked] if places.mentions or not common else []


def _around(root: Path, places: SiblingPlaces, *, common: bool) -> list[str]:
    """What the open project around a symbol's own says of it."""
    if places.references:
        return [f"Code around this project references it: {_first(_below(root, places.references))}."]
    unclear = _unclear(places, common=common)
    return [_may_mean(_below(root, unclear))] if unclear else []


def _below(root: Path, places: Sequence[SiblingPlace]) -> list[str]:
    return [f"{root}/{line}" for line in shown(places)]


def _may_mean(places: Sequence[str]) -> str:
    return f"Its name occurs around this project, where it may or may not mean this symbol: {_first(places)}."


async def _around_by_words(project: Project, siblings: Siblings, names: Mapping[str, Collection[str]]) -> list[str]:
    """The same of files that no server reads: what is around and not open, or closed by rules, which are not named.
    `names` by file of the project."""
    around = await siblings.candidates_around(project, names)
    if around.error:
        return [f"Cannot determine whether code around this project, in {around.root}, references it: {around.error}."]
    files = [f"{around.root}/{file}" for group in around.candidates for file in (*group.files, *group.left_out)]
    closed = sum(len(group.files) + len(group.left_out) for group in around.closed)
    told: list[str] = []
    if files:
        told = [
            _may_mean(files),
            f'{around.root} is not open, so its files were compared as words. project="{around.root}" opens it.',
        ]
    if closed:
        where = counted(closed, "file")
        told.append(f"Its name occurs in {where} around this project that permission rules close, and may mean it.")
    return told


async def _asked(
    project: Project, siblings: Siblings, hit: Hit, besides: Collection[Path]
) -> tuple[dict[Project, SiblingPlaces], list[str]]:
    """Where siblings name a symbol; and sentences about those that could not say, or not all."""
    others, missing = await siblings.of(project, besides=besides)
    sentences = [f"References in {root} can't be searched: {error}" for root, error in missing.items()]
    found: dict[Project, SiblingPlaces] = {}
    for other in others:
        report(f"searching {other.name} for references")
        try:
            with anyio.fail_after(SIBLING_S):
                places = found[other] = await places_in(other, Declaration(project, hit.name_path, hit.path))
        except (SerenaCentralError, TimeoutError) as error:
            why = str(error) or f"it took longer than {SIBLING_S:g} s"
            sentences.append(f"Cannot determine whether {quoted(other.name)} references it: {why}")
            continue
        if places.note:
            sentences.append(f"{quoted(other.name)}: {places.note}.")
    return found, sentences


async def other_names(project: Project, hit: Hit) -> frozenset[str]:
    """Words by which code elsewhere may use a symbol without naming it: those that its own file exports it as, and one
    that an import of the file has, if it is a default export.

    Raises:
        PathError
    """
    if hit.symbol.container >= 0:
        return frozenset()
    name = Declaration(project, hit.name_path, hit.path).name
    names = exported(name, [(await project.read(hit.path)).text.content])
    return frozenset((names.plain - {name}) | ({module_of(hit.path)} if names.default else set[str]()))


async def used_under_other_names(project: Project, siblings: Siblings, hit: Hit) -> list[str]:
    """Sentences about other projects that may use a symbol by its `other_names`.

    Raises:
        PathError
    """
    words = await other_names(project, hit)
    if not words:
        return []
    found = await used_in_open_projects(project, siblings, hit)
    return found + await _around_by_words(project, siblings, {hit.path: words})


async def used_in_open_projects(project: Project, siblings: Siblings, hit: Hit) -> list[str]:
    """The same of those that servers read alone."""
    declared = Declaration(project, hit.name_path, hit.path)
    sentences: list[str] = []
    for other in (await siblings.of(project))[0]:
        try:
            with anyio.fail_after(SIBLING_S):
                found = await uses_in_sibling(other, declared)
        except (SerenaCentralError, TimeoutError) as error:
            why = str(error) or f"it took longer than {SIBLING_S:g} s"
            sentences.append(f"Cannot determine whether {quoted(other.name)} references it under another name: {why}")
            continue
        if lines := list(dict.fromkeys(f"{use.path}:{use.range.start.line0}" for use in found.references)):
            sentences.append(f"{quoted(other.name)} references it under another name: {_first(lines)}.")
        elif found.note:
            sentences.append(f"{quoted(other.name)} may reference it under another name: {found.note}.")
    return sentences


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
        parts.append(f"{quoted(name)}: {_first(shown(places))}")
    return "; ".join(parts)


def _first(lines: Sequence[str]) -> str:
    more = f" and {len(lines) - PLACES_LISTED} more" if len(lines) > PLACES_LISTED else ""
    return f"{', '.join(lines[:PLACES_LISTED])}{more}"
