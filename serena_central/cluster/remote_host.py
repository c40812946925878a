"""The front's side of the boundary: a tool run becomes a message to a project host, and its reply the run's outcome."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import anyio

from serena_central.cluster.host_wire import HostGone, Left
from serena_central.cluster.messages import ReplyMessage, decode_reply, encode_run, failure_of, fill
from serena_central.cluster.remote_session import apply_changes
from serena_central.core import progress, tracing
from serena_central.core.errors import CallCancelled, ClusterError
from serena_central.sessions.session import ActiveProject, Session
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import Services
from serena_central.tools.tool_run import ToolReply, ToolRun


class Wire(Protocol):
    """The way to one project host."""

    async def send(
        self, call: str, message: bytes, take: Callable[[bytes], None], on_progress: progress.Listener | None
    ) -> None:
        """Sends a call's message; returns when `take` has taken the reply. A cancelled wait cancels the run at the
        host, and its reply is taken nonetheless."""
        ...


class RemoteHost:
    """Has tools run by one project host."""

    writes_here = False

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
        replies: list[ReplyMessage] = []

        def take(answered: bytes) -> None:
            said = decode_reply(answered)
            self._note_edits(said)
            replies.append(said)

        await self._wire.send(run.id, message, take, progress.listener())
        if not replies:
            raise ClusterError("The project host's reply can't be read. Run the same version everywhere.")
        (said,) = replies
        self._bring(run.session, reply, said)
        failure = failure_of(said)
        if isinstance(failure, CallCancelled):  # not by whoever waits here: the host is moved
            raise HostGone("it is ending", Left.ENDED, begun=bool(said.edits))
        if failure is not None:
            raise failure
        if reply.answer is None:
            raise ClusterError("The project host sent no answer.")
        return reply.answer

    def _bring(self, session: Session, reply: ToolReply, said: ReplyMessage) -> None:
        """Brings a session and a reply to where the host left them."""
        services = self._services
        fill(reply, said)
        apply_changes(session, said.changes, services.views)
        if (activated := said.changes.activated) is not None:
            services.sessions.activate(session, activated)
        if (halt := said.changes.halt) is not None:
            services.gating.halt(session.id, halt.reason, halt.hook, Path(halt.root))
        if (measured := tracing.current_phases()) is not None:
            measured.add(said.resources.spent_s, said.resources.together_s, said.resources.servers)
        if len(reply.projects) == 1:
            (only,) = reply.projects
            services.sessions.works_on(session, ActiveProject(only.name, str(only.root)))

    def _note_edits(self, said: ReplyMessage) -> None:
        for row in (*said.edits, *said.earlier_edits):
            if row.repeat is not None and said.answer is not None and row in said.edits:
                row.answer = json.dumps(said.answer.blocks)
            self._services.history.made_elsewhere(row)
