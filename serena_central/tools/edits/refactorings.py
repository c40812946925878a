"""Tools that change a symbol together with its uses: rename everywhere, delete if unused."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.errors import EditRefused
from serena_central.projects.project import Project
from serena_central.projects.refactoring import LeftOver
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.edits.answers import answer, seen_by, seen_within
from serena_central.tools.edits.symbol_edits import DryRun
from serena_central.tools.symbols import InFile, NamePath

LISTED = 20
"""Places that one remark names."""


@tool("Rename a symbol", edits=True, idempotent=False, aliases={"name_path_pattern": "name_path"}, timeout_s=120)
async def rename_symbol(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    new_name: Annotated[str, Meta(description="The new name alone, without its path")],
    relative_path: InFile = "",
    force: Annotated[bool, Meta(description="Rename it here although other modules use it")] = False,
    dry_run: DryRun = False,
) -> Any:
    """Renames a symbol in all files of the project, or in none if that can't be done completely."""
    hit = await target.find_one(name_path, relative_path)
    used = await call.services.validation.used_by_siblings(target, hit)
    if used and not force:
        raise EditRefused(
            f"Nothing was changed: {hit.name_path} would be renamed in {target.name} alone. {' '.join(used)} Pass "
            "force=true to rename it here, then rename it in those modules."
        )
    if used:
        call.remark(f"Renamed in {target.name} alone: {' '.join(used)}")
    renamed = await target.refactoring.rename(
        hit, new_name, call.author, seen=await seen_by(call, target, hit.path, hit.name_path), dry_run=dry_run
    )
    if renamed.added:
        call.remark(
            "The language server's own rename left out places that refer to the symbol; they are renamed, too: "
            f"{_listed(renamed.added)}"
        )
    _remark_left(call, hit.symbol.name, renamed.left)
    told: dict[str, Any] | str = answer(call, target, renamed.edited)
    return told if isinstance(told, str) else {"changed_places": renamed.places, **told}


def _remark_left(call: ToolCall, name: str, left: LeftOver) -> None:
    for what, places in (
        ("in code, where the language server can't tell what it means; check each", left.code),
        ("as the name of other symbols (an override, for example)", left.definitions),
        ("in strings", left.strings),
        ("in comments", left.comments),
        ("in files of other languages", left.files),
    ):
        if places:
            call.remark(f"{name} still stands {what}: {_listed(places)}")


@tool(
    "Delete an unused symbol",
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
    force: Annotated[bool, Meta(description="Delete it although it is used, or may be")] = False,
    dry_run: DryRun = False,
) -> Any:
    """Deletes a symbol that nothing can refer to; else says what may, and changes nothing."""
    hit = await target.find_one(name_path, relative_path, one_definition=True)
    seen = await seen_within(call, target, hit)
    edited = await target.refactoring.safe_delete(
        hit,
        call.author,
        seen=seen,
        objections=await call.services.validation.objections(target, hit),
        force=force,
        dry_run=dry_run,
    )
    return answer(call, target, edited)


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return ", ".join(places[:LISTED]) + more
