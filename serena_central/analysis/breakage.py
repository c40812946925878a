"""What an edit may have broken elsewhere: in its own project, and in the open projects of its super-repo.

Asked after an edit that took names away or changed signatures: where code still holds such a name, its language server
says where that leads. What leads nowhere may have meant what is gone; an error in a line that leads to what was changed
may come from the change. All of it is bounded in time, and who was not asked is named.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import anyio
import msgspec

from serena_central.analysis.siblings import Siblings
from serena_central.core.errors import LanguageServerError, PathError, SerenaCentralError
from serena_central.core.quoting import quoted
from serena_central.core.text import Position
from serena_central.projects.project import Project
from serena_central.projects.redeclared import Redeclared
from serena_central.projects.superrepo.leads import Place, leads_of, places_of
from serena_central.projects.views import DiagnosticView

MOST_NAMES = 20
"""Names of one edit that are looked for; who takes away more knows that much will break."""

MOST_PLACES = 300
"""Places of one project that are asked about."""

MOST_FILES = 8
"""Files of one project whose errors are asked for."""

_WORD = re.compile(r"\w+")

ERROR = 1
"""LSP DiagnosticSeverity."""


class Broken(msgspec.Struct):
    """In one project. `unresolved`: places of names that are gone, which lead nowhere. `errors`: by path, in lines that
    use what was changed."""

    project: Project
    unresolved: list[Place] = []
    errors: dict[str, list[DiagnosticView]] = {}


class Breakage(NamedTuple):
    """`found`: in projects that have some; `notes` say what was not looked at."""

    found: list[Broken]
    notes: list[str]


async def broken_by(project: Project, siblings: Siblings, edited: Mapping[str, Redeclared], seconds: float) -> Breakage:
    """What an edit of files of a project may have broken. `edited`: path → what it did to the names declared there."""
    edited = {path: one for path, one in edited.items() if project.languages.has_references(path)}
    names = sorted({name for one in edited.values() for name in one.gone | one.changed if name.isidentifier()})
    if not names:
        return Breakage([], [])
    others, unopened = siblings.opened(project)
    parts = [project, *others]
    done: dict[str, Broken] = {}
    notes: list[str] = []

    async def look(part: Project) -> None:
        try:
            done[str(part.root)] = await _Search(project, part, edited, frozenset(names[:MOST_NAMES])).run()
        except SerenaCentralError as error:
            notes.append(f"What this edit may have broken in {quoted(part.name)} is not known: {error}")
            done[str(part.root)] = Broken(part)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            for part in parts:
                tasks.start_soon(look, part)
    late = [part.name for part in parts if str(part.root) not in done]
    if late:
        notes.append(f"What this edit may have broken was not known within {seconds:g} s in: {', '.join(late)}.")
    if unopened:
        notes.append(f"Not asked whether this edit broke something, because they are not open: {', '.join(unopened)}.")
    if len(names) > MOST_NAMES:
        notes.append(f"Of {len(names)} changed names {MOST_NAMES} were looked for.")
    found = [one for part in parts if (one := done.get(str(part.root))) and (one.unresolved or one.errors)]
    return Breakage(found, notes)


class _Search:
    """Looks through one project for what an edit of `project` may have broken there."""

    def __init__(
        self, project: Project, part: Project, edited: Mapping[str, Redeclared], names: Collection[str]
    ) -> None:
        self._project = project
        self._part = part
        self._edited = edited
        self._names = names
        self._gone = frozenset[str]().union(*(one.gone for one in edited.values()))

    async def run(self) -> Broken:
        part, found = self._part, Broken(self._part)
        await part.fresh()
        files = await self._holding()
        if not files:
            return found
        places = [place for path in files for place in await self._in_code(path)]
        asked = places[:MOST_PLACES]
        leads = await leads_of(part, asked)
        nowhere = {(part.root / place.path, place.position) for place in leads.unresolved}
        targets = {self._project.root / path for path in self._edited}
        used: list[Place] = []
        unresolved = list(leads.unresolved)
        for place, locations in leads.found:
            if any((location.path, location.range.start) in nowhere for location in locations):
                unresolved.append(place)
            elif any(location.path.resolve() in targets for location in locations):
                used.append(place)
        found.unresolved = sorted(place for place in unresolved if place.name in self._gone)
        await self._errors([*used, *unresolved], found)
        return found

    async def _holding(self) -> list[str]:
        """Files of the edited files' languages that may hold one of the names."""
        languages = self._project.languages
        wanted = {one for path in self._edited if (spec := languages.spec_for(path)) for one in spec.languages}
        part = self._part
        code = [
            path
            for path in part.tree.files
            if (own := part.languages.spec_for(path)) and not wanted.isdisjoint(own.languages)
        ]
        return sorted({path for name in self._names for path in await part.relations.holding(code, name)})

    async def _in_code(self, path: str) -> list[Place]:
        """Where one of the names stands in code and declares nothing."""
        part = self._part
        elsewhere = await self._kept_apart(path)
        return [
            place
            async for place in places_of(part, [path], _WORD, self._names)
            if (place.name, place.position) not in elsewhere
        ]

    async def _kept_apart(self, path: str) -> set[tuple[str, Position]]:
        """Where the names stand in strings and comments, and where symbols are declared."""
        part = self._part
        apart: set[tuple[str, Position]] = set()
        for name in self._names:
            try:
                found = await part.languages.occurrences(path, name)
            except (LanguageServerError, PathError):
                continue
            apart.update((name, one.range.start) for one in found if one.kind != "code")
        if path in part.index:
            apart.update((symbol.name, symbol.name_position) for symbol in part.index.file(path).symbols)
        return apart

    async def _errors(self, places: Collection[Place], found: Broken) -> None:
        """Errors in the lines of these places; those of edited files are told with the edit."""
        own = self._edited if self._part is self._project else ()
        lines: dict[str, set[int]] = {}
        for place in places:
            if place.path not in own:
                lines.setdefault(place.path, set()).add(place.position.line0)
        for path in sorted(lines)[:MOST_FILES]:
            diagnostics, _ = await self._part.relations.diagnostics(path)
            errors = [
                view
                for view in diagnostics
                if view.diagnostic.severity == ERROR and view.diagnostic.range.start.line0 in lines[path]
            ]
            if errors:
                found.errors[path] = errors
