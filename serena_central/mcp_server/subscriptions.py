"""Notices to clients of the modern era, by the streams that they open (`subscriptions/listen`): one set per session.

What waits for a client that reads slowly is bounded; its stream ends there, and it asks again and reads what changed.
"""

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio
import msgspec

from serena_central.core.errors import ToolRefused
from serena_central.core.tracing import new_call_id
from serena_central.mcp_server.protocol import LIST_CHANGED, RESOURCE_UPDATED, SUBSCRIBED, SUBSCRIPTION_ID_KEY
from serena_central.mcp_server.resources import OWN_SCHEME
from serena_central.mcp_server.sse import Message
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller

ListName = Literal["tools", "resources", "prompts"]

LISTS: tuple[ListName, ...] = get_args(ListName)

MOST_STREAMS = 32
"""Open ones of one session; of a shared one, of all its clients."""

MOST_UNREAD = 100

MOST_URIS = 1000
"""Resources that a session subscribes to in the handshake era, and one stream in the modern era."""

UNSUBSCRIBED_S = 5.0
"""How long upstreams may take to be told that a client's stream has ended."""


class Wanted(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The notices that a client asks for, in wire form."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None

    @property
    def honored(self) -> "Wanted":
        """What of it asks for something."""
        return Wanted(*(getattr(self, name) or None for name in self.__struct_fields__))


class Subscription:
    """One stream, as long as its client follows it."""

    def __init__(self, request_id: int | str, wanted: Wanted) -> None:
        self.meta = {SUBSCRIPTION_ID_KEY: request_id}
        self._wanted = wanted.honored
        self._uris = frozenset(self._wanted.resource_subscriptions or ())
        self._unread: deque[Message] = deque()
        self._news = anyio.Event()
        self._is_over = False

    @property
    def acknowledgement(self) -> Message:
        """What comes first on the stream."""
        return self._message(SUBSCRIBED, {"notifications": msgspec.to_builtins(self._wanted)})

    def list_changed(self, name: ListName) -> None:
        if getattr(self._wanted, f"{name}_list_changed"):
            self._add(self._message(LIST_CHANGED.format(name), {}))

    def resource_updated(self, uri: str) -> None:
        if uri in self._uris:
            self._add(self._message(RESOURCE_UPDATED, {"uri": uri}))

    def end(self) -> None:
        """Ends the stream, after what waits."""
        self._is_over = True
        self._news.set()

    async def next(self) -> Message | None:
        """The next notice; None when the stream ends."""
        while not self._unread:
            if self._is_over:
                return None
            self._news = anyio.Event()
            await self._news.wait()
        return self._unread.popleft()

    def _message(self, method: str, params: Mapping[str, Any]) -> Message:
        return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": self.meta}}

    def _add(self, message: Message) -> None:
        if message in self._unread:
            return
        if len(self._unread) == MOST_UNREAD:
            self.end()
        if not self._is_over:
            self._unread.append(message)
            self._news.set()


class Subscriptions:
    """Belongs to the event loop's thread."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller = caller
        self._of: WeakKeyDictionary[Session, set[Subscription]] = WeakKeyDictionary()

    @asynccontextmanager
    async def opened(self, session: Session, request_id: int | str, wanted: Wanted) -> AsyncGenerator[Subscription]:
        """A stream, while its client follows it. Upstreams are told which of their resources it is about.

        Raises:
            ToolRefused: the session has too many, or it is about too many resources.
        """
        if len(wanted.resource_subscriptions or ()) > MOST_URIS:
            raise ToolRefused(f"A stream of notices is about at most {MOST_URIS} resources. Name fewer.")
        streams = self._of.setdefault(session, set())
        if len(streams) >= MOST_STREAMS:
            raise ToolRefused(
                f"This session has {MOST_STREAMS} streams of notices open, which is the limit. Close one first."
            )
        subscription = Subscription(request_id, wanted)
        theirs, key = self._caller.upstream_contents, new_call_id()
        uris = [uri for uri in wanted.resource_subscriptions or () if not uri.startswith(OWN_SCHEME)]
        streams.add(subscription)
        try:
            if theirs is not None:
                for uri in uris:
                    await theirs.subscribe(session, uri, key)
            yield subscription
        finally:
            streams.discard(subscription)
            if theirs is not None and uris:
                with anyio.move_on_after(UNSUBSCRIBED_S, shield=True):
                    for uri in uris:
                        await theirs.unsubscribe(session, uri, key)

    def list_changed(self, session: Session, name: ListName) -> None:
        """Tells the session's subscribers that a list is another one."""
        for subscription in self._of.get(session, ()):
            subscription.list_changed(name)

    def resource_updated(self, session: Session, uri: str) -> None:
        """Tells those of the session's subscribers who asked for this resource."""
        for subscription in self._of.get(session, ()):
            subscription.resource_updated(uri)

    def close(self, credential: str | None = None) -> None:
        """Ends the streams of one credential's sessions, or all."""
        for session, streams in list(self._of.items()):
            if credential in (None, session.credential):
                for subscription in streams:
                    subscription.end()
