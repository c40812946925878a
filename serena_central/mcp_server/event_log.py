"""What one client was sent by event streams, kept for a while under ids.

MCP 2025-11-25, "Resumability and Redelivery": each event has an id, and a client whose connection broke asks with GET
and `Last-Event-ID` for what came after it. What is kept is bounded in number, size and age.
"""

import secrets
from collections import deque
from typing import NamedTuple

import anyio

from serena_central.core.running_time import running_time

STANDING = "_GET_stream"
"""The stream outside of calls, as the SDK names it, too. All others are named after the ids of their requests."""

MOST_EVENTS = 256
"""Of one client."""

MOST_BYTES = 2_000_000
"""Of one client's events; the newest event is kept whatever its size."""

KEPT_S = 60.0

EVENT_BYTES = 300
"""What an event takes beside its data and its stream's name, which the client chose."""


class StreamEvent(NamedTuple):
    number: int
    stream: str
    data: bytes | None
    """An encoded message; None for an event that only tells its id, or ends the stream."""
    is_last: bool
    """The stream ends with it."""
    at: float

    @property
    def size(self) -> int:
        return EVENT_BYTES + len(self.stream) + len(self.data or b"")


class EventLog:
    """Newest last. Ids are those of this log alone: `stream kind.log.number`. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._name = secrets.token_hex(4)
        self._events: deque[StreamEvent] = deque()
        self._ends: deque[tuple[int, int]] = deque(maxlen=MOST_EVENTS)
        """Streams whose end is not kept, by their hashes (clients choose ids of any length), and its number: who still
        reads what came before it must not wait for more."""
        self._number = 0
        self._size = 0
        self.lost = 0
        """The number of the newest notice outside of calls that is not kept any more."""
        self._news = anyio.Event()

    def add(self, stream: str, data: bytes | None = None, *, is_last: bool = False) -> str:
        """Keeps an event of a stream, and wakes who waits for it. Returns its id. The stream outside of calls never
        ends, not even by the answer to a request that has its name for an id."""
        self._number += 1
        event = StreamEvent(self._number, stream, data, is_last and stream != STANDING, running_time())
        self._events.append(event)
        self._size += event.size
        while len(self._events) > MOST_EVENTS or (self._size > MOST_BYTES and len(self._events) > 1):
            self._drop()
        self._news.set()
        self._news = anyio.Event()
        return self.id_of(event)

    @property
    def newest(self) -> int:
        """The number of the newest event, of any stream."""
        return self._number

    async def wait(self, number: int) -> None:
        """Until there is an event newer than that of this number, of any stream."""
        while self._number <= number:
            await self._news.wait()

    def expire(self) -> None:
        """Drops what is too old to be asked for. A request that runs keeps its newest event: its client may have heard
        nothing since, and come back with that."""
        oldest = running_time() - KEPT_S
        if not self._events or self._events[0].at >= oldest:
            return
        newest = {event.stream: event for event in self._events if event.stream != STANDING}
        kept: deque[StreamEvent] = deque()
        for event in self._events:
            if event.at >= oldest or (newest.get(event.stream) is event and not event.is_last):
                kept.append(event)
            else:
                self._forget(event)
        self._events = kept

    def id_of(self, event: StreamEvent) -> str:
        kind = "g" if event.stream == STANDING else "r"
        return f"{kind}.{self._name}.{event.number}"

    def find(self, event_id: str) -> StreamEvent | None:
        """The event of an id; None if it is not known any more. One of the stream outside of calls always is, without
        its data: a client may come back hours after the last notice."""
        kind, _, rest = event_id.partition(".")
        name, _, number = rest.partition(".")
        if name != self._name:
            return None
        kept = next((event for event in self._events if str(event.number) == number), None)
        if kept is not None or kind != "g" or not (number.isascii() and number.isdigit()):
            return kept
        was_given = len(number) <= len(str(self._number)) and int(number) <= self._number
        return StreamEvent(int(number), STANDING, None, is_last=False, at=0.0) if was_given else None

    def after(self, number: int, stream: str) -> list[StreamEvent]:
        """What came on the stream after the event of this number, up to its end. What follows that is of another
        request with the same id."""
        events: list[StreamEvent] = []
        if self._end_is_forgotten(stream, number):
            return events
        for event in self._events:
            if event.stream == stream and event.number >= number:
                if event.number > number:
                    events.append(event)
                if event.is_last:
                    break
        return events

    def has_ended(self, stream: str, number: int) -> bool:
        """Whether the event of this number, or one that came after it, ends the stream."""
        kept = any(event.is_last for event in self._events if event.number >= number and event.stream == stream)
        return kept or self._end_is_forgotten(stream, number)

    def __len__(self) -> int:
        return len(self._events)

    def _drop(self) -> None:
        self._forget(self._events.popleft())

    def _forget(self, event: StreamEvent) -> None:
        self._size -= event.size
        if event.stream == STANDING and event.data is not None:
            self.lost = event.number
        if event.is_last:
            self._ends.append((hash(event.stream), event.number))

    def _end_is_forgotten(self, stream: str, number: int) -> bool:
        of_stream = hash(stream)
        return any(one == of_stream and end >= number for one, end in self._ends)
