"""What an edit may have broken elsewhere: in its own project, and in the open projects of its super-repo.

Asked after an edit that took names away or changed signatures: where code still holds such a name, its language server
says where that leads. An unresolved reference may have meant a name that is gone; an error in a line that uses what was
changed may come from the change. All of it is bounded in time, and projects that were not asked are named.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from serena_central.analysis.file_errors import errors_in, no_errors
from serena_central.analysis.sibling_uses import Siblings
from serena_central.core.errors import LanguageServerError, PathError, SerenaCentralError
from serena_central.core.quoting import quoted
from serena_central.core.text import Position
from serena_central.projects.editing.declaration_changes import Redeclared, called_as, is_by_position
from serena_central.projects.editing.signatures import signature
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_code import code_beside
from serena_central.projects.superrepo.sibling_definitions import SiblingPlace, places_of, resolve_places

MOST_NAMES = 20
"""Maximum of names of one edit that are searched for; an edit that removes more breaks much in any case."""

MOST_PLACES = 300
"""Places of one project that are asked about."""

MOST_FILES = 8
"""Files of one project whose errors are asked for."""

_WORD = re.compile(r"\w+")


class Broken(msgspec.Struct):
    """What may be broken in one project. `unresolved`: unresolved references to names that are gone. `errors`: by path,
    in lines that use what was changed. `by_position`: calls that pass values by position, which may no longer fit."""

    project: Project
    unresolved: list[SiblingPlace] = []
    by_position: list[SiblingPlace] = []
    errors: dict[str, list[DiagnosticView]] = {}


class Breakage(NamedTuple):
    """`found`: by project, if it has any; `notes` say what was not checked."""

    found: list[Broken]
    notes: list[str]


async def broken_by(project: Project, siblings: Siblings, edited: Mapping[str, Redeclared], seconds: float) -> Breakage:
    """What an edit of files of a project may have broken. `edited`: path → what it did to the names declared there."""
    edited = {path: one for path, one in edited.items() if project.languages.selection.has_references(path)}
    told = {name for one in edited.values() for name in one.gone | one.changed | {moved for moved, _ in one.moved}}
    names = sorted(name for name in told if name.isidentifier())
    if not names:
        return Breakage([], [])
    others, unopened = siblings.opened(project)
    parts = [project, *others]
    done: dict[str, Broken] = {}
    notes: list[str] = []

    async def look(part: Project) -> None:
        try:
            search = _Search(project, part, edited, frozenset(names[:MOST_NAMES]))
            done[str(part.root)] = await search.run()
            notes.extend(search.notes)
        except SerenaCentralError as error:
            notes.append(f"Cannot determine what this edit broke in {quoted(part.name)}: {error}")
            done[str(part.root)] = Broken(part)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            for part in parts:
                tasks.start_soon(look, part)
    late = [part.name for part in parts if str(part.root) not in done]
    if late:
        notes.append(f"Broken references were not checked within {seconds:g} s in: {', '.join(late)}.")
    if unopened:
        notes.append(f"Not checked for broken references, because they are not open: {', '.join(unopened)}.")
    if len(names) > MOST_NAMES:
        notes.append(f"References were checked for {MOST_NAMES} of {len(names)} changed names.")
    found = [
        one for part in parts if (one := done.get(str(part.root))) and (one.unresolved or one.errors or one.by_position)
    ]
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
        self._moved = dict(moved for one in edited.values() for moved in one.moved)
        """Name → whether it is a type."""
        self.notes: list[str] = []
        """Notes on what was not checked."""

    async def run(self) -> Broken:
        part, found = self._part, Broken(self._part)
        await part.fresh()
        resolved = await resolve_places(part, await self._places(self._names))
        nowhere = {(part.root / place.path, place.position) for place in resolved.unresolved}
        targets = {self._project.root / path for path in self._edited}
        used: list[SiblingPlace] = []
        unresolved = list(resolved.unresolved)
        for place, locations in resolved.found:
            if any((location.path, location.range.start) in nowhere for location in locations):
                unresolved.append(place)
            elif any(location.path.resolve() in targets for location in locations):
                used.append(place)
        found.unresolved = sorted(place for place in unresolved if place.name in self._gone)
        found.by_position = [place for place in sorted(used) if await self._is_by_position(place)]
        await self._errors([*used, *unresolved, *await self._of_carriers(used)], found)
        return found

    async def _of_carriers(self, used: Collection[SiblingPlace]) -> list[SiblingPlace]:
        """Where symbols are used that have a changed name in their signature: what they are handed need not name it."""
        part, carriers = self._part, dict[str, Path]()
        for place in used:
            holder = part.navigation.places.holder(place.path, place.position)
            if holder is None or holder.symbol.name in self._names:
                continue
            try:
                text = (await part.read(place.path)).text
            except PathError:
                continue
            if place.name in _WORD.findall(signature(text, holder.file, holder.place)):
                carriers[called_as(holder.file, holder.place)] = part.root / place.path
        names = frozenset(list(carriers)[:MOST_NAMES])
        resolved = await resolve_places(part, await self._places(names)) if names else None
        return [
            place
            for place, locations in (resolved.found if resolved else ())
            if any(location.path.resolve() == carriers[place.name] for location in locations)
        ]

    async def _places(self, names: Collection[str]) -> list[SiblingPlace]:
        """Where names stand in code, the first ones."""
        files = await self._holding(names)
        places = [place for path in files for place in await self._in_code(path, names)]
        if len(places) > MOST_PLACES:
            self.notes.append(
                f"Broken references in {quoted(self._part.name)} were checked at {MOST_PLACES} of "
                f"{len(places)} occurrences of the changed names."
            )
        return places[:MOST_PLACES]

    async def _is_by_position(self, place: SiblingPlace) -> bool:
        is_type = self._moved.get(place.name)
        if is_type is None:
            return False
        try:
            text = (await self._part.read(place.path)).text
        except PathError:
            return False
        language = self._part.languages.language_of(place.path) or ""
        return is_by_position(text, text.offset(place.position) + len(place.name), language, is_type=is_type)

    async def _holding(self, names: Collection[str]) -> list[str]:
        """Files of the edited files' languages that may hold one of the names."""
        code = code_beside(self._project, self._edited, self._part)
        holding = self._part.navigation.possible.holding
        return sorted({path for name in names for path in await holding(code, name)})

    async def _in_code(self, path: str, names: Collection[str]) -> list[SiblingPlace]:
        """Where one of the names stands in code and declares nothing."""
        part = self._part
        elsewhere = await self._kept_apart(path, names)
        return [
            place
            async for place in places_of(part, [path], _WORD, names)
            if (place.name, place.position) not in elsewhere
        ]

    async def _kept_apart(self, path: str, names: Collection[str]) -> set[tuple[str, Position]]:
        """Where the names stand in strings and comments, and where symbols are declared."""
        part = self._part
        apart: set[tuple[str, Position]] = set()
        for name in names:
            try:
                found = await part.languages.syntax.occurrences(path, name)
            except (LanguageServerError, PathError):
                continue
            apart.update((name, one.range.start) for one in found if one.kind != "code")
        if path in part.index:
            apart.update((symbol.name, symbol.name_position) for symbol in part.index.file(path).symbols)
        return apart

    async def _errors(self, places: Collection[SiblingPlace], found: Broken) -> None:
        """Errors in the lines of these places; those of edited files are reported with the edit."""
        own = self._edited if self._part is self._project else ()
        lines: dict[str, set[int]] = {}
        for place in places:
            if place.path not in own:
                lines.setdefault(place.path, set()).add(place.position.line0)
        asked = sorted(lines, key=lambda path: (-len(lines[path]), path))[:MOST_FILES]
        if len(asked) < len(lines):
            self.notes.append(
                f"Errors caused by this edit in {quoted(self._part.name)} were checked in "
                f"{len(asked)} of {len(lines)} files that reference the changed symbols, those with the most "
                "references."
            )
        errors = no_errors()
        await errors_in(self._part, asked, errors)
        for path in sorted(asked):
            here = [view for view in errors.found.get(path, ()) if view.diagnostic.range.start.line0 in lines[path]]
            if here:
                found.errors[path] = here
            if path in errors.unknown:
                self.notes.append(
                    f"Errors caused by this edit in {path} of {quoted(self._part.name)} may be missing: "
                    f"{errors.unknown[path]}"
                )
