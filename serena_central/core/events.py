"""Events: immutable facts about sessions, servers, projects and calls, and the bus that carries them upward.

Publishing never waits and never fails: a subscriber that is too slow loses the oldest events of its own queue, and is
notified of their number. The bus knows no store and no page.
"""

import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, TypeVar

import anyio
import msgspec
from msgspec.structs import force_setattr

from serena_central.core.rest import rest

logger = logging.getLogger(__name__)

RECENT_EVENTS = 512
"""How many events a late subscriber or a page can look back on without the store."""

DEFAULT_QUEUE = 1024
"""Events that one subscriber may be behind; at most about 1 MB."""


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One fact; a class of `core/event_kinds.py` for each kind, whose own fields are the event's data."""

    kind: ClassVar[str] = ""
    """`subject.verb`, e.g. `session.created`: its name in the store, in logs and for clients."""

    seq: int = 0
    """Set, as `at`, by the bus."""
    at: float = 0.0
    """Unix time in seconds."""
    severity: Severity = Severity.INFO
    session: str | None = None
    project: str | None = None
    server: str | None = None
    message: str = ""
    keep: bool = True
    """False for what happens with every call: news for those who listen now, not worth remembering."""

    @property
    def data(self) -> dict[str, Any]:
        """What its kind adds to the fields that all events have, by the names that clients see."""
        return {name: getattr(self, field) for field, name in _own_fields(type(self))}


@cache
def _own_fields(kind: type[Event]) -> list[tuple[str, str]]:
    """Attribute and public name of each."""
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(kind) if field.name not in _OF_ALL]


_OF_ALL = frozenset(Event.__struct_fields__)

E = TypeVar("E", bound=Event)


class Subscription:
    """One subscriber's bounded queue. Iterate it; `dropped` counts what was lost because it was full."""

    def __init__(self, limit: int) -> None:
        self._queue: deque[Event] = deque()
        self._limit = limit
        self._wakeup = anyio.Event()
        self._closed = False
        self.dropped = 0

    def push(self, event: Event) -> None:
        if len(self._queue) >= self._limit:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(event)
        self._wakeup.set()

    def close(self) -> None:
        self._closed = True
        self._wakeup.set()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._wakeup = anyio.Event()
            await self._wakeup.wait()
        return self._queue.popleft()


Kinds = tuple[type[Event], ...]
"""Classes of events that a listener wants to hear of, subclasses included; none means all."""


class EventBus:
    """Fans events out to subscribers. Belongs to the event loop's thread; `publish` never blocks."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seq = 0
        self._recent: deque[Event] = deque(maxlen=RECENT_EVENTS)
        self._listeners: list[tuple[Callable[[Event], None], Kinds]] = []
        self._routes: dict[type[Event], list[Callable[[Event], None]]] = {}
        """Class → who wants to hear of its events; made when the first of them is published."""

    def publish(self, event: E) -> E:
        """Numbers and dates an event, and delivers it to all subscribers."""
        rest.stir()
        self._seq += 1
        force_setattr(event, "seq", self._seq)
        force_setattr(event, "at", self._clock())
        if event.keep:
            self._recent.append(event)
        route = self._routes.get(type(event))
        for listener in self._route(type(event)) if route is None else route:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed on %s", event.kind)
        return event

    def tap(self, listener: Callable[[Event], None], *kinds: type[Event]) -> Callable[[], None]:
        """Calls `listener` with every event of these classes (of all, if none is named), at once: for counting and the
        like, some microseconds and no wait. Returns the way to end it.

        A task that is woken for each event costs ten times that.
        """
        self._listeners.append((listener, kinds))
        self._routes = {}

        def end() -> None:
            self._listeners.remove((listener, kinds))
            self._routes = {}

        return end

    def _route(self, kind: type[Event]) -> list[Callable[[Event], None]]:
        route = [one for one, kinds in self._listeners if not kinds or issubclass(kind, kinds)]
        self._routes[kind] = route
        return route

    def recent(self) -> list[Event]:
        """The newest events, oldest first."""
        return list(self._recent)

    @contextmanager
    def subscribe(self, *kinds: type[Event], limit: int = DEFAULT_QUEUE) -> Generator[Subscription]:
        """Yields a `Subscription` that receives every event of these classes (of all, if none is named) published while
        the block is open."""
        subscription = Subscription(limit)
        end = self.tap(subscription.push, *kinds)
        try:
            yield subscription
        finally:
            end()
            subscription.close()
