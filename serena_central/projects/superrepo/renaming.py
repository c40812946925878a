"""Renaming a symbol in a sibling that uses it: its part of a rename that several projects make as one operation."""

from collections.abc import Mapping, Sequence

from serena_central.core.errors import EditRefused, FileChanged, LanguageServerError
from serena_central.core.text import Position, Range, Text
from serena_central.editing.change import Author, FileChange
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.rename import Rename, check_new_name, completed
from serena_central.files.stamp import Stamp
from serena_central.files.text import FileText
from serena_central.lsp.answers import Replacement, SymbolKind
from serena_central.projects.project import Project
from serena_central.projects.refactoring import LeftOver, Renamed
from serena_central.projects.superrepo.leads import Place
from serena_central.projects.superrepo.sibling_places import SiblingPlaces, places_in, range_of, shown
from serena_central.projects.superrepo.uses import Declaration
from serena_central.symbols.syntax.messages import Shorthand

_GROUPS = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.PACKAGE})
"""What only groups names: a value in it may be named by its own."""

LISTED = 20
"""Places that one message names."""


async def rename_uses(
    sibling: Project, declared: Declaration, new_name: str, author: Author, *, force: bool, dry_run: bool
) -> Renamed:
    """Renames all references that a sibling makes to a symbol of another project; with `force` although there are
    places of which nobody can tell whether they mean it.

    Raises:
        InvalidArguments: the new name can't be one.
        EditRefused: not all references are known.
        PathError, LanguageServerError.
    """
    check_new_name(declared.name, new_name)
    made: list[tuple[Rename, SiblingPlaces]] = []

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
        proposed = await _shorthands(sibling, declared, found, contents, new_name)
        rename = completed(proposed, spans, contents, declared.name, new_name)
        made[:] = [(rename, found)]
        return [
            FileChange(sibling.root / path, texts[path], apply_edits(texts[path].text, edits))
            for path, edits in sorted(rename.edits.items())
        ]

    edited = await sibling.edits.change_files([], plan, author, dry_run=dry_run)
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
    if found.remark or unknown:
        where = ", ".join(shown(unknown)[:LISTED])
        more = f" and {len(unknown) - LISTED} more places" if len(unknown) > LISTED else ""
        why = f"in {where}{more} of {sibling.name} nobody can tell what {declared.name} means" if unknown else ""
        raise EditRefused(
            f"Not all references to {declared.name_path} are known: {'; '.join(filter(None, [why, found.remark]))}. "
            "Pass force=true to leave such places as they are."
        )


async def _shorthands(
    sibling: Project, declared: Declaration, found: SiblingPlaces, texts: Mapping[str, Text], new: str
) -> dict[str, list[TextEdit]]:
    """Places at which more than the name must change: those that stand for a field and a value at once."""
    known = {place: found.shorthands[place] for place in found.references if place in found.shorthands}
    others = [place for place in found.references if place not in known]
    known |= await _proposed_shorthands(sibling, others, declared.name, new)
    is_member = bool(known) and await _is_member(declared)
    edits: dict[str, list[TextEdit]] = {}
    for place, shorthand in known.items():
        end = range_of(place).end
        written = f"{place.name}: {new}"
        if is_member or shorthand.binds:
            written = f"{new}: {texts[place.path].slice(Range(shorthand.start, end))}"
        edits.setdefault(place.path, []).append(TextEdit(Range(shorthand.start, end), written))
    return edits


async def _is_member(declared: Declaration) -> bool:
    """Whether a symbol is named as what it belongs to, and not as a value of its own."""
    hit = await declared.project.find_one(declared.name_path, declared.path)
    container = hit.symbol.container
    return container >= 0 and hit.file.symbols[container].kind not in _GROUPS


async def _proposed_shorthands(
    sibling: Project, references: Sequence[Place], old: str, new: str
) -> dict[Place, Shorthand]:
    """Shorthands that no grammar knows, as in macros: the sibling's server does, if it would rename what another
    project declares. Nothing else of that is believed: asked at a shorthand, it may rename the other of the two."""
    if not references:
        return {}
    first = references[0]
    files = [sibling.root / path for path in dict.fromkeys(place.path for place in references)]
    try:
        proposal = await sibling.languages.ask(
            first.path, lambda server: server.rename(files[0], first.position, new, candidates=files)
        )
    except LanguageServerError:
        return {}
    both = {f"{old}: {new}", f"{new}: {old}"}
    found: dict[Place, Shorthand] = {}
    for place in references:
        span = range_of(place)
        edits = [one for one in proposal.replacements.get(sibling.root / place.path, ()) if span.encloses(one.range)]
        if _edited(old, span.start, edits) in both:
            found[place] = Shorthand(span.start, binds=False)
    return found


def _edited(name: str, start: Position, edits: Sequence[Replacement]) -> str:
    """What edits inside a name that stands at `start` make of it."""

    def moved(position: Position) -> Position:
        return Position(0, position.column - start.column)

    within = [TextEdit(Range(moved(one.range.start), moved(one.range.end)), one.new_text) for one in edits]
    return apply_edits(Text(name), within)


async def _texts(sibling: Project, paths: set[str], stamps: Mapping[str, Stamp]) -> dict[str, FileText]:
    """The texts that the answers were about. Raises FileChanged for one that is not as it was before the questions."""
    texts = await sibling.relations.readings(sorted(paths))
    for path in sorted(paths):
        if path not in texts or texts[path].stamp != stamps.get(path):
            raise FileChanged(str(sibling.root / path))
    return texts
