"""Tools that change a symbol together with its references: rename everywhere, delete if unused."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from serena_central.analysis.objections import reason_to_keep
from serena_central.analysis.other_language_mentions import named_elsewhere
from serena_central.core.errors import AmbiguousSymbol, EditRefused
from serena_central.core.quoting import quoted
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.project import Project
from serena_central.projects.refactoring.refactoring import MOST_PARTS, Renamed, parts_of
from serena_central.projects.refactoring.rename_plan import LeftOver
from serena_central.projects.superrepo.sibling_references import Declaration, declarations
from serena_central.projects.superrepo.sibling_rename import rename_uses
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import GROUPS, TYPES
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.edits.edit_answers import EDIT_ANSWER, answer
from serena_central.tools.edits.symbol_edits import DryRun
from serena_central.tools.symbol_answers import ReadSet
from serena_central.tools.symbols import InFile, NamePath

LISTED = 20
"""Places that one note names."""


class Renaming(NamedTuple):
    """A rename over several projects: which of them declares the symbol, and the roots of all."""

    declared: Declaration
    roots: frozenset[Path]


async def _renaming(_call: ToolCall, projects: Sequence[Project], arguments: Mapping[str, Any]) -> Renaming:
    """Over several projects: which of them declares the symbol; the others rename what they use of it."""
    name_path = arguments["name_path"]
    asked = await declarations(projects, name_path, arguments["relative_path"])
    for root, error in asked.failures.items():
        raise EditRefused(f"Nothing was changed: cannot determine whether {root} declares the symbol: {error}")
    files = {one.project.root / one.path for one in asked.found}
    if len(asked.found) > 1 and len(files) == 1:
        outermost = min((one.project.root for one in asked.found), key=lambda root: len(root.parts))
        raise EditRefused(
            f"Nothing was changed: {quoted(files.pop())} is in several of the projects. Name only {quoted(outermost)}."
        )
    if len(asked.found) > 1:
        raise AmbiguousSymbol(name_path, [f"{one.project.root / one.path}: {one.name_path}" for one in asked.found])
    return Renaming(asked.found[0], frozenset(project.root for project in projects))


@tool(
    "Rename a symbol",
    answers=EDIT_ANSWER,
    edits=True,
    destructive=True,
    idempotent=False,
    aliases={"name_path_pattern": "name_path"},
    timeout_s=120,
    together=_renaming,
)
async def rename_symbol(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    new_name: Annotated[str, Meta(description="The new name, without a path")],
    relative_path: InFile = "",
    force: Annotated[
        bool, Meta(description="Rename even if modules outside this call reference it or the new name is taken")
    ] = False,
    dry_run: DryRun = False,
) -> Any:
    """Renames a symbol in all files of the project, or of all projects of the call; or in none."""
    renaming = call.together if isinstance(call.together, Renaming) else None
    if renaming is not None and renaming.declared.project is not target:
        return await _rename_uses(call, target, renaming.declared, new_name, force=force, dry_run=dry_run)
    hit = await target.find_one(name_path, relative_path)
    elsewhere = _Elsewhere(call, target, renaming.roots if renaming else frozenset(), force=force)
    renamed = await target.refactoring.rename(
        hit,
        new_name,
        call.author,
        seen=await ReadSet(call, target).check(hit, within=False),
        every=not name_path.rstrip().endswith("]"),
        force=force,
        dry_run=dry_run,
        check=elsewhere.check,
        around=await _around(call, target, renaming.roots if renaming else frozenset()),
    )
    if elsewhere.left:
        call.note(f"Not renamed everywhere: {' '.join(elsewhere.left)}")
    _note_taken(call, new_name, renamed)
    if renamed.beside:
        call.note(f"Not renamed everywhere: {renamed.beside}")
    if renamed.by_references:
        call.note(
            "The language server renamed nothing. What it lists as references was renamed, and the definition: "
            f"{_listed(renamed.added)}"
        )
    elif renamed.added:
        call.note(
            "The language server's rename omitted references to the symbol; these were renamed as well: "
            f"{_listed(renamed.added)}"
        )
    if _loaded_by_file(target, hit):
        call.note(
            f"{hit.path} is still called {hit.symbol.name}: where classes are loaded by the names of their files "
            f"(Composer), {new_name} is found only once the file has its name, too."
        )
    if renamed.parted:
        call.note(
            f"Macros put other names together (##) with {hit.symbol.name}, which may no longer match (check each): "
            f"{_listed(renamed.parted)}"
        )
    namesakes, strings = ([one] if one else [] for one in (elsewhere.namesakes, elsewhere.strings))
    _note_left(call, hit.symbol.name, LeftOver(definitions=namesakes, strings=strings, files=elsewhere.files))
    if elsewhere.error:
        call.note(f"Files of other languages around this project can't be searched: {elsewhere.error}.")
    if elsewhere.reason:
        call.note(f"{hit.symbol.name} may still be referenced elsewhere by its old name: {elsewhere.reason}.")
    return await _renamed(call, target, hit.symbol.name, renamed)


def _loaded_by_file(target: Project, hit: Hit) -> bool:
    """Whether a type of PHP has the name of its file, by which it may be loaded."""
    is_php = target.languages.language_of(hit.path) == "php"
    return is_php and hit.symbol.kind in TYPES | GROUPS and PurePosixPath(hit.path).stem == hit.symbol.name


class _Elsewhere:
    """What a rename leaves as it is outside of its project, as of its last plan."""

    def __init__(self, call: ToolCall, target: Project, roots: frozenset[Path], *, force: bool) -> None:
        self._validation = call.services.validation
        self._target = target
        self._roots = roots
        self._force = force
        self.left: list[str] = []
        self.namesakes = ""
        self.strings = ""
        self.files: list[str] = []
        self.error: str | None = None
        self.reason: str | None = None

    async def check(self, hit: Hit) -> None:
        """Raises EditRefused for what must not be left, unless it is forced."""
        elsewhere = await self._validation.used_by_siblings(self._target, hit, besides=self._roots)
        used, self.namesakes, self.strings = elsewhere.sentences, elsewhere.namesakes, elsewhere.strings
        if used and not self._force:
            around = elsewhere.enclosing
            how = (
                f'Pass project="{around}", relative_path="{(self._target.root / hit.path).relative_to(around)}"'
                if around
                else 'Name these modules in project= as well ("*": all)'
            )
            raise EditRefused(
                f"Nothing was changed: {hit.name_path} would be renamed only in {self._target.name}. {' '.join(used)} "
                f"{how} to rename it in all of them at once, or pass force=true to leave them unchanged."
            )
        bound = await self._validation.bound_to(self._target, hit, also=self._roots)
        if bound and not self._force:
            raise EditRefused(
                f"Nothing was changed: {hit.name_path} must have the same name as other members. {' '.join(bound)} "
                f"They are not renamed with it: pass force=true to rename {hit.name_path} alone, and rename each of "
                "them, too."
            )
        self.left = [*used, *bound]
        self.reason = await reason_to_keep(self._target, hit, by_name=True)
        around = await self._validation.named_around(self._target, [hit])
        self.files, self.error = [*around.of(hit).certain, *around.of(hit).possible], around.error


async def _rename_uses(
    call: ToolCall, target: Project, declared: Declaration, new_name: str, *, force: bool, dry_run: bool
) -> Any:
    renamed = await rename_uses(target, declared, new_name, call.author, force=force, dry_run=dry_run)
    return await _renamed(call, target, declared.name, renamed)


async def _renamed(call: ToolCall, target: Project, name: str, renamed: Renamed) -> Any:
    _note_left(call, name, renamed.left)
    told: dict[str, Any] | str = await answer(call, target, renamed.edited)
    if errors := renamed.foreseen.listed(besides=renamed.edited.consequences.errors):
        call.note(f"The rename leaves errors in {errors}: check whether something else has to have the new name, too.")
    for note in renamed.foreseen.notes():
        call.note(note)
    if not renamed.places:
        return {"changed_places": 0}
    return told if isinstance(told, str) else {"changed_places": renamed.places, **told}


def _note_taken(call: ToolCall, new_name: str, renamed: Renamed) -> None:
    if renamed.objections:
        call.note(f"Renamed despite: {' '.join(renamed.objections)}")
    if renamed.standing:
        call.note(
            f"{new_name} already occurred in the changed files. Check each occurrence for capture or shadowing: "
            f"{_listed(renamed.standing)}"
        )


def _note_left(call: ToolCall, name: str, left: LeftOver) -> None:
    for what, places in (
        ("in code that the language server cannot resolve (check each)", left.code),
        ("as the name of other symbols, such as overrides", left.definitions),
        ("in strings", left.strings),
        ("in comments", left.comments),
        ("in files of other languages", left.files),
        ("in names that libraries such as Django make of it (check each)", left.derived),
        ("in names of examples, which go vet and go test reject until they are renamed", left.examples),
    ):
        if places:
            call.note(f"{name} still occurs {what}: {_listed(places)}")


@tool(
    "Delete an unused symbol",
    answers=EDIT_ANSWER,
    edits=True,
    destructive=True,
    idempotent=False,
    aliases={"name_path_pattern": "name_path"},
)
async def safe_delete_symbol(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    relative_path: InFile = "",
    force: Annotated[bool, Meta(description="Delete it even if it is or may be referenced")] = False,
    dry_run: DryRun = False,
) -> Any:
    """Deletes a symbol that nothing can refer to; else says what may, and changes nothing."""
    hit = await target.find_one(name_path, relative_path, one_definition=True)
    seen = await ReadSet(call, target).check(hit)
    elsewhere = (await named_elsewhere(target, hit)).possible
    edited = await target.refactoring.safe_delete(
        hit,
        call.author,
        seen=seen,
        objections=lambda found: _objections(call, target, found),
        around=await _around(call, target),
        force=force,
        dry_run=dry_run,
    )
    _note_left(call, hit.symbol.name, LeftOver(files=elsewhere))
    return await answer(call, target, edited)


async def _around(call: ToolCall, target: Project, besides: Collection[Path] = ()) -> list[Navigation]:
    """Of the other modules of the super-repo, which are asked about a symbol before it is changed here alone."""
    others, _ = await call.services.validation.siblings.of(target, besides=besides)
    return [other.navigation for other in others]


async def _objections(call: ToolCall, target: Project, hit: Hit) -> list[str]:
    """Why a symbol, or what is deleted with it, may be in use although its project does not refer to it."""
    found: list[str] = []
    for part in parts_of(hit)[:MOST_PARTS]:
        sentences = await call.services.validation.objections(target, part)
        found += (
            sentences if part is hit else [f"{part.name_path} would be deleted with it: {one}" for one in sentences]
        )
    return found


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return ", ".join(places[:LISTED]) + more
