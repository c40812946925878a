"""Calls of tools in the sessions of tasks, for runners that are part of this server."""

from typing import Any

from serena_central.agents.tasks import TaskSpec
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity
from serena_central.tools.call import ToolCaller


class TaskCalls:
    """The same way as an agent's call."""

    def __init__(self, sessions: SessionManager, caller: ToolCaller, credential: str) -> None:
        self._sessions = sessions
        self._caller = caller
        self._credential = credential

    async def call(self, spec: TaskSpec, tool: str, arguments: dict[str, Any]) -> str:
        """The answer's text.

        Raises:
            SerenaCentralError
        """
        session = self._sessions.identify(
            ClientIdentity(
                credential=self._credential,
                explicit_id=spec.session,
                client_name=f"task {spec.agent}" if spec.agent else "task",
                working_folder=spec.root,
            )
        )
        answer = await self._caller.call(session, tool, arguments)
        return answer.blocks[0]
