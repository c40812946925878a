"""Implementations, subtypes and callers of a symbol across several projects: its own, and those that read it.

A sibling's language server that reads the declaring module is asked about the declaration itself: it knows its own
symbols and that one. A sibling in which nothing mentions the declaring package does not read it, and is not asked.
Where types implement what they do not mention (Go), the siblings that read both modules know.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio.to_thread

from serena_central.core.errors import Inapplicable, Unsupported
from serena_central.core.quoting import quoted
from serena_central.files.containing import files_containing
from serena_central.projects.navigation.symbol_hierarchies import UPWARD, Direction, Foreign
from serena_central.projects.navigation.symbol_views import HierarchyNode
from serena_central.projects.project import Project
from serena_central.projects.superrepo.mentions import mentions
from serena_central.projects.superrepo.sibling_code import code_beside
from serena_central.projects.superrepo.sibling_references import Declaration, Declarations
from serena_central.symbols.index import Hit

_STRUCTURAL = frozenset({"go"})
"""Languages in which a type implements an interface of a package that it does not know."""


async def implementations_in(project: Project, declared: Declarations) -> tuple[list[Hit], int, str | None]:
    """Symbols of one of the projects that implement a symbol; how many lie outside of all; a note.

    Raises:
        SerenaCentralError
    """
    found: dict[tuple[str, int], Hit] = {}
    notes: list[str | None] = []
    far = 0
    async for hit, foreign in _asked(project, declared):
        if foreign is None:
            hits, outside, note = await project.navigation.implementations(hit)
            hits = [other for other in hits if (other.path, other.place) != (hit.path, hit.place)]
            far += outside
        else:
            hits, note = await _implementing(project, project, foreign)
        found.update({(other.path, other.place): other for other in hits})
        notes.append(note)
    for hits, note in await _unmentioned(project, declared):
        found.update({(other.path, other.place): other for other in hits})
        notes.append(note)
    return list(found.values()), far, "; ".join(dict.fromkeys(filter(None, notes))) or None


async def _unmentioned(project: Project, declared: Declarations) -> list[tuple[list[Hit], str | None]]:
    """Symbols of a project that implement what nothing in it mentions, as others of the call say."""
    found: list[tuple[list[Hit], str | None]] = []
    async for reader, foreign in _third_parties(project, declared):
        found.append(await _implementing(project, reader, foreign))
    return found


async def _third_parties(project: Project, declared: Declarations) -> AsyncIterator[tuple[Project, Foreign]]:
    """Who can relate a project's types to declarations that nothing in it mentions: projects of the call that mention
    these, and the declarations as they are asked about them."""
    for one in declared.found:
        if one.project is project or not is_structural(one.project, one.path):
            continue
        if await anyio.to_thread.run_sync(_mentioning, project, one) is not None:
            continue
        hit = await one.project.find_one(one.name_path, one.path)
        for reader in declared.asked:
            via = None if reader in (project, one.project) else await anyio.to_thread.run_sync(_mentioning, reader, one)
            if via is not None:
                yield reader, _foreign(hit, one.project, via)


def is_structural(project: Project, path: str) -> bool:
    """Whether a type of a file's language implements interfaces that it does not name."""
    return project.languages.language_of(path) in _STRUCTURAL


async def _implementing(project: Project, reader: Project, foreign: Foreign) -> tuple[list[Hit], str | None]:
    """Symbols of a project that implement one of another, as a third one's server says, or its own."""
    try:
        locations, note = await reader.navigation.implementations_of(foreign)
    except Inapplicable:
        return [], None
    return await project.navigation.places.defined_at(locations), note


async def counterparts(
    readers: Sequence[Project], project: Project, hit: Hit
) -> tuple[list[tuple[Path, int]], list[str]]:
    """Where methods stand that implement one of `project`, or that it implements, outside of that: as the siblings say
    whose servers read it. File and line; and what they could not say.

    Raises:
        LanguageServerError
    """
    declared, found, notes = Declaration(project, hit.name_path, hit.path), set[tuple[Path, int]](), list[str]()
    for reader in readers:
        via = await anyio.to_thread.run_sync(_mentioning, reader, declared)
        if via is None:
            continue
        await reader.fresh()
        try:
            locations, note = await reader.navigation.implementations_of(_foreign(hit, project, via))
        except (Inapplicable, Unsupported):
            continue
        found.update(
            (one.path, one.range.start.line0) for one in locations if not one.path.is_relative_to(project.root)
        )
        if note:
            notes.append(f"{quoted(reader.name)}: {note}.")
    return sorted(found), notes


def _foreign(hit: Hit, home: Project, via: str) -> Foreign:
    return Foreign(via, home.root / hit.path, hit.symbol.name_position, hit.symbol.name, home.root)


async def hierarchy_in(
    project: Project, declared: Declarations, direction: Direction, depth: int
) -> tuple[list[HierarchyNode], str | None]:
    """Callers, callees, super- or subtypes of a symbol, as far as they are of one of the projects, or lead there.

    Raises:
        SerenaCentralError
    """
    nodes: list[HierarchyNode] = []
    notes: list[str | None] = []
    async for hit, foreign in _asked(project, declared):
        if foreign is None:
            more, note = await project.navigation.hierarchies.of(hit, direction, depth)
        elif direction in UPWARD or (direction == "supertypes" and is_structural(project, foreign.via)):
            more, note = await project.navigation.hierarchies.of_foreign(foreign, direction, depth)
        else:
            continue
        nodes += more
        notes.append(note)
    if direction in ("subtypes", "supertypes"):
        async for reader, foreign in _third_parties(project, declared):
            more, note = await reader.navigation.hierarchies.of_foreign(
                foreign, direction, depth, project.navigation.hierarchies
            )
            nodes += [node for node in more if node not in nodes]  # several readers know the same
            notes.append(note)
    return nodes, "; ".join(dict.fromkeys(filter(None, notes))) or None


async def _asked(project: Project, declared: Declarations) -> AsyncIterator[tuple[Hit, Foreign | None]]:
    """The declarations that a project can be asked about, and how it names them where they are another one's."""
    if project.root in declared.failures:
        raise declared.failures[project.root]
    await project.fresh()
    for one in declared.found:
        hit = await one.project.find_one(one.name_path, one.path)
        if one.project is project:
            yield hit, None
            continue
        via = await anyio.to_thread.run_sync(_mentioning, project, one)
        if via is not None:
            yield hit, _foreign(hit, one.project, via)


def _mentioning(project: Project, declared: Declaration) -> str | None:
    """A file of the declaration's language that mentions its package, if there is one. Reads the disk."""
    languages, home = project.languages, declared.project
    code = code_beside(home, [declared.path], project)
    names = mentions(home.root, declared.path, home.languages.language_of(declared.path) or "")
    for name in names:
        found = files_containing(project.root, code, name, encoding=languages.encoding)
        code_files = [path for path in found if languages.is_code(path)]
        if code_files:
            return code_files[0]
    return next(filter(languages.is_code, code), None) if not names else None
