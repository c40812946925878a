"""Classifies the server's tools by their effect, in the terms of permission rules."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from serena_central.tools.catalogue import Tool
from serena_central.tools.upstream_tool import UpstreamTool

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective
    from serena_central.claude_config.permissions import Decision
    from serena_central.claude_config.rules import Effect

SHELL = "execute_shell_command"

_EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")
EDIT_HOOKS = ("Edit", "Write", "MultiEdit")
"""The format's tools that hooks at edits name."""

_READING = ("Read", "NotebookRead")

_SEARCHES = {
    "search_for_pattern": ("Grep",),
    "find_file": ("Glob",),
    "list_dir": ("Glob", "LS"),
}
"""Tools that stand for more of the format's than for Read."""


def stands_for(tool: Tool) -> "tuple[Effect, tuple[str, ...]]":
    """What a tool of ours does, and the tools of the format whose bare rules hold for it."""
    if tool.name == SHELL:
        return "run", ("Bash",)
    if tool.edits:
        return "edit", (*_EDITING, *(_READING if tool.on_project else ()))
    reads = tool.on_project and tool.about in ("code", "files")
    return "read", (*(_READING if reads else ()), *_SEARCHES.get(tool.name, ()))


def switched_off(found: "Effective", tools: Iterable[Tool]) -> frozenset[str]:
    """Tools that some rule refuses whatever they are called with."""
    if not any(one.verdict != "allow" and one.rule.argument is None for one in found.permissions.rules):
        return frozenset()
    return frozenset(tool.name for tool in tools if decision_on(found, tool) is not None)


def decision_on(found: "Effective", tool: Tool) -> "Decision | None":
    """The rule that refuses a tool altogether, if one does. For an upstream's, a rule may name it as it is called here,
    or as a client would name it that starts the upstream itself; whatever it is renamed to."""
    if isinstance(tool, UpstreamTool):
        decision = found.permissions.upstream(tool.server, tool.own_name)
        if decision is None and tool.usual_name != tool.name:
            decision = found.permissions.tool(tool.usual_name, *stands_for(tool))
        if decision is not None:
            return decision
    return found.permissions.tool(tool.name, *stands_for(tool))


def hook_names(tool: Tool) -> "tuple[Effect, tuple[str, ...]]":
    """What a tool does, and the names by which hooks may mean it: its own, those in clients, and those of the format's
    tools that it stands for. An upstream's has the format's name first: hooks are told it."""
    effect, kinds = stands_for(tool)
    if isinstance(tool, UpstreamTool):
        return effect, tuple(dict.fromkeys((f"mcp__{tool.server}__{tool.own_name}", tool.name, tool.usual_name)))
    if effect == "edit":
        kinds = EDIT_HOOKS if tool.on_project and tool.about != "notes" else ()
    return effect, _names_of(tool.name, kinds)


@lru_cache(maxsize=512)
def _names_of(name: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    return name, *(f"mcp__{server}__{name}" for server in ("serena", "serena-central")), *kinds
