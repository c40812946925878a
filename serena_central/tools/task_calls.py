"""The sessions of tasks, and calls of tools in them, for runners that are part of this server."""

from functools import partial
from pathlib import Path
from typing import Any

from serena_central.agents.runners.messages_api import OfferedTool, ToolAnswer
from serena_central.agents.tasks import TaskSpec
from serena_central.gates.engine import matching
from serena_central.gates.events import SUBAGENT_START, SUBAGENT_STOP, GateEvent
from serena_central.sessions.session import ClientIdentity, Session
from serena_central.tools.call import ToolCaller
from serena_central.tools.context import Services
from serena_central.tools.event_gate import EventGate
from serena_central.tools.gating import GateAnswer

PRE_COMPACT = "PreCompact"


class TaskCalls:
    """The same way as an agent's call."""

    def __init__(self, services: Services, caller: ToolCaller, credential: str) -> None:
        self._services = services
        self._sessions = services.sessions
        self._caller = caller
        self._credential = credential

    def session(self, spec: TaskSpec) -> Session:
        """The task's session, which works in the task's folder; made if there is none yet.

        Raises:
            SerenaCentralError
        """
        return self._sessions.identify(
            ClientIdentity(
                credential=self._credential,
                explicit_id=spec.session,
                client_name=f"task {spec.agent}" if spec.agent else "task",
                working_folder=spec.root,
            )
        )

    def end_session(self, spec: TaskSpec) -> None:
        """The task is over: its session makes room for others where there are too many."""
        self._sessions.disconnect(spec.session, "its task is over", for_good=True)

    async def call(self, spec: TaskSpec, tool: str, arguments: dict[str, Any]) -> str:
        """The answer's text.

        Raises:
            SerenaCentralError
        """
        answer = await self._caller.call(self.session(spec), tool, arguments)
        return answer.blocks[0]

    async def tools(self, spec: TaskSpec) -> list[OfferedTool]:
        """What is listed for the task's session, of this server and its hub."""
        session = self.session(spec)
        found = [*self._caller.tools_for(session), *await self._caller.upstreams_tools_for(session)]
        return [OfferedTool(one.name, one.description, one.schema) for one in found]

    async def answer(self, spec: TaskSpec, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """The answer of a call with its notes.

        Raises:
            SerenaCentralError
        """
        answer = await self._caller.call(self.session(spec), tool, arguments)
        return ToolAnswer("\n".join(answer.blocks), answer.failed)

    async def compacting(self, spec: TaskSpec, trigger: str) -> str | None:
        """Runs the hooks for PreCompact; why one of them stops it, else None."""
        more = {"trigger": trigger, "custom_instructions": ""}
        answer = await self._hooks(GateEvent(PRE_COMPACT, spec.session, Path(spec.root), why=trigger, more=more))
        return answer.reason if answer.decision == "deny" else None

    async def started(self, spec: TaskSpec) -> str:
        """Runs the hooks for SubagentStart; what they add to the task's instruction."""
        return (await self._hooks(_subagent(SUBAGENT_START, spec))).context

    async def stopping(self, spec: TaskSpec, text: str, *, again: bool) -> str | None:
        """Runs the hooks for SubagentStop; why one of them blocks the task's end, else None. `again`: one did before.
        `text` is the final one so far."""
        more = {"stop_hook_active": again, "last_assistant_message": text}
        answer = await self._hooks(_subagent(SUBAGENT_STOP, spec, **more)._replace(summary=text))
        return answer.reason if answer.decision == "deny" and not answer.halted else None

    async def _hooks(self, event: GateEvent) -> GateAnswer:
        found = self._services.claude.of(event.root)
        if found is None or not found.has_hooks:
            return GateAnswer()
        gate = EventGate(self._services, found, event._replace(client="task"))
        matched = matching(self._services.gating.rules(event.root, found).of(event.name), event)
        for one in matched:
            if one.hook.background:
                self._services.gating.start(partial(gate.run, [one], ()))
        waited = [one for one in matched if not one.hook.background]
        return await gate.run(waited, ()) if waited else GateAnswer()


def _subagent(name: str, spec: TaskSpec, **more: Any) -> GateEvent:
    """A task is an agent of its own session; Claude Code calls one without a definition general-purpose."""
    kind = spec.agent or "general-purpose"
    said = {"agent_id": spec.id, "agent_type": kind, **more}
    return GateEvent(name, spec.session, Path(spec.root), why=kind, more=said)
