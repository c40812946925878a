"""Renames a symbol in a sibling that uses it, as its part of a rename across projects."""

from collections.abc import Mapping
from functools import partial

from serena_central.core.errors import EditRefused, FileChanged
from serena_central.core.text import Range
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import apply_edits
from serena_central.editing.rename import Rename, check_new_name, completed
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.projects.project import Project
from serena_central.projects.refactoring.refactoring import Renamed
from serena_central.projects.refactoring.rename_plan import LeftOver
from serena_central.projects.refactoring.shorthands import both_written
from serena_central.projects.superrepo.sibling_places import SiblingPlaces, places_in, range_of, shown
from serena_central.projects.superrepo.sibling_references import Declaration
from serena_central.symbols.index import Hit

LISTED = 20
"""Places that one message names."""


async def rename_uses(
    sibling: Project, declared: Declaration, new_name: str, author: Author, *, force: bool, dry_run: bool
) -> Renamed:
    """Renames all references that a sibling makes to a symbol of another project; with `force` even if there are
    places that may refer to it.

    Raises:
        InvalidArguments: the new name can't be one.
        EditRefused: not all references are known.
        PathError, LanguageServerError.
    """
    check_new_name(declared.name, new_name)
    made: list[tuple[Rename, SiblingPlaces]] = []
    hits: list[Hit] = []

    async def plan() -> list[FileChange]:
        await sibling.fresh()
        stamps = dict(sibling.tree.files)
        found = await places_in(sibling, declared)
        if not force:
            _check_known(sibling, declared, found)
        texts = await _texts(sibling, {place.path for place in found.references}, stamps)
        spans: dict[str, list[Range]] = {}
        for place in found.references:
            spans.setdefault(place.path, []).append(range_of(place))
        contents = {path: read.text for path, read in texts.items()}
        rename = completed({}, spans, contents, declared.name, new_name)
        hit = await declared.project.find_one(declared.name_path, declared.path)
        rename = await both_written(sibling.languages, rename, contents, hit, new_name)
        hits[:], made[:] = [hit], [(rename, found)]
        return [
            FileChange(sibling.root / path, texts[path], apply_edits(texts[path].text, edits))
            for path, edits in sorted(rename.edits.items())
        ]

    ground = partial(sibling.navigation.possible.relied_on, hits, [new_name])
    edited = await sibling.edits.change_files([], plan, author, dry_run=dry_run, ground=ground)
    ((rename, found),) = made
    left = LeftOver(
        code=shown([*found.possible, *found.unasked]),
        definitions=shown(found.definitions),
        strings=shown(found.strings),
        comments=shown(found.comments),
    )
    return Renamed(edited=edited, places=rename.places, added=[], left=left)


def _check_known(sibling: Project, declared: Declaration, found: SiblingPlaces) -> None:
    unknown = [*found.possible, *found.unasked]
    if found.note or unknown:
        where = ", ".join(shown(unknown)[:LISTED])
        more = f" and {len(unknown) - LISTED} more places" if len(unknown) > LISTED else ""
        why = f"in {where}{more} of {sibling.name}, {declared.name} cannot be resolved" if unknown else ""
        raise EditRefused(
            f"Not all references to {declared.name_path} could be determined: "
            f"{'; '.join(filter(None, [why, found.note]))}. "
            "Pass force=true to leave those places unchanged."
        )


async def _texts(sibling: Project, paths: set[str], stamps: Mapping[str, Stamp]) -> dict[str, FileText]:
    """The texts that the answers were about.

    Raises:
        FileChanged: for one that is not as it was before the questions.
    """
    texts = await sibling.navigation.places.readings(sorted(paths))
    changed = [path for path in sorted(paths) if path not in texts or texts[path].stamp != stamps.get(path)]
    if changed:
        await sibling.tree.examine(changed)  # a hard link that is made elsewhere changes a stamp, and no event says so
        raise FileChanged(str(sibling.root / changed[0]))
    return texts
