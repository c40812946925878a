"""Tells clients that a memory or an upstream's resource changed, or that there are other memories: subscribers, and
those that have listed resources."""

from weakref import WeakKeyDictionary

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import ToolRefused
from serena_central.core.event_kinds import EditApplied, UpstreamResourceUpdated
from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import follow
from serena_central.mcp_server.protocol import RESOURCE_UPDATED, RESOURCES_CHANGED
from serena_central.mcp_server.resources import memory_uri
from serena_central.mcp_server.sender import ClientConnection, ClientConnections
from serena_central.mcp_server.subscriptions import MOST_URIS, Subscriptions
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session

FOLDER = "memories/"


class ResourceNews:
    """Belongs to the event loop's thread."""

    def __init__(self, sessions: SessionManager, subscriptions: Subscriptions) -> None:
        self._sessions = sessions
        self._subscriptions = subscriptions
        self._wanted: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()
        self._connections = ClientConnections()
        """Of clients of the handshake era that have asked for resources."""

    def met(self, session: Session, connection: ClientConnection) -> None:
        """A client of the handshake era has listed resources, or subscribed to one."""
        self._connections.add(session, connection)

    def subscribe(self, session: Session, uri: str) -> None:
        """Raises ToolRefused: it has too many."""
        wanted = self._wanted.setdefault(session, set())
        if uri not in wanted and len(wanted) >= MOST_URIS:
            raise ToolRefused(
                f"This client has subscribed to {MOST_URIS} resources, which is the limit. Unsubscribe from one first."
            )
        wanted.add(uri)

    def unsubscribe(self, session: Session, uri: str) -> None:
        self._wanted.get(session, set()).discard(uri)

    async def run(self, bus: EventBus, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs for ever; belongs to the composition root's task group."""
        with bus.subscribe(EditApplied, UpstreamResourceUpdated) as news:
            task_status.started()
            await follow("telling clients of changed resources", news, self._take)

    async def _take(self, event: Event) -> None:
        if isinstance(event, EditApplied) and event.tool.endswith("_memory"):
            self._tell(event)
        elif isinstance(event, UpstreamResourceUpdated):
            self._tell_subscriber(event.session or "", event.uri)

    def _tell_subscriber(self, session_id: str, uri: str) -> None:
        """A resource of an upstream has changed that this session, and maybe no other, has subscribed to."""
        session = next((one for one in self._sessions.sessions() if one.id == session_id), None)
        if session is None or session.disconnected_at is not None:
            return
        self._subscriptions.resource_updated(session, uri)
        connection = self._connections.get(session)
        if connection is not None:
            connection.notify(RESOURCE_UPDATED, {"uri": uri})

    def _tell(self, event: EditApplied) -> None:
        names = [path.rpartition(FOLDER)[2].removesuffix(".md") for path in event.files if FOLDER in path]
        for session in self._sessions.sessions():
            project = session.project
            if project is None or project.root != event.root or session.disconnected_at is not None:
                continue
            uris = [memory_uri(project.name, name) for name in names]
            for uri in uris:
                self._subscriptions.resource_updated(session, uri)
            if event.tool != "edit_memory":
                self._subscriptions.list_changed(session, "resources")
            connection = self._connections.get(session)
            if connection is None:
                continue
            for uri in self._wanted.get(session, set()).intersection(uris):
                connection.notify(RESOURCE_UPDATED, {"uri": uri})
            if event.tool != "edit_memory":
                connection.notify(RESOURCES_CHANGED)
