"""The sessions of tasks, and calls of tools in them, for runners that are part of this server."""

from typing import Any

from serena_central.agents.tasks import TaskSpec
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity, Session
from serena_central.tools.call import ToolCaller


class TaskCalls:
    """The same way as an agent's call."""

    def __init__(self, sessions: SessionManager, caller: ToolCaller, credential: str) -> None:
        self._sessions = sessions
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

    async def call(self, spec: TaskSpec, tool: str, arguments: dict[str, Any]) -> str:
        """The answer's text.

        Raises:
            SerenaCentralError
        """
        answer = await self._caller.call(self.session(spec), tool, arguments)
        return answer.blocks[0]
