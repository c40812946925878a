"""Uses of a symbol over several projects at once: in the one that declares it, and in its siblings.

A language server knows one project, so that its references end there. For a sibling, files that hold the name are
candidates if anything in the sibling mentions the declaring package; whether a candidate means the symbol, the
sibling's own language server says: its definition must lead to the declaration. What it can't resolve is counted and
never reported as a use.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.errors import (
    AmbiguousSymbol,
    DeadlineExceeded,
    LanguageServerError,
    PathError,
    SerenaCentralError,
    SymbolNotFound,
)
from serena_central.core.text import Position, Range
from serena_central.files.search import files_containing
from serena_central.lsp.answers import Location
from serena_central.projects.project import Project
from serena_central.projects.superrepo.mentions import mentions
from serena_central.projects.views import References

FINDING_S = 8.0
"""How long one project may take to say whether it declares the symbol, before the others are asked without it."""

PLACES_ASKED = 300
"""Places of one name in one sibling whose meaning is asked for: a definition takes some milliseconds."""

ASKED_AT_ONCE = 4

MOST_DECLARATIONS = 5
"""Projects that declare the same name, beyond which nobody can mean all of them."""


class Declaration(NamedTuple):
    """A symbol in the project that declares it. `path` is root-relative."""

    project: Project
    name_path: str
    path: str


class _Place(NamedTuple):
    path: str
    position: Position


class Declarations(NamedTuple):
    """Who declares the symbol that a call means. `failures`: roots of projects that could not tell, and why."""

    found: Sequence[Declaration]
    failures: Mapping[Path, SerenaCentralError] = MappingProxyType({})

    async def uses_in(self, project: Project) -> References:
        """Uses in one of the projects, of all declarations, by file and position.

        Raises:
            SerenaCentralError: the project could not tell whether it declares the symbol, or can't answer.
        """
        if project.root in self.failures:
            raise self.failures[project.root]
        parts = [await (_own(one) if one.project is project else _in_sibling(project, one)) for one in self.found]
        uses = {(use.path, use.range): use for part in parts for use in part.references}
        remarks = dict.fromkeys(part.remark for part in parts if part.remark)
        caveats = dict.fromkeys(part.caveat for part in parts if part.caveat)
        return References(
            [uses[place] for place in sorted(uses)],
            sum(part.outside for part in parts),
            [gap for part in parts for gap in part.gaps],
            "; ".join(remarks) or None,
            "; ".join(caveats) or None,
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
        failures[project.root] = DeadlineExceeded(f"Finding {name_path!r} in {project.name}", FINDING_S)
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
    return Declarations(declaring, failures)


async def _own(declared: Declaration) -> References:
    hit = await declared.project.find_one(declared.name_path, declared.path)
    return await declared.project.relations.references(hit)


async def _in_sibling(sibling: Project, declared: Declaration) -> References:
    await sibling.fresh()
    name = declared.name_path.rpartition("/")[2].partition("[")[0]
    files = await anyio.to_thread.run_sync(_candidates, sibling, declared, name)
    asked: list[_Place] = []
    left = 0
    async for place in _places(sibling, files, name):
        if len(asked) < PLACES_ASKED:
            asked.append(place)
        else:
            left += 1
    uses, unresolved, remark = await _Asking(sibling, declared, asked).run()
    remarks = [
        remark,
        f"{name} stands in {left + len(asked)} places, of which {len(asked)} were asked about" if left else None,
        f"{unresolved} places hold {name} and lead nowhere: its language server can't tell what they mean"
        if unresolved
        else None,
    ]
    views, gaps = await sibling.relations.views(uses)
    return References(views, 0, gaps, "; ".join(filter(None, remarks)) or None)


def _candidates(sibling: Project, declared: Declaration, name: str) -> list[str]:
    """Files of the sibling that hold the name, those that mention the declaring package first. Reads the disk."""
    spec = declared.project.languages.spec_for(declared.path)
    language = declared.project.languages.language_of(declared.path) or ""
    code = [
        path
        for path in sibling.tree.files
        if (own := sibling.languages.spec_for(path)) and spec and own.name == spec.name
    ]
    holding = files_containing(sibling.root, code, name, encoding=sibling.languages.encoding)
    names = mentions(declared.project.root, declared.path, language)
    if not names or not holding:
        return holding
    mentioning = {
        path for one in names for path in files_containing(sibling.root, code, one, encoding=sibling.languages.encoding)
    }
    return sorted(holding, key=lambda path: path not in mentioning) if mentioning else []


async def _places(sibling: Project, files: Sequence[str], name: str) -> AsyncIterator[_Place]:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for path in files:
        try:
            text = (await sibling.read(path)).text
        except PathError:
            continue
        for match in word.finditer(text.content):
            yield _Place(path, text.position(match.start()))


class _Asking:
    """Asks a sibling's server where places lead; those that lead to the declaration are uses."""

    def __init__(self, sibling: Project, declared: Declaration, places: Sequence[_Place]) -> None:
        self._sibling = sibling
        self._declared = declared
        self._places = iter(places)
        self._target = os.path.realpath(declared.project.root / declared.path)
        self._uses: list[tuple[str, Range]] = []
        self._unresolved = 0
        self._remark: str | None = None
        self._failure: LanguageServerError | None = None

    async def run(self) -> tuple[list[tuple[str, Range]], int, str | None]:
        """Uses by path and position, how many places lead nowhere, and why the answer may lack something."""
        async with anyio.create_task_group() as tasks:
            for _ in range(ASKED_AT_ONCE):
                tasks.start_soon(self._worker)
        if self._failure is not None:
            raise self._failure
        return sorted(set(self._uses)), self._unresolved, self._remark

    async def _worker(self) -> None:
        for path, position in self._places:
            try:
                leads, remark = await self._sibling.relations.leads(path, position)
            except LanguageServerError as error:
                self._failure = error
                self._places = iter(())
                return
            self._remark = self._remark or remark
            if not leads:
                self._unresolved += 1
            elif any([await self._is_declaration(place) for place in leads]):
                self._uses.append((path, _name_at(position, self._declared)))

    async def _is_declaration(self, place: Location) -> bool:
        if not self._is_target(place.path):
            return False
        project, path = self._declared.project, self._declared.path
        await project.indexer.ensure([path])
        holder = project.relations.holder(path, place.range.start)
        return holder is not None and holder.name_path == self._declared.name_path

    def _is_target(self, path: Path) -> bool:
        """Servers name files as they reached them: through links of workspaces, too."""
        return os.path.realpath(path) == self._target


def _name_at(position: Position, declared: Declaration) -> Range:
    name = declared.name_path.rpartition("/")[2].partition("[")[0]
    return Range(position, Position(position.line0, position.column + len(name)))
