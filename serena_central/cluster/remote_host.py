"""The front's side of the boundary: a tool run becomes a message to a project host, and its reply the run's outcome."""

import json
from pathlib import Path
from typing import Protocol

import anyio

from serena_central.cluster.messages import decode_reply, encode_run, failure_of, fill
from serena_central.cluster.remote_session import apply_changes
from serena_central.core import progress, tracing
from serena_central.core.errors import ClusterError
from serena_central.sessions.session import ActiveProject
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import Services
from serena_central.tools.tool_run import ToolReply, ToolRun


class Wire(Protocol):
    """The way to one project host."""

    async def send(self, call: str, message: bytes, on_progress: progress.Listener | None) -> bytes:
        """The reply to a call's message. A cancelled wait cancels the run at the host."""
        ...


class RemoteHost:
    """Has tools run by one project host."""

    def __init__(
        self,
        wire: Wire,
        *,
        services: Services,
    ) -> None:
        """`services` keep the sessions, what these saw, their halts, and the history of edits."""
        self._wire = wire
        self._services = services

    async def run(self, tool: Tool, run: ToolRun, reply: ToolReply) -> Answer:
        """Sends the run, and brings its session and its reply to where the host left them."""
        services = self._services
        if tool.edits or tool.journaled:
            await services.views.load(run.session)
        user = services.users.restricted(run.session.credential) if services.users.present else None
        message = encode_run(tool, run, anyio.current_time(), user)
        said = decode_reply(await self._wire.send(run.id, message, progress.listener()))
        fill(reply, said)
        apply_changes(run.session, said.changes, services.views)
        if (halt := said.changes.halt) is not None:
            services.gating.halt(run.session.id, halt.reason, halt.hook, Path(halt.root))
        if (measured := tracing.current_phases()) is not None:
            measured.add(said.resources.spent_s, said.resources.together_s, said.resources.servers)
        for row in said.edits:
            if row.repeat is not None and reply.answer is not None:
                row.answer = json.dumps(reply.answer.blocks)
            services.history.made_elsewhere(row)
        if len(reply.projects) == 1:
            (only,) = reply.projects
            services.sessions.works_on(run.session, ActiveProject(only.name, str(only.root)))
        failure = failure_of(said)
        if failure is not None:
            raise failure
        if reply.answer is None:
            raise ClusterError("The project host sent no answer.")
        return reply.answer
