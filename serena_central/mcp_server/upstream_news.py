"""Tells clients that the tools of their upstreams are others: those that have listed any."""

import anyio
from anyio.abc import TaskStatus

from serena_central.core.event_kinds import UpstreamListed
from serena_central.core.events import EventBus
from serena_central.core.periodic import follow
from serena_central.mcp_server.protocol import TOOLS_CHANGED
from serena_central.mcp_server.sender import ClientConnection, ClientConnections
from serena_central.mcp_server.subscriptions import LISTS, Subscriptions
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session


class UpstreamNews:
    """Belongs to the event loop's thread."""

    def __init__(self, sessions: SessionManager, subscriptions: Subscriptions) -> None:
        self._sessions = sessions
        self._subscriptions = subscriptions
        self._connections = ClientConnections()
        """Of clients of the handshake era that were shown tools of upstreams."""

    def met(self, session: Session, connection: ClientConnection) -> None:
        """A client of the handshake era has listed tools of upstreams."""
        self._connections.add(session, connection)

    async def run(self, bus: EventBus, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs for ever; belongs to the composition root's task group."""
        with bus.subscribe(UpstreamListed) as news:
            task_status.started()
            await follow("telling clients of changed lists", news, lambda _: self._tell())

    async def _tell(self) -> None:
        for session in self._sessions.sessions():
            if session.disconnected_at is not None:
                continue
            for name in LISTS:
                self._subscriptions.list_changed(session, name)
            connection = self._connections.get(session)
            if connection is not None:
                connection.notify(TOOLS_CHANGED)
