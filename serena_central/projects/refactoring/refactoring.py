"""Renames a symbol throughout the project, or deletes it if it is unused.

Both ask the language server for the symbol's references once its answers are complete; if they may be incomplete the
change is refused, since a guess would break code unnoticed.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import EditConflict, EditRefused, FileChanged, RequestFailed
from serena_central.core.pacing import paced
from serena_central.core.quoting import quoted
from serena_central.core.text import Range, Text
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.rename import Rename, check_new_name, completed, own_name, without_repetition
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import WorkspaceEdit
from serena_central.projects.editing.edits import NOTHING_SEEN, Edited, Edits, Meant, Site
from serena_central.projects.editing.joint_edits import Check
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.named_in_strings import named_in_strings
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import THOROUGH, Examined
from serena_central.projects.navigation.symbol_references import RenameGround
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.refactoring.counterparts import Counterparts
from serena_central.projects.refactoring.deletion import deletion
from serena_central.projects.refactoring.kept_names import KeptNames, of_implementations, of_others, of_private_members
from serena_central.projects.refactoring.module_files import (
    files_below,
    files_brought_in,
    has_code,
    has_path,
)
from serena_central.projects.refactoring.name_conflicts import Naming
from serena_central.projects.refactoring.overriding import overriding
from serena_central.projects.refactoring.pasted_names import pasted
from serena_central.projects.refactoring.re_exports import Patterns, brought_in, handed_on
from serena_central.projects.refactoring.record_components import of_same_accessor
from serena_central.projects.refactoring.refusals import (
    check_changing,
    check_complete,
    check_free,
    check_implemented,
    check_named,
    check_renamable,
    check_usable,
    incomplete,
    name_range,
    not_ours,
)
from serena_central.projects.refactoring.shorthands import are_patterns, both_written, check_meant
from serena_central.projects.refactoring.static_imports import with_both_imported
from serena_central.symbols.index import Hit
from serena_central.symbols.name_case import ignores_case
from serena_central.symbols.symbol import GROUPS

MOST_PARTS = 100
"""Maximum of members that are checked for references before their container is deleted."""

PLACES_LISTED = 20
"""Places that one message names."""


class LeftOver(msgspec.Struct, frozen=True):
    """Where an old name still stands after a rename, in all files: `path:line`, in short order; `files` of other
    languages by their paths alone. `code` are places that may have meant the symbol, `definitions` other symbols,
    `examples` those of Go that are named after it."""

    code: list[str] = []
    definitions: list[str] = []
    strings: list[str] = []
    comments: list[str] = []
    files: list[str] = []
    examples: list[str] = []


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """A rename that was made, or planned. `added`: places (`path:line`) that the server's own rename had left out."""

    edited: Edited
    places: int
    added: list[str]
    left: LeftOver
    objections: list[str] = []
    """Sentences about what spoke against the new name, which the symbol was given despite it."""
    standing: list[str] = []
    """Where the new name stood in code already (`path:line`): it may be captured or shadowed there."""
    parted: list[str] = []
    """Where macros of C and C++ put a name together from the symbol's (`path:line`), which may not fit any more."""


async def _allowed(_hit: Hit) -> None: ...


_BUILT_IN_PART = frozenset({"cpp", "csharp", "go", "rust", "swift"})
"""Languages whose files or parts of them may be left out of a build."""

_OF_RENAMES = frozenset({"textDocument/rename", "textDocument/references"})
"""Requests by which a rename finds out what to change."""


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
    ) -> None:
        self._root = root
        self._tree = tree
        self._edits = edits
        self._navigation = navigation
        self._naming = naming
        self._counterparts = counterparts
        self._languages = languages

    async def rename(
        self,
        hit: Hit,
        new_name: str,
        author: Author,
        *,
        seen: Mapping[str, str] = NOTHING_SEEN,
        every: bool = True,
        force: bool = False,
        dry_run: bool = False,
        check: Callable[[Hit], Awaitable[None]] = _allowed,
        around: Sequence[Navigation] = (),
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
        language = self._languages.language_of(hit.path)
        check_new_name(hit.symbol.name, new_name, language)
        plans: list[Rename] = []
        conflicts: list[EditConflict] = []
        left: list[LeftOver] = []
        objections: list[str] = []
        standing: list[str] = []
        parted: list[str] = []

        async def plan() -> list[FileChange]:
            stamps = dict(self._tree.files)
            site = await self._edits.site(hit.path, hit.name_path)
            check_named(site)
            await check(site.hit)
            objections[:] = await self._naming.objections(site.hit, new_name)
            check_free(site.hit, objections, force=force)
            conflicts[:] = await self._edits.conflicts(site, seen, author)
            ground = await self._ground(site.hit, new_name)
            known, proposal = ground.uses, ground.proposal or WorkspaceEdit()
            unknown: list[PlaceInCode] = []
            if every:
                known, proposal, unknown = await self._with_others(site.hit, new_name, known, proposal)
            known = await self._with_overriding(site.hit, known, proposal)
            proposal = await self._with_own_name(site, new_name, proposal)
            check_complete(site.hit, known)
            check_usable(site.hit, proposal)
            stays = has_path(site.hit, site.text, language)
            moving = [] if stays else proposal.moves  # rust-analyzer would move the file and leave the attribute
            moves = await self._moves(moving)
            proposed = {self._inside(path): edits for path, edits in proposal.replacements.items() if edits}
            examined = await self._navigation.possible.examine(site.hit, known, THOROUGH, ground.candidates)
            places = _places(site.hit, known, examined.references)
            texts = await self._texts({*proposed, *places, *moves}, stamps)
            complete = partial(
                completed,
                {path: [TextEdit(*edit) for edit in edits] for path, edits in proposed.items()},
                places,
                {path: read.text for path, read in texts.items()},
                site.hit.symbol.name,
                new_name,
                ignore_case=ignores_case(language, site.hit.symbol.kind),
                sigil="$" if language == "php" else "",
            )
            rename = await anyio.to_thread.run_sync(complete)  # of names with thousands of places it takes long
            check_renamable(site.hit, ground.proposal, rename)
            rename, left_out = await self._without_kept(site.hit, rename, known)
            check_changing(site.hit, rename)
            contents = {path: read.text for path, read in texts.items()}
            rename = await both_written(self._languages, rename, contents, site.hit, new_name)
            while places := handed_on(rename, examined.elsewhere, self._navigation, new_name):
                texts |= await self._texts({place.path for place in places} - texts.keys(), stamps)
                contents |= {path: read.text for path, read in texts.items()}
                rename = await both_written(
                    self._languages, rename.with_places(places, new_name), contents, site.hit, new_name
                )
            others = [*examined.possible, *examined.elsewhere, *examined.unexamined]
            rename = with_both_imported(rename, site.hit, others, contents, new_name)
            patterns = Patterns(self._navigation, contents, site.hit.symbol.name, new_name)
            rename = without_repetition(await patterns.without_variables(rename), contents, new_name)
            joined = await pasted(self._navigation, self._languages, site.hit, rename, known.places, contents)
            rename = rename.without(joined.added)
            parted[:] = _lines([*joined.added, *joined.others])
            if not force:
                kept = await of_implementations(self._navigation, site.hit, rename)
                check_implemented(site.hit, [*kept, *await of_same_accessor(self._navigation, site.hit, rename)])
            plans[:] = [rename]
            changes = [
                FileChange(
                    self._root / path,
                    texts[path],
                    apply_edits(texts[path].text, rename.edits.get(path, [])),
                    moved_to=moves.get(path),
                )
                async for path in paced(sorted({*rename.edits, *moves}))
            ]
            if site.hit.symbol.kind in GROUPS:
                left_out.unexamined += brought_in(rename, examined.elsewhere, self._navigation, contents)
            left_out.unexamined += [*unknown, *await of_private_members(self._navigation, site.hit)]
            examples = await self._naming.examples(site.hit)
            left[:] = [msgspec.structs.replace(_left(examined, rename, left_out, ground.elsewhere), examples=examples)]
            changed = {path: texts[path].text for path in rename.edits}
            standing[:] = await self._naming.standing(site.hit, new_name, changed)
            return changes

        ground = partial(_relied_on, [self._navigation, *around], [hit], [new_name])
        edited = await self._edits.change_files([], plan, author, dry_run=dry_run, ground=ground)
        (rename,) = plans
        return Renamed(
            edited=msgspec.structs.replace(self._with_caveat(edited, hit), conflicts=conflicts),
            places=rename.places,
            added=list(dict.fromkeys(f"{path}:{span.start.line0}" for path, span in rename.added)),
            left=left[0],
            objections=objections,
            standing=standing,
            parted=parted,
        )

    async def safe_delete(
        self,
        hit: Hit,
        author: Author,
        *,
        seen: Mapping[str, str] = NOTHING_SEEN,
        objections: Callable[[Hit], Awaitable[Sequence[str]]],
        around: Sequence[Navigation] = (),
        force: bool = False,
        dry_run: bool = False,
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

        async def find() -> Meant:
            found = (await self._edits.site(hit.path, hit.name_path)).hit
            parts[:] = parts_of(found)[:MOST_PARTS]
            strings.clear()
            against[:] = [*await self._against_deleting(found, strings), *await objections(found)]
            if against and not force:
                raise EditRefused(
                    f"{hit.name_path} was not deleted. {' '.join(against)} Pass force=true to delete it anyway."
                )
            return Meant(hit.path, hit.name_path, seen)

        _, edited = await self._edits.change_symbol(
            hit.path,
            find,
            lambda site: deletion(site, language, force=force),
            author,
            way="delete",
            dry_run=dry_run,
            ground=partial(_relied_on, [self._navigation, *around], parts, ()),
        )
        notes = [f"Deleted despite: {' '.join(against)}"] if against else []
        if strings:
            named = _listed(await self._navigation.places.named(strings[:PLACES_LISTED]), len(strings))
            notes.append(f"{hit.symbol.name} is all of a string, which may mean it, in {named}.")
        return _with_notes(self._with_caveat(edited, hit), notes)

    async def _against_deleting(self, hit: Hit, strings: list[PlaceInCode]) -> list[str]:
        """Sentences about the places that would break, or might: in this project, outside of the symbol itself.
        `strings` gets those that are its name alone, and are no reason to keep it."""
        parts = parts_of(hit)
        if len(parts) > MOST_PARTS:
            return [f"It contains {len(parts) - 1} symbols; only {MOST_PARTS} are examined."]
        against: list[str] = []
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
        }
        texts = await self._navigation.places.readings([hit.path])
        against = [known_sentence] if (known_sentence := incomplete(hit, known)) else []
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

    def _with_caveat(self, edited: Edited, hit: Hit) -> Edited:
        """Adds to an edit's answer what the references that it relied on may lack."""
        caveat = self._languages.caveat(hit.path)
        return _with_notes(edited, [f"References may be missing: {caveat}"] if caveat else [])

    async def _with_others(
        self, hit: Hit, new_name: str, known: Uses, proposal: WorkspaceEdit
    ) -> tuple[Uses, WorkspaceEdit, list[PlaceInCode]]:
        """What is known and proposed, and that of the symbol's other definitions where a server takes each for a
        symbol of its own; and those in other files of which it knows nothing."""
        unknown: list[PlaceInCode] = []
        beside = [Hit(hit.path, hit.file, place) for place in hit.file.others(hit.place)]
        for other in [*beside, *await self._counterparts.of(hit)]:
            path, at = self._root / other.path, other.symbol.name_position
            if any(edit.range.contains(at) for edit in proposal.replacements.get(path, ())):
                continue
            try:
                uses, more, *_ = await self._navigation.references.renaming(other, new_name)
            except RequestFailed:
                if other.path == hit.path:
                    raise
                unknown.append(PlaceInCode(other.path, name_range(other)))
                continue
            check_complete(other, uses)
            more = more or WorkspaceEdit()
            check_usable(other, more)
            named = {path: [*known.places.get(path, ()), *spans] for path, spans in uses.places.items()}
            named[other.path] = [*named.get(other.path, known.places.get(other.path, ())), name_range(other)]
            known = msgspec.structs.replace(known, places={**known.places, **named})
            proposal = _united(proposal, more)
        return known, proposal, unknown

    async def _with_overriding(self, hit: Hit, known: Uses, proposal: WorkspaceEdit) -> Uses:
        """What is known, and the names of methods that must be called as the symbol and that are not proposed. What
        leads to them is changed with them."""
        places = {path: list(spans) for path, spans in known.places.items()}
        for other in await overriding(self._navigation, hit, proposal):
            places.setdefault(other.path, []).append(name_range(other))
        return msgspec.structs.replace(known, places=places)

    async def _with_own_name(self, site: Site, new_name: str, proposal: WorkspaceEdit) -> WorkspaceEdit:
        """What is proposed, and what renames the function or class itself that a symbol has for its value."""
        own = own_name(site.text, name_range(site.hit))
        if own is None:
            return proposal
        more = await self._navigation.references.proposed(site.hit.path, own, new_name)
        return _united(proposal, more or WorkspaceEdit())

    async def _ground(self, hit: Hit, new_name: str) -> RenameGround:
        try:
            return await self._navigation.references.renaming(hit, new_name)
        except RequestFailed as error:
            if error.method not in _OF_RENAMES:
                raise
            raise EditRefused(
                f"Nothing was changed: the language server {error.server} does not rename {hit.name_path} "
                f"({quoted(error.message)}). {self._why_not(hit)}find_referencing_symbols lists where its name stands, "
                "replace_content changes it as text."
            ) from error

    def _why_not(self, hit: Hit) -> str:
        """A sentence about what may keep a server from renaming a symbol, if its language has such a thing."""
        if self._languages.language_of(hit.path) not in _BUILT_IN_PART:
            return ""
        return "If a build condition (cfg, #if, a build tag) leaves this code out, the server does not see it. "

    async def _without_kept(self, hit: Hit, rename: Rename, known: Uses) -> tuple[Rename, Examined]:
        """A rename without what goes on under the old name; and what else it leaves out for that."""
        if not rename.kept:
            named = await of_others(self._navigation, hit, rename, known)
            return rename.without(named), Examined(definitions=named)
        await check_meant(self._languages, hit, rename)
        found = await KeptNames(self._navigation, rename, (hit.path, hit.symbol.name_position)).left_out()
        meant = found.meant if await are_patterns(self._languages, rename, hit.symbol.name) else []
        others = [place for place in rename.added if place not in meant]
        unknown = [place for place in (*found.unknown, *found.meant) if place not in meant]
        return rename.without(others), Examined(unexamined=unknown, definitions=found.declaring)

    async def _moves(self, proposed: Iterable[tuple[Path, Path]]) -> dict[str, Path]:
        """Root-relative path → new place of each file that moves, those of a folder one by one.

        Raises:
            EditRefused: a file would move that can't be changed.
        """
        moves: dict[str, Path] = {}
        for old, new in proposed:
            if not await anyio.Path(old).is_dir():
                moves[self._inside(old)] = new
                continue
            if not old.is_relative_to(self._root):
                raise not_ours(old)
            for file in await anyio.to_thread.run_sync(files_below, old):
                moves[self._inside(file)] = new / file.relative_to(old)
        return moves

    def _inside(self, path: Path) -> str:
        inside = self._navigation.places.inside(path)
        if inside is None and self._navigation.places.is_closed(path):
            raise EditRefused("Nothing was changed: the rename would also change a file that a permission rule closes.")
        if inside is None:
            raise not_ours(path)
        return inside

    async def _texts(self, paths: Iterable[str], stamps: Mapping[str, Stamp]) -> dict[str, FileText]:
        """The texts that the answers were about: those of files that are still as they were before the questions."""
        asked = list(paths)
        texts = await self._navigation.places.readings(asked)
        changed = [path for path in asked if path not in texts or texts[path].stamp != stamps.get(path)]
        if changed:
            await self._tree.examine(
                changed
            )  # a hard link that is made elsewhere changes a stamp, and no event says so
            raise FileChanged(str(self._root / changed[0]))
        return texts


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


def _left(examined: Examined, rename: Rename, left_out: Examined, elsewhere: list[str]) -> LeftOver:
    """Where the old name stands besides the places that are renamed, and in the files `elsewhere`."""
    renamed = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}

    def lines(places: Iterable[PlaceInCode]) -> list[str]:
        return _lines(place for place in places if (place.path, place.range.start) not in renamed)

    return LeftOver(
        lines([*examined.possible, *examined.unexamined, *left_out.unexamined]),
        lines([*examined.definitions, *left_out.definitions]),
        lines(examined.strings),
        lines(examined.comments),
        elsewhere,
    )


def _lines(places: Iterable[PlaceInCode]) -> list[str]:
    """Each line once, as `path:line`."""
    return list(dict.fromkeys(f"{place.path}:{place.range.start.line0}" for place in places))


def _is_within(place: PlaceInCode, hit: Hit) -> bool:
    return place.path == hit.path and hit.symbol.range.encloses(place.range)


def _united(proposal: WorkspaceEdit, more: WorkspaceEdit) -> WorkspaceEdit:
    """The replacements of both."""
    edits = {path: [*proposal.replacements.get(path, ()), *some] for path, some in more.replacements.items()}
    return msgspec.structs.replace(proposal, replacements={**proposal.replacements, **edits})


def _places(hit: Hit, known: Uses, found: Iterable[PlaceInCode]) -> dict[str, list[Range]]:
    """Where a symbol is named, its definition included, by file; `found`: references that the server did not list."""
    places = {path: list(spans) for path, spans in known.places.items()}
    places.setdefault(hit.path, []).insert(0, name_range(hit))
    for path, span in found:
        places.setdefault(path, []).append(span)
    return places


def _listed(places: Sequence[str], total: int) -> str:
    more = f" and {total - len(places)} more" if total > len(places) else ""
    return ", ".join(places) + more
