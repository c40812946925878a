"""Renames a symbol throughout the project, or deletes it if it is unused.

Both ask the language server for the symbol's references once its answers are complete; if they may be incomplete the
change is refused, since a guess would break code unnoticed.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec

from serena_central.core.errors import EditRefused, RequestFailed
from serena_central.core.text import Text
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import check_new_name
from serena_central.files.tree import FileTree
from serena_central.projects.editing.edits import Edited, Edits, Meant, Site
from serena_central.projects.editing.joint_edits import Check
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.derived_names import derived_names
from serena_central.projects.navigation.named_in_strings import named_in_strings
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import THOROUGH
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.refactoring.counterparts import Counterparts
from serena_central.projects.refactoring.deletion import call_removed, construction_removed, deletion
from serena_central.projects.refactoring.foreseen_errors import NONE_FORESEEN, ForeseenErrors, Foresight
from serena_central.projects.refactoring.module_files import files_brought_in, has_code
from serena_central.projects.refactoring.name_conflicts import Naming
from serena_central.projects.refactoring.pickled import Pickled
from serena_central.projects.refactoring.refusals import incomplete, name_range, unread
from serena_central.projects.refactoring.rename_plan import (
    LeftOver,
    RenamePlan,
    RenamePlanner,
    RenameRequest,
    lines_of,
)
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.symbol import GROUPS

MOST_PARTS = 100
"""Maximum of members that are checked for references before their container is deleted."""

PLACES_LISTED = 20
"""Places that one message names."""


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """A rename that was made, or planned. `added`: places (`path:line`) that the server's own rename had left out."""

    edited: Edited
    places: int
    added: list[str]
    left: LeftOver
    by_references: bool = False
    """Whether these are all that was renamed: some servers know no renames."""
    objections: list[str] = []
    """Sentences about what spoke against the new name, which the symbol was given despite it."""
    standing: list[str] = []
    """Where the new name stood in code already (`path:line`): it may be captured or shadowed there."""
    parted: list[str] = []
    """Where macros of C and C++ put a name together from the symbol's (`path:line`), which may not fit any more."""
    beside: str | None = None
    """As in `Uses`: in these files nothing was renamed that their server did not say."""
    foreseen: ForeseenErrors = NONE_FORESEEN
    """Errors that the rename leaves, as far as a compiler was asked before it was written."""


class Refactoring:
    """Refactorings of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        edits: Edits,
        navigation: Navigation,
        naming: Naming,
        counterparts: Counterparts,
        languages: ProjectLanguages,
        index: SymbolIndex,
    ) -> None:
        self._root = root
        self._index = index
        self._tree = tree
        self._edits = edits
        self._navigation = navigation
        self._languages = languages
        self._counterparts = counterparts
        self._foresight = Foresight(root, tree, navigation, languages)
        self._pickled = Pickled(tree, navigation, languages)
        self._renames = RenamePlanner(root, tree, edits, navigation, naming, counterparts, languages)

    async def rename(
        self,
        hit: Hit,
        new_name: str,
        author: Author,
        *,
        seen: Mapping[str, str],
        every: bool,
        force: bool,
        dry_run: bool,
        check: Callable[[Hit], Awaitable[None]],
        around: Sequence[Navigation],
    ) -> Renamed:
        """Renames a symbol everywhere in the project, or nowhere; `every` definition of it, or this one. `seen`
        is as in `Meant`, of the symbol alone: what stands in it is kept, whoever changed it. With `force` it gets a
        name that something objects to. `check` is a part of the plan, and may raise, to refuse; `around` are those of
        other projects that it asks.

        Raises:
            InvalidArguments: the new name can't be one.
            EditRefused: the new name is taken or a keyword; uses are not known completely, or lie where nothing can be
                changed.
            EditConflict, PathError, LanguageServerError.
        """
        check_new_name(hit.symbol.name, new_name, self._languages.language_of(hit.path))
        asked = RenameRequest(hit, new_name, author, seen, every, force, check)
        planned: RenamePlan | None = None
        foreseen = NONE_FORESEEN

        async def plan() -> list[FileChange]:
            nonlocal planned, foreseen
            planned = await self._renames.plan(asked)
            foreseen = await self._foreseen(hit, planned.changes)
            return planned.changes

        ground = partial(_relied_on, [self._navigation, *around], [hit], [new_name])
        edited = await self._edits.change_files([], plan, author, dry_run=dry_run, ground=ground)
        assert planned is not None
        return Renamed(
            edited=msgspec.structs.replace(await self._with_caveats(edited, hit), conflicts=planned.conflicts),
            places=planned.rename.places,
            added=lines_of(PlaceInCode(*added) for added in planned.rename.added),
            left=planned.left,
            by_references=len(planned.rename.added) == planned.rename.places,
            objections=planned.objections,
            standing=planned.standing,
            parted=planned.parted,
            beside=planned.beside,
            foreseen=foreseen,
        )

    async def _foreseen(self, hit: Hit, changes: Sequence[FileChange]) -> ForeseenErrors:
        """The errors that changes of texts would bring; none where files move, which is not asked about."""
        if any(change.moved_to is not None or change.after is None for change in changes):
            return NONE_FORESEEN
        texts = {change.path.relative_to(self._root).as_posix(): Text(change.after or "") for change in changes}
        return await self._foresight.of(hit, texts)

    async def safe_delete(
        self,
        hit: Hit,
        author: Author,
        *,
        seen: Mapping[str, str],
        objections: Callable[[Hit], Awaitable[Sequence[str]]],
        around: Sequence[Navigation],
        force: bool,
        dry_run: bool,
    ) -> Edited:
        """Deletes a symbol that nothing but itself uses, its doc comment included. `seen` as in `Meant`; `objections`
        are what the caller knows against it, a part of the plan; `around` as in `rename`. With `force` it is deleted,
        and what objects is noted.

        Raises:
            EditRefused: it is used, it may be, or that can't be known.
            EditConflict, PathError, LanguageServerError.
        """
        language = self._languages.language_of(hit.path)
        against: list[str] = []
        strings: list[PlaceInCode] = []
        parts: list[Hit] = []
        calls: list[str | None] = []
        foreseen = NONE_FORESEEN

        def check() -> None:
            if against and not force:
                raise EditRefused(
                    f"{hit.name_path} was not deleted. {' '.join(against)} Pass force=true to delete it anyway."
                )

        async def find() -> Meant:
            found = (await self._edits.site(hit.path, hit.name_path)).hit
            parts[:] = parts_of(found)[:MOST_PARTS]
            strings.clear()
            against[:] = [*await self._against_deleting(found, strings), *await objections(found)]
            check()
            return Meant(hit.path, hit.name_path, seen)

        def plan(site: Site) -> TextEdit:
            calls[:] = [call_removed(site, language) or construction_removed(site, self._index)]
            return deletion(site, language, force=force)

        async def look_ahead(site: Site, after: str) -> None:
            nonlocal foreseen
            if not against:
                foreseen = await self._foresight.of(site.hit, {hit.path: Text(after)})
                if errors := foreseen.listed():
                    against.append(f"Without it there would be errors in {errors}.")
                check()

        _, edited = await self._edits.change_symbol(
            hit.path,
            find,
            plan,
            author,
            way="delete",
            check=look_ahead,
            dry_run=dry_run,
            ground=partial(_relied_on, [self._navigation, *around], parts, ()),
        )
        notes = [f"Deleted despite: {' '.join(against)}"] if against else []
        notes += [*filter(None, calls), *foreseen.notes(), *await self._left_by_deletion(hit, strings)]
        return _with_notes(await self._with_caveats(edited, hit), notes)

    async def _left_by_deletion(self, hit: Hit, strings: Sequence[PlaceInCode]) -> list[str]:
        """Sentences about what may still mean a deleted symbol: `strings` that are its name, other declarations."""
        notes: list[str] = []
        if strings:
            named = _listed(await self._navigation.places.named(strings[:PLACES_LISTED]), len(strings))
            notes.append(f"{hit.symbol.name} is all of a string, which may mean it, in {named}.")
        if others := await self._counterparts.of(hit):
            places = [f"{one.path}:{one.symbol.name_line}" for one in others[:PLACES_LISTED]]
            declared = _listed(places, len(others))
            notes.append(f"{hit.name_path} is still declared in {declared}: delete it there, too, if nothing needs it.")
        return notes

    async def _against_deleting(self, hit: Hit, strings: list[PlaceInCode]) -> list[str]:
        """Sentences about the places that would break, or might: in this project, outside of the symbol itself.
        `strings` gets those that are its name alone, and are no reason to keep it."""
        parts = parts_of(hit)
        if len(parts) > MOST_PARTS:
            return [f"It contains {len(parts) - 1} symbols; only {MOST_PARTS} are examined."]
        hidden = unread(hit, self._languages.selection.with_code(self._tree.unreadable))
        against = [hidden] if hidden else []
        for part in parts:
            found = await self._against_losing(part, hit, strings)
            against += (
                found
                if part is hit
                else [f"{part.name_path} would be deleted with it: {sentence}" for sentence in found]
            )
        return against

    async def _against_losing(self, hit: Hit, whole: Hit, strings: list[PlaceInCode]) -> list[str]:
        """The same about one symbol that goes with the `whole`."""
        try:
            known = await self._navigation.references.uses(hit)
        except RequestFailed as error:
            known = Uses(note=str(error).rstrip("."), failed=True)
        examined = await self._navigation.possible.examine(hit, known, THOROUGH)
        listed = [PlaceInCode(path, span) for path, spans in known.places.items() for span in spans]
        meant, alone = await named_in_strings(self._navigation.places, hit, examined.strings)
        strings += [place for place in alone if hit is whole and not _is_within(place, whole)]
        found = {
            "It is referenced in": [*listed, *examined.references],
            "The language server cannot rule out references in": list(examined.possible),
            "Not examined for lack of time: occurrences of its name in": examined.unexamined,
            "Its name occurs in a string in": meant,
            "Libraries make names of its own that occur in": await derived_names(self._tree, self._navigation, hit),
        }
        texts = await self._navigation.places.readings([hit.path])
        against = [known_sentence] if (known_sentence := incomplete(hit, known)) else []
        if known.beside:
            against.append(f"{known.beside.rstrip('.')}.")
        if hit.path in texts and texts[hit.path].text.slice(name_range(hit)) != hit.symbol.name:
            against.append(
                "References cannot be determined: its name is not where the language server reports it, in "
                f"{hit.path}:{hit.symbol.name_line}."
            )
        if hit.path in texts:
            against += await self._against_losing_files(hit, texts[hit.path].text)
        for sentence, places in found.items():
            outside = [place for place in places if not _is_within(place, whole)]
            if outside:
                against.append(
                    f"{sentence} {_listed(await self._navigation.places.named(outside[:PLACES_LISTED]), len(outside))}."
                )
        return against

    async def _against_losing_files(self, hit: Hit, text: Text) -> list[str]:
        """Sentences about the code in files that are compiled because a symbol brings them in: what is used of it may
        have no name, such as a trait's implementation."""
        against: list[str] = []
        for path in files_brought_in(hit, text, self._languages.language_of(hit.path)):
            if path in self._tree.files:
                read = (await self._navigation.places.readings([path])).get(path)
                if read is not None and has_code(read.text.content):
                    against.append(f"It brings in {path}, whose code would no longer be compiled: delete that first.")
            elif await anyio.Path(self._root / path).exists():
                against.append("It brings in a file that is ignored or closed.")
        return against

    async def _with_caveats(self, edited: Edited, hit: Hit) -> Edited:
        """Adds to an edit's answer what the references that it relied on may lack, and who has stored the name."""
        caveat = self._languages.caveat(hit.path)
        notes = [f"References may be missing: {caveat}"] if caveat else []
        if stored := await self._pickled.note(hit):
            notes.append(stored)
        return _with_notes(edited, notes)


@asynccontextmanager
async def _relied_on(
    navigations: Iterable[Navigation], hits: Collection[Hit], names: Collection[str]
) -> AsyncGenerator[Check]:
    """As `Possible.relied_on`, in several projects."""
    async with AsyncExitStack() as stack:
        checks = [await stack.enter_async_context(one.possible.relied_on(hits, names)) for one in navigations]

        async def check() -> None:
            for one in checks:
                await one()

        yield check


def parts_of(hit: Hit) -> list[Hit]:
    """What is deleted with a symbol and may be used apart from it: of what only groups others, those, too."""
    if hit.symbol.kind not in GROUPS:
        return [hit]
    members = (part for place in hit.file.children(hit.place) for part in parts_of(Hit(hit.path, hit.file, place)))
    return [hit, *members]


def _with_notes(edited: Edited, notes: Sequence[str]) -> Edited:
    told = edited.consequences
    both = msgspec.structs.replace(told, notes=[*told.notes, *notes])
    return msgspec.structs.replace(edited, consequences=both)


def _is_within(place: PlaceInCode, hit: Hit) -> bool:
    return place.path == hit.path and hit.symbol.range.encloses(place.range)


def _listed(places: Sequence[str], total: int) -> str:
    more = f" and {total - len(places)} more" if total > len(places) else ""
    return ", ".join(places) + more
