"""What the sessions of tasks may call: the tools of their agent's definition, and no more than their parents'.

A rule with an argument (`Bash(git log:*)`) is for the runner's own tools, which can hold a call to it; of ours it
allows none.
"""

from dataclasses import dataclass

from serena_central.agents.tasks import TaskSpec
from serena_central.core.errors import TaskRefused
from serena_central.core.lru import Lru
from serena_central.tools.catalogue import Tool
from serena_central.tools.tool_effects import EDIT_HOOKS, stands_for
from serena_central.tools.upstream_tool import UpstreamTool

MOST_KEPT = 4096
"""Sessions of tasks that are over, which may call nothing any more."""

OWN_SERVERS = ("serena", "serena-central")

_KINDS = {"task": ("Task", "Agent"), "task_result": ("Task", "Agent")}


@dataclass(frozen=True)
class _Grant:
    agent: str | None
    tools: frozenset[str] | None
    disallowed: frozenset[str]
    parent: "_Grant | None"

    def allows(self, tool: Tool) -> bool:
        names = _names(tool)
        if any(map(self.disallowed.__contains__, names)):
            return False
        if self.tools is not None and not any(map(self.tools.__contains__, names)):
            return False
        return self.parent is None or self.parent.allows(tool)


class TaskGrants:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._grants: dict[str, _Grant] = {}
        self._over: Lru[str, bool] = Lru(MOST_KEPT)
        self._sessions: dict[str, str] = {}
        """Task id → its session."""

    def give(self, spec: TaskSpec) -> None:
        """What the task's session may call from now on.

        Raises:
            TaskRefused: the task that starts it is over, and so are the rights that bound its own.
        """
        if spec.called_by in self._over or (spec.parent and spec.parent not in self._sessions):
            raise TaskRefused("The task that starts it is over.")
        parent = self._grants.get(self._sessions.get(spec.parent or "", ""))
        tools = None if spec.tools is None else frozenset(spec.tools)
        self._grants[spec.session] = _Grant(spec.agent, tools, frozenset(spec.disallowed_tools), parent)
        self._sessions[spec.id] = spec.session

    def end(self, session: str) -> None:
        """Its task is over: it may call nothing any more."""
        if self._grants.pop(session, None) is not None:
            self._over[session] = True
            self._sessions = {task: one for task, one in self._sessions.items() if one != session}

    def refusal(self, tool: Tool, session: str) -> str | None:
        """Why the session of a task may not call a tool; None if it may, or is no task's."""
        grant = self._grants.get(session)
        if grant is not None:
            if grant.allows(tool):
                return None
            who = f"the agent {grant.agent!r}" if grant.agent else "this task"
            return f"{tool.name} is not among the tools of {who}."
        if self._over and session in self._over:
            return "This session's task is over."
        return None


def _names(tool: Tool) -> tuple[str, ...]:
    """All by which a definition may mean a tool."""
    if isinstance(tool, UpstreamTool):
        server = f"mcp__{tool.server}"
        return tool.name, tool.usual_name, f"{server}__{tool.own_name}", server, f"{server}__*"
    own = [f"mcp__{server}" for server in OWN_SERVERS]
    effect, kinds = stands_for(tool)
    # For a rule that denies, an edit is a read as well; who may read may not therefore edit.
    kinds = _KINDS.get(tool.name) or (EDIT_HOOKS if effect == "edit" else kinds)
    return tool.name, *own, *(f"{one}__*" for one in own), *(f"{one}__{tool.name}" for one in own), *kinds
