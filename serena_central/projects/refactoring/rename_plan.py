"""The plan of a rename: from a symbol's references and its server's proposal to the changes of all files.

A server's own rename may leave places out, and may change what only looks like the symbol: each step adds, keeps or
refuses for one such reason. The plan is made again when a file that it relied on changes; nothing is written here.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import EditConflict, EditRefused, FileChanged, RequestFailed
from serena_central.core.pacing import paced
from serena_central.core.quoting import quoted
from serena_central.core.text import Range, Text, whole_word
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.rename import Rename, completed, own_name, without_repetition
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import WorkspaceEdit
from serena_central.projects.editing.edits import Edits, Site
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.derived_names import derived_names
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.possible_references import THOROUGH, Examined
from serena_central.projects.navigation.server_questions import joined
from serena_central.projects.navigation.symbol_references import RenameGround
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.refactoring.component_shorthands import check_components
from serena_central.projects.refactoring.counterparts import Counterparts, check_exported_alike
from serena_central.projects.refactoring.joined_methods import of_joined
from serena_central.projects.refactoring.jsx_tags import check_tags
from serena_central.projects.refactoring.kept_names import (
    KeptNames,
    of_implementations,
    of_kept,
    of_others,
    of_private_members,
)
from serena_central.projects.refactoring.module_files import files_below, has_path
from serena_central.projects.refactoring.name_conflicts import Naming
from serena_central.projects.refactoring.named_together import named_together, of_held_functions
from serena_central.projects.refactoring.overriding import overriding
from serena_central.projects.refactoring.pasted_names import pasted
from serena_central.projects.refactoring.re_exports import Patterns, brought_in, handed_on
from serena_central.projects.refactoring.record_components import of_same_accessor
from serena_central.projects.refactoring.refusals import (
    check_alone,
    check_apart,
    check_beside,
    check_changing,
    check_complete,
    check_free,
    check_implemented,
    check_named,
    check_own_name,
    check_read,
    check_renamable,
    check_usable,
    name_range,
    not_ours,
)
from serena_central.projects.refactoring.shorthands import are_patterns, both_written, check_meant
from serena_central.projects.refactoring.static_imports import with_both_imported
from serena_central.symbols.index import Hit
from serena_central.symbols.name_case import ignores_case
from serena_central.symbols.symbol import GROUPS

_BUILT_IN_PART = frozenset({"cpp", "csharp", "go", "rust", "swift"})
"""Languages whose files or parts of them may be left out of a build."""

_OF_RENAMES = frozenset({"textDocument/rename", "textDocument/references"})
"""Requests by which a rename finds out what to change."""


class LeftOver(msgspec.Struct, frozen=True):
    """Where an old name still stands after a rename, in all files: `path:line`, in short order; `files` of other
    languages by their paths alone. `code` are places that may have meant the symbol, `definitions` other symbols,
    `examples` those of Go that are named after it, `derived` names that libraries make of it."""

    code: list[str] = []
    definitions: list[str] = []
    strings: list[str] = []
    comments: list[str] = []
    files: list[str] = []
    examples: list[str] = []
    derived: list[str] = []


class RenameRequest(NamedTuple):
    """What is asked for: see `Refactoring.rename`."""

    hit: Hit
    new_name: str
    author: Author
    seen: Mapping[str, str]
    every: bool
    force: bool
    check: Callable[[Hit], Awaitable[None]]


class RenamePlan(NamedTuple):
    """The changes, and what is reported with them, as in `Renamed`."""

    changes: list[FileChange]
    rename: Rename
    conflicts: list[EditConflict]
    left: LeftOver
    objections: list[str]
    standing: list[str]
    parted: list[str]
    beside: str | None


class _Known(NamedTuple):
    """What the language server says. `edits` and `moves` (root-relative path → new place) are its rename; `uses` are
    the places that name the symbol, and `unknown` those of other definitions of it about which it says nothing."""

    ground: RenameGround
    uses: Uses
    edits: dict[str, list[TextEdit]]
    moves: dict[str, Path]
    unknown: list[PlaceInCode]


class _Sources:
    """The texts that a plan is made on: of files that are still as they were when it began."""

    def __init__(self, root: Path, tree: FileTree, navigation: Navigation) -> None:
        self._root = root
        self._tree = tree
        self._navigation = navigation
        self._stamps = dict(tree.files)
        self.files: dict[str, FileText] = {}
        self.texts: dict[str, Text] = {}

    async def add(self, paths: Iterable[str]) -> None:
        """Reads more files.

        Raises:
            FileChanged: one has changed since the plan began, so that answers may be about another text.
        """
        asked = list(paths)
        read = await self._navigation.places.readings(asked)
        changed = [path for path in asked if path not in read or read[path].stamp != self._stamps.get(path)]
        if changed:
            # A hard link that is made elsewhere changes a stamp, and no event says so.
            await self._tree.examine(changed)
            raise FileChanged(str(self._root / changed[0]))
        self.files |= read
        self.texts |= {path: file.text for path, file in read.items()}


class RenamePlanner:
    """Plans renames in one project. Belongs to the event loop's thread."""

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

    async def plan(self, asked: RenameRequest) -> RenamePlan:
        """Raises as `Refactoring.rename` does, and FileChanged where the plan has to be made again."""
        new_name = asked.new_name
        sources = _Sources(self._root, self._tree, self._navigation)  # before anything is asked
        site = await self._edits.site(asked.hit.path, asked.hit.name_path)
        hit = site.hit
        check_named(site)
        check_own_name(site)
        await asked.check(hit)
        if not asked.force:
            check_read(hit, self._languages.selection.with_code(self._tree.unreadable))
        objections = await self._naming.objections(hit, new_name)
        check_free(hit, objections, force=asked.force)
        conflicts = await self._edits.conflicts(site, asked.seen, asked.author)
        known = await self._known(site, new_name, every=asked.every)
        if not asked.force:
            check_beside(known.uses)
        examined = await self._navigation.possible.examine(hit, known.uses, THOROUGH, known.ground.candidates)
        rename = await self._completed(hit, new_name, known, examined, sources)
        check_renamable(hit, known.ground.proposal, rename)
        rename, left_out = await self._without_kept(hit, rename, known.uses)
        rename = rename.without(await of_held_functions(self._navigation, self._languages, hit, rename, examined))
        check_changing(hit, rename)
        rename = await self._with_both_names(hit, new_name, rename, examined, sources)
        parted = await pasted(self._navigation, self._languages, hit, rename, known.uses.places, sources.texts)
        rename = rename.without(parted.added)
        if not asked.force:
            check_components(self._languages, hit, rename, sources.texts)
            await check_tags(self._languages, hit, new_name, rename)
            check_exported_alike(hit, rename, sources.texts)
            kept = await of_implementations(self._navigation, hit, rename)
            check_implemented(hit, [*kept, *await of_same_accessor(self._navigation, hit, rename)])
            check_apart(hit, await of_joined(self._navigation, hit, rename))
            together = await named_together(self._navigation, self._languages, hit, rename, examined)
            others = await self._navigation.places.named(list(together))
            check_alone(hit, others, await self._navigation.places.named(list(together.values())))
        changes = await self._changes(rename, known.moves, sources)
        if hit.symbol.kind in GROUPS:
            left_out.unexamined += brought_in(rename, examined.elsewhere, self._navigation, sources.texts)
        left_out.unexamined += [*known.unknown, *await of_private_members(self._navigation, hit)]
        left = _left(examined, rename, left_out, _still_named(hit, known.ground.elsewhere, self._root, changes))
        return RenamePlan(
            changes,
            rename,
            conflicts,
            msgspec.structs.replace(
                left,
                examples=await self._naming.examples(hit),
                derived=lines_of(await derived_names(self._tree, self._navigation, hit)),
            ),
            objections,
            await self._naming.standing(hit, new_name, {path: sources.texts[path] for path in rename.edits}),
            lines_of([*parted.added, *parted.others]),
            known.uses.beside,
        )

    async def _known(self, site: Site, new_name: str, *, every: bool) -> _Known:
        """Raises EditRefused where that is not complete, or can't be changed."""
        hit = site.hit
        ground = await self._ground(hit, new_name)
        uses, proposal = ground.uses, ground.proposal or WorkspaceEdit()
        unknown: list[PlaceInCode] = []
        if every:
            uses, proposal, unknown = await self._with_others(hit, new_name, uses, proposal)
        uses = await self._with_overriding(hit, uses, proposal)
        proposal = await self._with_own_name(site, new_name, proposal)
        check_complete(hit, uses)
        check_usable(hit, proposal)
        # rust-analyzer would move the file and leave the attribute.
        stays = has_path(hit, site.text, self._languages.language_of(hit.path))
        moves = await self._moves([] if stays else proposal.moves)
        edits = {
            self._inside(path): [TextEdit(*edit) for edit in some]
            for path, some in proposal.replacements.items()
            if some
        }
        return _Known(ground, uses, edits, moves, unknown)

    async def _completed(self, hit: Hit, new_name: str, known: _Known, examined: Examined, sources: _Sources) -> Rename:
        """What the server proposes, and the references that it leaves out."""
        language = self._languages.language_of(hit.path)
        places = _places(hit, known.uses, examined.references)
        await sources.add({*known.edits, *places, *known.moves})
        complete = partial(
            completed,
            known.edits,
            places,
            sources.texts,
            hit.symbol.name,
            new_name,
            ignore_case=ignores_case(language, hit.symbol.kind),
            sigil="$" if language == "php" else "",
        )
        return await anyio.to_thread.run_sync(complete)  # of names with thousands of places it takes long

    async def _with_both_names(
        self, hit: Hit, new_name: str, rename: Rename, examined: Examined, sources: _Sources
    ) -> Rename:
        """Where the new name has to stand beside the old one, both; what leads to such a place is renamed with it."""
        texts = sources.texts
        rename = await both_written(self._languages, rename, texts, hit, new_name)
        while places := handed_on(rename, examined.elsewhere, self._navigation, new_name):
            await sources.add({place.path for place in places} - texts.keys())
            rename = await both_written(self._languages, rename.with_places(places, new_name), texts, hit, new_name)
        others = [*examined.possible, *examined.elsewhere, *examined.unexamined]
        rename = with_both_imported(rename, hit, others, texts, new_name)
        patterns = Patterns(self._navigation, texts, hit.symbol.name, new_name)
        return without_repetition(await patterns.without_variables(rename), texts, new_name)

    async def _changes(self, rename: Rename, moves: Mapping[str, Path], sources: _Sources) -> list[FileChange]:
        return [
            FileChange(
                self._root / path,
                sources.files[path],
                apply_edits(sources.texts[path], rename.edits.get(path, [])),
                moved_to=moves.get(path),
            )
            async for path in paced(sorted({*rename.edits, *moves}))
        ]

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
            known = msgspec.structs.replace(
                known,
                places={**known.places, **named},
                beside=joined(known.beside, uses.beside),
                beside_failed=known.beside_failed or uses.beside_failed,
            )
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
        declared = hit.path, hit.symbol.name_position
        rename = rename.without(await of_kept(self._navigation, rename, declared))
        found = await KeptNames(self._navigation, rename, declared).left_out()
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


def _left(examined: Examined, rename: Rename, left_out: Examined, elsewhere: list[str]) -> LeftOver:
    """Where the old name stands besides the places that are renamed, and in the files `elsewhere`."""
    renamed = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}

    def lines(places: Iterable[PlaceInCode]) -> list[str]:
        return lines_of(place for place in places if (place.path, place.range.start) not in renamed)

    return LeftOver(
        lines([*examined.possible, *examined.unexamined, *left_out.unexamined]),
        lines([*examined.definitions, *left_out.definitions]),
        lines(examined.strings),
        lines(examined.comments),
        elsewhere,
    )


def _still_named(hit: Hit, files: Iterable[str], root: Path, changes: Iterable[FileChange]) -> list[str]:
    """Those of some files that hold a symbol's name after the changes, too."""
    after, word = {change.path: change.after or "" for change in changes}, whole_word(hit.symbol.name)
    return [path for path in files if (text := after.get(root / path)) is None or word.search(text)]


def lines_of(places: Iterable[PlaceInCode]) -> list[str]:
    """Each line once, as `path:line`."""
    return list(dict.fromkeys(f"{place.path}:{place.range.start.line0}" for place in places))


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
