"""Notification streams for clients of the modern era: one set of subscribers per session."""

from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakKeyDictionary

from serena_central.sessions.session import Session

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

ListName = Literal["tools", "resources", "prompts"]

LISTS: tuple[ListName, ...] = get_args(ListName)

MOST_STREAMS = 32
"""Open ones of one session; of a shared one, of all its clients."""

MOST_UNREAD = 100


class Subscriptions:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Session, tuple[InMemorySubscriptionBus, ListenHandler]] = WeakKeyDictionary()

    async def listen(
        self, session: Session, context: "ServerRequestContext[Any, Any]", params: "SubscriptionsListenRequestParams"
    ) -> "SubscriptionsListenResult":
        """Serves one stream until its client leaves, or `close`."""
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler  # who listens has loaded the SDK

        if session not in self._of:
            bus = InMemorySubscriptionBus()
            self._of[session] = bus, ListenHandler(bus, max_subscriptions=MOST_STREAMS, max_buffered_events=MOST_UNREAD)
        return await self._of[session][1](context, params)

    async def list_changed(self, session: Session, name: ListName) -> None:
        """Tells the session's subscribers that a list is another one."""
        found = self._of.get(session)
        if found is not None:
            from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

            events = {"tools": ToolsListChanged, "resources": ResourcesListChanged, "prompts": PromptsListChanged}
            await found[0].publish(events[name]())

    async def resource_updated(self, session: Session, uri: str) -> None:
        """Tells those of the session's subscribers who asked for this resource."""
        found = self._of.get(session)
        if found is not None:
            from mcp.server.subscriptions import ResourceUpdated

            await found[0].publish(ResourceUpdated(uri=uri))

    def close(self, credential: str | None = None) -> None:
        """Ends the streams of one credential's sessions, or all."""
        for session, (_, handler) in list(self._of.items()):
            if credential in (None, session.credential):
                handler.close()
