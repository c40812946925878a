"""Notification streams for clients of the modern era: one set of subscribers per session."""

from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from serena_central.sessions.session import Session

MOST_STREAMS = 32
"""Open ones of one session; of a shared one, of all its clients."""

MOST_UNREAD = 100


class Subscriptions:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Session, tuple[InMemorySubscriptionBus, ListenHandler]] = WeakKeyDictionary()

    async def listen(
        self, session: Session, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serves one stream until its client leaves, or `close`."""
        if session not in self._of:
            bus = InMemorySubscriptionBus()
            self._of[session] = bus, ListenHandler(bus, max_subscriptions=MOST_STREAMS, max_buffered_events=MOST_UNREAD)
        return await self._of[session][1](context, params)

    async def publish(self, session: Session, event: ServerEvent) -> None:
        """Tells the session's subscribers."""
        found = self._of.get(session)
        if found is not None:
            await found[0].publish(event)

    def close(self) -> None:
        """Ends all streams, so that the server can stop."""
        for _, handler in list(self._of.values()):
            handler.close()
