"""Who has subscribed to which resource of an upstream. Updates reach these sessions alone, ten times a second."""

from collections.abc import Callable
from typing import NamedTuple

import anyio

from serena_central.core.errors import ToolRefused
from serena_central.core.quoting import quoted

PAUSE_S = 0.1
"""Between two passes: a resource that changes all the time is one update per pass."""

MOST_UPDATED = 1000
"""URIs between two passes; of more, those that somebody has subscribed to count as updated, all of them."""

MOST_URIS = 1000
"""That one subscriber may have at one upstream."""


class Subscriber(NamedTuple):
    """`stream`: in the modern era a session subscribes for each of its streams."""

    session: str
    stream: str = ""


class Subscribers:
    """Belongs to the event loop's thread."""

    def __init__(self, server: str, send: Callable[[str, str], None]) -> None:
        """`send` takes a session's id and the URI of what has changed; it never blocks."""
        self._server = server
        self._send = send
        self._of: dict[str, set[Subscriber]] = {}
        self._updated: dict[str, None] = {}
        self._are_too_many = False
        self._news = anyio.Event()

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def uris(self) -> list[str]:
        return list(self._of)

    def add(self, uri: str, who: Subscriber) -> None:
        """Raises ToolRefused: it has too many."""
        known = self._of.get(uri, ())
        if who not in known and sum(who in each for each in self._of.values()) >= MOST_URIS:
            raise ToolRefused(
                f"This client has subscribed to {MOST_URIS} resources of the MCP server {quoted(self._server)}, which "
                "is the limit. Unsubscribe from one first."
            )
        self._of.setdefault(uri, set()).add(who)

    def remove(self, uri: str, who: Subscriber) -> bool:
        """Returns whether that was the last one."""
        found = self._of.get(uri)
        if found is None:
            return False
        found.discard(who)
        if not found:
            del self._of[uri]
        return not found

    def forget(self, session: str) -> None:
        """The session has ended. What only it had subscribed to is ignored from now on."""
        for uri, found in list(self._of.items()):
            for who in [one for one in found if one.session == session]:
                self.remove(uri, who)

    def updated(self, uri: str) -> None:
        """The server says that a resource has changed."""
        if len(self._updated) < MOST_UPDATED:
            self._updated[uri] = None
            self._news.set()
        else:
            self._are_too_many = True

    async def run(self) -> None:
        """Passes updates on until it is cancelled."""
        while True:
            await self._news.wait()
            self._news, updated = anyio.Event(), self._updated
            if self._are_too_many:
                updated |= dict.fromkeys(self._of)
            self._updated, self._are_too_many = {}, False
            for uri in updated:
                for session in self._sessions(uri):
                    self._send(session, uri)
            await anyio.sleep(PAUSE_S)

    def _sessions(self, uri: str) -> set[str]:
        """Those that subscribed to it, or to what it is a part of (MCP, "Subscriptions")."""
        return {
            who.session
            for subscribed, found in self._of.items()
            if uri == subscribed or uri.startswith(subscribed.rstrip("/") + "/")
            for who in found
        }
