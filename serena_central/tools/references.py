"""The tool that finds who uses a symbol: in one project, or in all of those that a call names."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from serena_central.projects.project import Project
from serena_central.projects.superrepo.uses import Declarations, declarations
from serena_central.projects.views import ReferenceView
from serena_central.symbols.kinds import kind_name, kind_numbers
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.seen import saw_uses
from serena_central.tools.symbols import InFile, Kinds, NamePath, NotKinds, is_wanted, location, remark_references


async def _declarations(_call: ToolCall, projects: Sequence[Project], arguments: Mapping[str, Any]) -> Declarations:
    """Over several projects: which of them declares the symbol, so that all can be asked for its uses."""
    return await declarations(projects, arguments["name_path"], arguments["relative_path"])


@tool("Find references", aliases={"name_path_pattern": "name_path"}, together=_declarations)
async def find_referencing_symbols(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    relative_path: InFile = "",
    include_kinds: Kinds = [],  # noqa: B006
    exclude_kinds: NotKinds = [],  # noqa: B006
) -> Shaped:
    """Symbols that use a symbol, each use with a line around it; of several projects, in all."""
    include, exclude = kind_numbers(include_kinds), kind_numbers(exclude_kinds)
    if isinstance(call.together, Declarations):
        found = await call.together.uses_in(target)
    else:
        found = await target.relations.references(await target.find_one(name_path, relative_path))
    remark_references(call, found)
    used = [use for use in found.references if is_wanted(use.holder.kind if use.holder else 1, include, exclude)]
    saw_uses(call, target, used)
    per_file = Counter(use.path for use in used)
    return shaped(
        lambda: _references(used, context=True),
        Form("without context", lambda: _references(used, context=False)),
        Form("as counts per file", lambda: per_file),
        Form("as a total", lambda: f"{len(used)} references in {len(per_file)} files"),
        narrow="Filter by include_kinds or exclude_kinds.",
    )


def _references(used: Sequence[ReferenceView], *, context: bool) -> dict[str, dict[str, list[dict[str, Any]]]]:
    answer: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for use in used:
        kind = kind_name(use.holder.kind) if use.holder else "File"
        entry: dict[str, Any] = {
            "name_path": use.holder.name_path if use.holder else "<file>",
            "body_location": location(use.holder.range if use.holder else use.range),
        }
        if context:
            entry["content_around_reference"] = use.context
        answer.setdefault(use.path, {}).setdefault(kind, []).append(entry)
    return answer
