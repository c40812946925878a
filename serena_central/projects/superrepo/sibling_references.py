"""References to a symbol across several projects: the one that declares it, and its siblings.

A language server knows one project, so that its references end there. For a sibling, files that hold the name are
candidates if anything in the sibling mentions the declaring package; whether a candidate means the symbol, the
sibling's own language server says: its definition must lead to the declaration. What it can't resolve is counted and
never reported as a use.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.errors import AmbiguousSymbol, DeadlineExceeded, PathError, SerenaCentralError, SymbolNotFound
from serena_central.core.quoting import quoted
from serena_central.core.text import Position, Range
from serena_central.core.words import counted
from serena_central.files.containing import files_containing
from serena_central.files.listing import list_folder
from serena_central.lsp.answers import Location
from serena_central.projects.navigation.known_places import KnownPlaces, or_places, references_of
from serena_central.projects.navigation.project_places import is_below
from serena_central.projects.navigation.symbol_views import References
from serena_central.projects.project import Project
from serena_central.projects.superrepo.aliases import DEFAULT, Aliases, bound, exported, pattern
from serena_central.projects.superrepo.mentions import mentions
from serena_central.projects.superrepo.sibling_code import code_beside, is_around
from serena_central.projects.superrepo.sibling_definitions import SiblingPlace, declared_at, places_of, resolve_places

FINDING_S = 8.0
"""How long one project may take to say whether it declares the symbol, before the others are asked without it."""

PLACES_ASKED = 300
"""Places of one name in one sibling whose meaning is asked for: a definition takes some milliseconds."""

MOST_DECLARATIONS = 5
"""Projects that declare the same name, beyond which nobody can mean all of them."""


class Declaration(NamedTuple):
    """A symbol in the project that declares it. `path` is root-relative."""

    project: Project
    name_path: str
    path: str

    @property
    def name(self) -> str:
        return self.name_path.rpartition("/")[2].partition("[")[0]

    async def is_at(self, locations: Sequence[Location]) -> bool:
        """Whether one of the places is this declaration."""
        hits = [await declared_at(self.project, location) for location in locations]
        return any(hit and (hit.path, hit.name_path) == (self.path, self.name_path) for hit in hits)


class Declarations(NamedTuple):
    """Who declares the symbol that a call means. `failures`: roots of projects that could not tell, and why."""

    found: Sequence[Declaration]
    failures: Mapping[Path, SerenaCentralError] = MappingProxyType({})
    asked: Sequence[Project] = ()
    """All projects of the call."""

    async def uses_in(self, project: Project, within: str = "") -> References:
        """Uses in one of the projects, of all declarations, by file and position; possible ones at or below `within`.

        Raises:
            SerenaCentralError: the project could not tell whether it declares the symbol, or can't answer.
        """
        if project.root in self.failures:
            raise self.failures[project.root]
        parts = [
            await (_own(one, within) if one.project is project else uses_in_sibling(project, one, within))
            for one in self.found
        ]
        uses = {(use.path, use.range): use for part in parts for use in part.references}
        notes = dict.fromkeys(part.note for part in parts if part.note)
        caveats = dict.fromkeys(part.caveat for part in parts if part.caveat)
        return References(
            [uses[place] for place in sorted(uses)],
            sum(part.outside for part in parts),
            [gap for part in parts for gap in part.gaps],
            "; ".join(notes) or None,
            "; ".join(caveats) or None,
            next((part.possible for part in parts if part.possible is not None), None),  # a project's server knows one
        )


async def declarations(projects: Sequence[Project], name_path: str, within: str) -> Declarations:
    """Asks all projects at the same time which of them declares a symbol, in `within` if that is not empty.

    Raises:
        SymbolNotFound: none does, and none failed.
        AmbiguousSymbol: too many do.
    """
    found: dict[Path, Declaration] = {}
    failures: dict[Path, SerenaCentralError] = {}

    async def ask(project: Project) -> None:
        failures[project.root] = DeadlineExceeded(f"Finding {name_path!r} in {quoted(project.name)}", FINDING_S)
        with anyio.move_on_after(FINDING_S):
            try:
                hit = await project.find_one(name_path, within)
                found[project.root] = Declaration(project, hit.name_path, hit.path)
            except (SymbolNotFound, PathError):
                pass
            except SerenaCentralError as error:
                failures[project.root] = error
                return
            del failures[project.root]

    async with anyio.create_task_group() as tasks:
        for project in projects:
            tasks.start_soon(ask, project)
    declaring = [found[project.root] for project in projects if project.root in found]
    if not declaring and not failures:
        raise SymbolNotFound(name_path, f"any of {len(projects)} projects")
    if len(declaring) > MOST_DECLARATIONS:
        raise AmbiguousSymbol(name_path, [f"{one.project.root / one.path}: {one.name_path}" for one in declaring])
    return Declarations(declaring, failures, projects)


async def _own(declared: Declaration, within: str) -> References:
    hit = await declared.project.find_one(declared.name_path, declared.path)
    return await references_of(declared.project.navigation, hit, within)


async def uses_in_sibling(sibling: Project, declared: Declaration, within: str = "") -> References:
    """Uses of a symbol in a sibling, under whatever name it knows it; at or below `within`.

    Raises:
        SerenaCentralError
    """
    await sibling.fresh()
    names = exported(declared.name, [text async for _, text in _texts(declared.project, await _naming(declared))])
    files, packages = await anyio.to_thread.run_sync(_candidates, sibling, declared, names)
    asked: list[SiblingPlace] = []
    left = 0
    async for path, text in _texts(sibling, [path for path in files if is_below(path, within)]):
        words = bound(text, names, packages)
        async for place in places_of(sibling, [path], pattern(words, names), words | {DEFAULT}):
            if len(asked) < PLACES_ASKED:
                asked.append(place)
            else:
                left += 1

    async def look() -> KnownPlaces:
        return KnownPlaces((f"{place.path}:{place.position.line0}" for place in asked), left)

    resolved = await or_places(declared.name_path, lambda: resolve_places(sibling, asked), look)
    unknown = " or ".join(sorted({place.name for place in resolved.unresolved}))
    notes = [
        resolved.note,
        f"{declared.name} occurs in {left + len(asked)} places, of which {len(asked)} were examined" if left else None,
        f"{unknown} cannot be resolved in {counted(len(resolved.unresolved), 'place')}"
        if resolved.unresolved
        else None,
    ]
    uses = [_range(place) for place, locations in resolved.found if await declared.is_at(locations)]
    views, gaps = await sibling.navigation.places.views(sorted(set(uses)))
    return References(views, 0, gaps, "; ".join(filter(None, notes)) or None)


async def _naming(declared: Declaration) -> list[str]:
    """Files of the declaring project that hold the symbol's name."""
    project = declared.project
    return await anyio.to_thread.run_sync(
        lambda: files_containing(
            project.root,
            code_beside(project, [declared.path], project),
            declared.name,
            encoding=project.languages.encoding,
        )
    )


async def _texts(project: Project, files: Iterable[str]) -> AsyncIterator[tuple[str, str]]:
    for path in files:
        try:
            yield path, (await project.read(path)).text.content
        except PathError:
            continue


def _range(place: SiblingPlace) -> tuple[str, Range]:
    position = place.position
    return place.path, Range(position, Position(position.line0, position.column + len(place.name)))


def is_named_in(root: Path, declared: Declaration) -> bool:
    """Whether files of a module that is not open hold a declared name, and any mentions its package. Reads the disk;
    None if there are more files than are listed."""
    languages = declared.project.languages
    spec, language = languages.spec_for(declared.path), languages.language_of(declared.path) or ""
    listed = list_folder(root, "", recursive=True, ignored=_is_installed, hidden=lambda _path: False)
    code = [path for path in listed.files if spec is not None and languages.spec_for(path) == spec]
    names = mentions(declared.project.root, declared.path, language)
    return listed.truncated or (
        bool(files_containing(root, code, declared.name))
        and (not names or any(files_containing(root, code, name) for name in names))
    )


def _is_installed(path: str) -> bool:
    name = path.rstrip("/").rpartition("/")[2]
    return name.startswith(".") or name in ("node_modules", "target", "vendor")


def holding(sibling: Project, declared: Declaration, name: str) -> list[str]:
    """Files of the sibling that hold the name, those that mention the declaring package first. Reads the disk."""
    return _candidates(sibling, declared, Aliases(frozenset({name}), default=False))[0]


def _candidates(sibling: Project, declared: Declaration, names: Aliases) -> tuple[list[str], list[str]]:
    """Files of the sibling that may name the symbol, those that mention the declaring package first; and the words of
    which an import of that has one. Reads the disk."""
    language = declared.project.languages.language_of(declared.path) or ""
    code = code_beside(declared.project, [declared.path], sibling)

    def containing(words: Iterable[str]) -> dict[str, None]:
        encoding = sibling.languages.encoding
        return {path: None for word in words for path in files_containing(sibling.root, code, word, encoding=encoding)}

    packages = mentions(declared.project.root, declared.path, language)
    found = containing(sorted(names.plain))
    if names.default and not packages:
        return list(found | containing([module_of(declared.path)])), [module_of(declared.path)]
    if not packages or not (found or names.default):
        return list(found), packages
    if around := is_around(declared.project, sibling.root):
        packages = [*packages, module_of(declared.path)]
    mentioning = containing(packages)
    if names.default:
        found |= mentioning
    return sorted(found, key=lambda path: path not in mentioning) if mentioning or around else [], packages


def module_of(path: str) -> str:
    """A word that an import of a file by its path must contain."""
    file = PurePosixPath(path)
    stem = file.name.partition(".")[0]
    return file.parent.name if stem == "index" and file.parent.name else stem
