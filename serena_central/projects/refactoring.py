"""Changes that follow a symbol through the project: renaming it everywhere, deleting it when nobody uses it.

Both ask the language server who refers to the symbol, once it can be believed; what can't be known completely is
refused, since a guess would break code in places that nobody looks at.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from serena_central.core.errors import EditConflict, EditRefused, FileChanged
from serena_central.core.text import Position, Range, Text
from serena_central.editing.change import Author, FileChange
from serena_central.editing.placement import removed
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.rename import Rename, check_new_name, completed
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import WorkspaceEdit
from serena_central.projects.edits import NOTHING_SEEN, Edited, Edits, Meant, Site
from serena_central.projects.relations import Relations
from serena_central.projects.views import References, Uses
from serena_central.symbols.index import Hit

PLACES_LISTED = 20
"""Places that one message names."""


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """A rename that was made, or planned. `added`: places (`path:line`) that the server's own rename had left out.
    `left`: where the old name still stands in the same files: in strings, in comments, or as another symbol's name."""

    edited: Edited
    places: int
    added: list[str]
    left: list[str]


class Refactoring:
    """Refactorings of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        edits: Edits,
        relations: Relations,
    ) -> None:
        self._root = root
        self._tree = tree
        self._edits = edits
        self._relations = relations

    async def rename(
        self, hit: Hit, new_name: str, author: Author, *, seen: str | None = None, dry_run: bool = False
    ) -> Renamed:
        """Renames a symbol everywhere in the project, or nowhere. `seen` is the hash of the body that the author knows:
        what stands in it is kept, whoever changed it.

        Raises:
            InvalidArguments: the new name can't be one.
            EditRefused: uses are not known completely, or lie where nothing can be changed.
            EditConflict, PathError, LanguageServerError.
        """
        check_new_name(hit.symbol.name, new_name)
        plans: list[Rename] = []
        conflicts: list[EditConflict] = []
        left: list[str] = []

        async def plan() -> list[FileChange]:
            stamps = dict(self._tree.files)
            site = await self._edits.site(hit.path, hit.name_path)
            conflicts[:] = await self._edits.conflicts(site, {hit.name_path: seen} if seen else NOTHING_SEEN, author)
            known, proposal = await self._relations.renaming(site.hit, new_name)
            _check_complete(site.hit, known)
            _check_usable(site.hit, proposal)
            moves = {self._inside(old): new for old, new in proposal.moves}
            proposed = {self._inside(path): edits for path, edits in proposal.replacements.items() if edits}
            places = _places(site.hit, known)
            texts = await self._texts({*proposed, *places, *moves}, stamps)
            rename = completed(
                {path: [TextEdit(*edit) for edit in edits] for path, edits in proposed.items()},
                places,
                {path: read.text for path, read in texts.items()},
                site.hit.symbol.name,
                new_name,
            )
            plans[:] = [rename]
            changes = [
                FileChange(
                    self._root / path,
                    texts[path],
                    apply_edits(texts[path].text, rename.edits.get(path, [])),
                    moved_to=moves.get(path),
                )
                for path in sorted({*rename.edits, *moves})
            ]
            left[:] = self._left(changes, site.hit.symbol.name)
            return changes

        edited = await self._edits.change_files([], plan, author, dry_run=dry_run)
        (rename,) = plans
        return Renamed(
            edited=msgspec.structs.replace(self._with_caveat(edited, hit), conflicts=conflicts),
            places=rename.places,
            added=list(dict.fromkeys(f"{path}:{span.start.line0}" for path, span in rename.added)),
            left=left,
        )

    async def safe_delete(
        self, hit: Hit, author: Author, *, seen: Mapping[str, str] = NOTHING_SEEN, dry_run: bool = False
    ) -> Edited:
        """Deletes a symbol that nobody but itself uses. `seen` as in `Meant`.

        Raises:
            EditRefused: it is used, or that can't be known.
            EditConflict, PathError, LanguageServerError.
        """
        known = await self._relations.references(hit)
        _check_complete(hit, known)
        own = hit.symbol.range
        used = [
            f"{use.path}:{use.range.start.line0}" + (f" in {use.holder.name_path}" if use.holder else "")
            for use in known.references
            if use.path != hit.path or not own.encloses(use.range)
        ]
        if used:
            raise EditRefused(f"{hit.name_path} is still used, and was not deleted: {_listed(used)}.")
        meant = Meant(hit.path, hit.name_path, seen)

        async def find() -> Meant:
            return meant

        _, edited = await self._edits.change_symbol(
            hit.path, find, lambda site: [_without(site)], author, dry_run=dry_run
        )
        return self._with_caveat(edited, hit)

    def _with_caveat(self, edited: Edited, hit: Hit) -> Edited:
        """Tells with an edit what the uses that it relied on may lack."""
        caveat, told = self._relations.caveat(hit), edited.consequences
        remarks = [*told.remarks, *([f"Uses may have been missed: {caveat}"] if caveat else [])]
        return msgspec.structs.replace(edited, consequences=msgspec.structs.replace(told, remarks=remarks))

    def _left(self, changes: Sequence[FileChange], name: str) -> list[str]:
        """Lines of the new texts in which the old name still stands as a word."""
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        left: dict[str, None] = {}
        for change in changes:
            if change.after and name in change.after:  # most hold it no more: an expression takes much longer to see it
                text = Text(change.after)
                lines = (text.position(match.start()).line0 for match in word.finditer(change.after))
                left |= dict.fromkeys(f"{self._inside(change.path)}:{line0}" for line0 in lines)
        return list(left)

    def _inside(self, path: Path) -> str:
        inside = self._relations.inside(path)
        if inside is None:
            raise EditRefused(
                f"Nothing was changed: the rename would also change {path}, which is ignored or outside this project."
            )
        return inside

    async def _texts(self, paths: Iterable[str], stamps: Mapping[str, Stamp]) -> dict[str, FileText]:
        """The texts that the answers were about: those of files that are still as they were before the questions."""
        asked = list(paths)
        texts = await self._relations.readings(asked)
        for path in asked:
            if path not in texts or texts[path].stamp != stamps.get(path):
                raise FileChanged(str(self._root / path))
        return texts


def _check_complete(hit: Hit, known: References | Uses) -> None:
    """Raises EditRefused for uses that are not known completely, or lie where nothing can be changed."""
    if known.remark:
        raise EditRefused(f"Nothing was changed: the uses of {hit.name_path} are not known completely: {known.remark}.")
    if known.outside:
        raise EditRefused(
            f"Nothing was changed: {hit.name_path} is used in {known.outside} places outside this project."
        )


def _check_usable(hit: Hit, proposal: WorkspaceEdit) -> None:
    if proposal.unusable:
        raise EditRefused(
            f"Nothing was changed: to rename {hit.name_path}, the language server would create or delete files, or "
            "change what can't be read here."
        )


def _places(hit: Hit, known: Uses) -> dict[str, list[Range]]:
    """Where a symbol is named, its definition included, by file."""
    start = hit.symbol.name_position
    end = Position(start.line0, start.column + len(hit.symbol.name))
    return {**known.places, hit.path: [Range(start, end), *known.places.get(hit.path, [])]}


def _without(site: Site) -> TextEdit:
    return removed(site.text, site.hit.symbol.range)


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - PLACES_LISTED} more" if len(places) > PLACES_LISTED else ""
    return ", ".join(places[:PLACES_LISTED]) + more
