"""Tools that follow call and type hierarchies."""

from collections import Counter
from typing import Annotated, Any, Literal

from msgspec import Meta

from serena_central.projects.navigation.symbol_hierarchies import NODES_LIMIT, UPWARD, Direction
from serena_central.projects.navigation.symbol_views import HierarchyNode
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_hierarchies import hierarchy_in, is_structural
from serena_central.projects.superrepo.sibling_references import Declarations
from serena_central.symbols.symbol import kind_name
from serena_central.tools.answer import EXAMPLES, Form, Shaped, in_brief, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_answer
from serena_central.tools.symbols import InFile, NamePath, find_declarations
from serena_central.tools.unasked_modules import note_alone

Depth = Annotated[int, Meta(ge=1, le=10, description="Levels to follow")]


@tool(
    "Call hierarchy",
    answers="tree of symbols",
    shown="optional",
    aliases={"name_path_pattern": "name_path"},
    together=find_declarations,
    if_empty="No calls were found. find_referencing_symbols lists other references.",
)
async def get_call_hierarchy(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    relative_path: InFile = "",
    direction: Annotated[Literal["incoming", "outgoing"], Meta(description="Callers or callees")] = "incoming",
    depth: Depth = 2,
) -> Shaped:
    """Callers or callees of a function, as a tree. Cycles are marked and not followed."""
    return await _hierarchy(call, target, name_path, relative_path, direction, depth)


@tool(
    "Type hierarchy",
    answers="tree of symbols",
    shown="optional",
    aliases={"name_path_pattern": "name_path"},
    together=find_declarations,
    if_empty="No related types were found.",
)
async def get_type_hierarchy(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    relative_path: InFile = "",
    direction: Annotated[Literal["supertypes", "subtypes"], Meta(description="Supertypes or subtypes")] = "subtypes",
    depth: Depth = 2,
) -> Shaped:
    """Supertypes or subtypes of a class or interface, as a tree. Cycles are marked and not followed."""
    return await _hierarchy(call, target, name_path, relative_path, direction, depth)


async def _hierarchy(
    call: ToolCall, target: Project, name_path: str, relative_path: str, direction: Direction, depth: int
) -> Shaped:
    if isinstance(call.together, Declarations):
        nodes, note = await hierarchy_in(target, call.together, direction, depth)
        top = {"name_path": name_path}
    else:
        hit = await target.find_one(name_path, relative_path)
        nodes, note = await target.navigation.hierarchies.of(hit, direction, depth)
        top = {"name_path": hit.name_path, "relative_path": hit.path}
        if direction in UPWARD or (direction == "supertypes" and is_structural(target, hit.path)):
            note_alone(call, target)
    note_answer(call, note)
    if _count(nodes) >= NODES_LIMIT:
        call.note(f"Truncated: more than {NODES_LIMIT} symbols. Use a smaller depth.")
    return shaped(
        lambda: {**top, direction: [_as_json(node, direction) for node in nodes]},
        Form("without deeper levels", lambda: {**top, direction: [node.in_short for node in nodes]}),
        Form("as counts per folder, with the first ones", lambda: {**top, direction: _in_brief(nodes)}),
        narrow="Use a smaller depth.",
    )


def _in_brief(nodes: list[HierarchyNode]) -> dict[str, Any]:
    inside = Counter(node.path for node in nodes if not node.outside)
    return in_brief(_count(nodes), inside, [node.in_short for node in nodes[:EXAMPLES]])


def _count(nodes: list[HierarchyNode]) -> int:
    return sum(1 + _count(node.below) for node in nodes)


def _as_json(node: HierarchyNode, direction: Direction) -> dict[str, Any]:
    answer: dict[str, Any] = {"name": node.name, "kind": kind_name(node.kind)}
    if node.outside:
        answer["outside_project"] = f"{node.path}:{node.line}"
    else:
        answer |= {"relative_path": node.path, "line": node.line}
    if node.cycle:
        answer["cycle"] = True
    if node.below:
        answer[direction] = [_as_json(below, direction) for below in node.below]
    return answer
