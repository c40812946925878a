"""Tools that change a symbol together with its uses: rename everywhere, delete if unused."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from serena_central.projects.project import Project
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
    dry_run: DryRun = False,
) -> Any:
    """Renames a symbol in all files of the project, or in none if that can't be done completely."""
    hit = await target.find_one(name_path, relative_path)
    renamed = await target.refactoring.rename(
        hit, new_name, call.author, seen=await seen_by(call, target, hit.path, hit.name_path), dry_run=dry_run
    )
    if renamed.added:
        call.remark(
            "The language server's own rename left out places that refer to the symbol; they are renamed, too: "
            f"{_listed(renamed.added)}"
        )
    if renamed.left:
        call.remark(
            "The old name still stands in these lines, in strings or comments or as another symbol's name (an "
            f"override, for example); look whether it should: {_listed(renamed.left)}"
        )
    told: dict[str, Any] | str = answer(call, target, renamed.edited)
    return told if isinstance(told, str) else {"changed_places": renamed.places, **told}


@tool(
    "Delete an unused symbol",
    edits=True,
    destructive=True,
    idempotent=False,
    aliases={"name_path_pattern": "name_path"},
)
async def safe_delete_symbol(
    call: ToolCall, target: Project, name_path: NamePath, relative_path: InFile = "", dry_run: DryRun = False
) -> Any:
    """Deletes a symbol if nothing uses it; else tells where it is used and changes nothing."""
    hit = await target.find_one(name_path, relative_path)
    seen = await seen_within(call, target, hit)
    return answer(call, target, await target.refactoring.safe_delete(hit, call.author, seen=seen, dry_run=dry_run))


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return ", ".join(places[:LISTED]) + more
