"""Keeps open pages up to date: streams of server-sent events, of sections whose context has changed. A stream is of one
page, or of all that a browser shows: it has but six connections to a host.

A stream holds no news, only which sections may be out of date: so a slow or sleeping browser costs nothing, and gets
what is true when it reads on, not what it missed. All streams together get a small share of the server's time.
"""

import math
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import replace

import anyio
import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from serena_central.access.browsers import Login
from serena_central.core.errors import SerenaCentralError
from serena_central.core.event_kinds import SessionKilled, SessionRevived
from serena_central.core.events import Event, EventBus
from serena_central.core.lru import Lru
from serena_central.core.periodic import aligned
from serena_central.core.rest import RESTING_S, rest
from serena_central.web.pages.page import Page, Visit

LEAST_S = 0.25
"""Between two updates of a page."""

SHARE = 50
"""All streams together use about one part in so many of the server's CPU time …"""

MOST_S = 2.0
"""… as long as no page gets further behind than this."""

AT_ONCE = (SessionKilled, SessionRevived)
"""What a person did and wants to see done: it ends the pause of a page that has used up its share."""

SEND_S = 30.0
"""A browser that has not read for this long is let go; it comes back when it is awake."""

GOODBYE_S = 1.0

PING_S = 15.0
"""Something is sent at the first wake-up after this time, so that a connection that broke is noticed: by this
server, and by the page, which takes 90 s without a word for a server that is away (`QUIET_MS`)."""

PING = b"event: here\ndata: .\n\n"
"""An event, since scripts do not see comments."""

STREAMS_PER_BROWSER = 12
"""Beyond that the oldest ends: a browser has but six connections to a host, so it is a forgotten one."""

PAGES_OF_STREAM = 32
"""Pages that one stream may be of."""

RETRY_MS = 1000

SHARED = 64
"""Contexts that streams of the same page share. Each is as large as what its section shows."""

STILL_S = 20.0
"""A section `of_calls` is rebuilt when it is looked at so long after the last time, even if nothing was called and no
event came."""

LEAVE = b"event: leave\ndata: now\n\n"
"""Tells the page to reload: what it shows is gone, or its browser was signed out."""

Render = Callable[[str, msgspec.Struct], str]
"""HTML of a section, by its name and context."""


class Made:
    """The context of one section, as it was built last. `heard` and `at` are of when that began."""

    __slots__ = ("at", "building", "context", "heard")

    def __init__(self) -> None:
        self.building = anyio.Lock()
        self.context: msgspec.Struct | None = None
        self.heard = -1
        self.at = -math.inf


class Live:
    """All open streams. Belongs to the event loop's thread."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._streams: list[Stream] = []
        self._end_tap: Callable[[], None] | None = None
        """None while nobody looks: then events cost nothing here."""
        self._closed = False
        self.heard = 0
        """Events so far, while anybody looks."""
        self._made: Lru[Hashable, Made] = Lru(SHARED)

    def made(self, page: Page, name: str, visit: Visit) -> Made:
        """What streams share whose browsers see the same section."""
        key = page.path, name, tuple(visit.path.items()), tuple(visit.query.items()), visit.user
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Made()
        return made

    @property
    def count(self) -> int:
        """Streams that are open."""
        return len(self._streams)

    def _take(self, event: Event) -> None:
        self.heard += 1
        for stream in self._streams:
            stream.hear(event)

    def sign_out(self, login_id: str) -> None:
        """Ends the streams of a browser that was signed out."""
        for stream in self._streams:
            if stream.login.id == login_id:
                stream.scope.cancel()

    def close(self) -> None:
        """Ends all streams; the server stops."""
        self._closed = True
        for stream in self._streams:
            stream.scope.cancel()

    def open(self, feeds: Sequence["Feed"], login: Login, version: str) -> "Stream":
        """The answer to one request: the stream of these pages. `version` is sent first: a page that another version
        rendered reloads."""
        return Stream(self, feeds, login, version)

    def join(self, stream: "Stream") -> None:
        if self._closed:
            stream.scope.cancel()
        own = [other for other in self._streams if other.login.id == stream.login.id]
        if len(own) >= STREAMS_PER_BROWSER:
            own[0].scope.cancel()
        self._streams.append(stream)
        if self._end_tap is None:
            self._end_tap = self._bus.tap(self._take)

    def part(self, stream: "Stream") -> None:
        self._streams.remove(stream)
        if not self._streams and self._end_tap is not None:
            self._end_tap()
            self._end_tap = None
            self._made = Lru(SHARED)

    def pause_s(self, spent_s: float) -> float:
        """How long a stream waits after an update that took `spent_s` of CPU time."""
        return min(MOST_S, max(LEAST_S, spent_s * SHARE * len(self._streams)))


class Feed:
    """One open page: which of its sections are out of date. Events of other sessions don't concern a page about one.

    `number` is the page's in a stream of several: it stands, with the section's name, in the first line of the data.
    """

    def __init__(self, page: Page, visit: Visit, render: Render, number: int | None = None) -> None:
        self._page = page
        self._sections = page.sections
        self._visit = visit
        self._render = render
        self._number = number
        self._session = visit.path.get("session")
        self._shown: dict[str, msgspec.Struct] = {}
        self._stale_at: dict[str, int] = {}
        """Section → how many events had come with the last that made it stale."""
        self._looked: dict[str, tuple[float, tuple[int, int]]] = {}
        """Section `of_calls` → when it was rebuilt by time, and how many events and requests had come."""
        self._due = dict.fromkeys(page.sections, 0.0)
        """When each section has to be made again, by the event loop's clock; 0 when an event made it stale."""
        self._hearing: dict[type[Event], list[str]] = {}
        """Sections that an event makes stale; filled as kinds come."""

    @property
    def due(self) -> float:
        """When the next section has to be made again."""
        return min(self._due.values())

    def hear(self, event: Event, heard: int) -> bool:
        """Whether an event, the `heard`th, made a section stale."""
        kind = type(event)
        names = self._hearing.get(kind)
        if names is None:
            names = [name for name, section in self._sections.items() if issubclass(kind, section.hears)]
            self._hearing[kind] = names
        if not names or (self._session is not None and event.session != self._session):
            return False
        for name in names:
            self._due[name], self._stale_at[name] = 0.0, heard
        return True

    async def news(self, live: Live) -> str:
        """Messages with what has changed, "" for nothing; the last is `leave`, when what it shows is gone."""
        try:
            return await self._news(live)
        except SerenaCentralError:
            self._due = {"": math.inf}
            return self._message("leave", "now")

    @property
    def gone(self) -> bool:
        return "" in self._due

    async def _news(self, live: Live) -> str:
        now = anyio.current_time()
        visit = replace(self._visit, now=time.time())
        message = ""
        stale = {name: self._sections[name] for name, due in self._due.items() if due <= now}
        at_once = {name for name in stale if self._due[name] == 0.0}
        for name, section in stale.items():
            # Before it is made: what is heard meanwhile counts. All streams wake up at once, and build it once.
            self._due[name] = (now // section.every_s + 1) * section.every_s
        told = [name for name, section in stale.items() if section.recorded and section.hears]
        if told and not await visit.parts.store.writer.caught_up():
            self._due.update(dict.fromkeys(told, 0.0))  # what they were told of may be written after they are made
        for name, section in stale.items():
            stale_at = self._stale_at.pop(name, None)
            if name not in at_once and section.of_calls and self._is_still(name, visit, live, now):
                continue
            made = live.made(self._page, name, visit)
            async with made.building:
                if name not in at_once:
                    is_fresh = made.at >= now // section.every_s * section.every_s
                else:  # what is recorded may have been written since
                    is_fresh = stale_at is not None and made.heard >= stale_at and not section.recorded
                if made.context is None or not is_fresh:
                    heard = live.heard
                    made.context = await section.make(visit)
                    made.heard, made.at = heard, now
                context = made.context
            if self._shown.get(name) != context:
                self._shown[name] = context
                message += self._message(name, self._render(name, context))
        return message

    def _is_still(self, name: str, visit: Visit, live: Live, now: float) -> bool:
        """Whether nothing was called and no event came since a section was looked at last."""
        state = live.heard, visit.parts.sessions.requests
        looked_at, before = self._looked.get(name, (-math.inf, None))
        if before == state and now - looked_at < STILL_S:
            return True
        self._looked[name] = now, state
        return False

    def _message(self, name: str, text: str) -> str:
        head = f"event: {name}\n" if self._number is None else f"data: {self._number} {name}\n"
        return head + "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"


class Stream(StreamingResponse):
    """The open pages of one request."""

    def __init__(self, live: Live, feeds: Sequence[Feed], login: Login, version: str) -> None:
        super().__init__(self._messages(), headers={"cache-control": "no-store"}, media_type="text/event-stream")
        self.login = login
        self.scope = anyio.CancelScope()
        self._live = live
        self._feeds = list(feeds)
        self._version = version
        self._wakeup = anyio.Event()
        self._urgent = anyio.Event()

    def hear(self, event: Event) -> None:
        stale = [feed for feed in self._feeds if feed.hear(event, self._live.heard)]
        if stale:
            self._wakeup.set()
            if isinstance(event, AT_ONCE):
                self._urgent.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Unlike Starlette's own, it gives up on a browser that does not read, and ends with the sign-in."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        self._live.join(self)
        try:
            with self.scope:
                self.scope.deadline = anyio.current_time() + self.login.expires_at - time.time()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, receive)
                    await self._send_all(send)
                    tasks.cancel_scope.cancel()
        finally:
            self._live.part(self)
        with anyio.move_on_after(GOODBYE_S):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.scope.cancel()

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self._messages()) as messages:
            async for message in messages:
                with anyio.move_on_after(SEND_S) as patience:
                    await send({"type": "http.response.body", "body": message, "more_body": True})
                if patience.cancelled_caught:
                    return

    async def _messages(self) -> AsyncGenerator[bytes]:
        """First every section, then each whose context has changed, until no page is left."""
        yield f"retry: {RETRY_MS}\nevent: version\ndata: {self._version}\n\n".encode()
        sent_at = anyio.current_time()
        while self._feeds:
            began = time.thread_time()
            self._urgent = anyio.Event()
            for feed in list(self._feeds):
                message = await feed.news(self._live)
                if feed.gone:
                    self._feeds.remove(feed)
                if message:
                    sent_at = anyio.current_time()
                    yield message.encode()
            spent = time.thread_time() - began
            if anyio.current_time() - sent_at > PING_S:
                sent_at = anyio.current_time()
                yield PING
            if self._feeds:
                updated_at = anyio.current_time()
                await self._wait()
                await self._pause(updated_at, spent)

    async def _pause(self, updated_at: float, spent_s: float) -> None:
        """Until another update may follow the last one."""
        now = anyio.current_time()
        if (least_s := updated_at + LEAST_S - now) > 0:
            await anyio.sleep(least_s)
        pause_s = self._live.pause_s(spent_s)
        if now - updated_at < pause_s:
            with anyio.move_on_after(updated_at + pause_s - anyio.current_time()):
                await self._urgent.wait()

    async def _wait(self) -> None:
        """Until a section is due, a minute at most, or while the process rests until periodic work comes."""
        self._wakeup = anyio.Event()
        left = min(RESTING_S, *(feed.due - anyio.current_time() for feed in self._feeds))
        if 0 < left <= RESTING_S and rest.is_resting:
            with rest.waking(self._wakeup.set), anyio.move_on_after(aligned(RESTING_S)):
                await self._wakeup.wait()
        elif left > 0:
            with anyio.move_on_after(left):
                await self._wakeup.wait()
