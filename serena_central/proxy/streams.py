"""The two streams that stay open while the client lives.

One carries what the server asks or tells outside of calls (the handshake era's GET). The other carries nothing: by its
end the server learns that this process is gone, in either era, even if it was killed.
"""

import time
from collections.abc import Awaitable, Callable
from typing import cast

from serena_central.proxy.caller import Caller
from serena_central.proxy.delivery import ANSWER_BYTES
from serena_central.proxy.event_loop import Loop
from serena_central.proxy.handshake import Handshake, NotTaken
from serena_central.proxy.http1 import Broken, Connection, request
from serena_central.proxy.link import Link, Target, Unreachable
from serena_central.proxy.messages import one_line, read_object
from serena_central.proxy.sse import EventParser
from serena_central.standalone.backoff import Backoff
from serena_central.standalone.home import Unusable

PAUSES_S = (0.1, 5.0)
"""Before a stream is opened again. None of them starts a server: only messages do."""

OPENING_S = 30.0

AWAY = (Broken, Unreachable, Unusable, TimeoutError, OSError)


class Streams:
    """Each is begun once and runs until the proxy ends."""

    def __init__(
        self, loop: Loop, link: Link, caller: Caller, handshake: Handshake, pass_on: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._loop = loop
        self._link = link
        self._caller = caller
        self._handshake = handshake
        self._pass_on = pass_on
        self._listening = False
        self._present = False
        self.calls_once: frozenset[str] = frozenset()
        """Tools whose repeated calls the server answers once, by their call id; as it last said."""

    def listen(self) -> None:
        """Begins to hear the server, once the handshake is over."""
        if not self._listening:
            self._listening = True
            self._loop.spawn(self._again_and_again(self._listen))

    def be_present(self) -> None:
        """Begins to show the server that we live, once it knows our session."""
        if not self._present:
            self._present = True
            self._loop.spawn(self._again_and_again(self._show))

    async def _again_and_again(self, hold: Callable[[Connection, Target], Awaitable[bool]]) -> None:
        """Reopens a stream whenever it ends; `hold` returns whether it was open, or raises StopHolding."""
        backoff = Backoff(*PAUSES_S)
        while True:
            was_open = False
            try:
                connection, target = await self._link.connection_now()
                try:
                    connection.deadline = time.monotonic() + OPENING_S
                    was_open = await hold(connection, target)
                finally:
                    connection.close()
            except StopHolding:
                return
            except AWAY:
                pass
            if was_open:
                backoff.reset()
            await self._loop.sleep(backoff.next_s())

    async def _listen(self, connection: Connection, target: Target) -> bool:
        await self._handshake.over()
        generation = self._handshake.generation
        headers = self._caller.headers(target, accept=b"text/event-stream") | self._handshake.headers()
        await connection.send(request("GET", target.path, headers))
        head = await connection.head()
        if head.status == 405:
            raise StopHolding  # this server never asks
        if head.status == 404:
            try:
                await self._handshake.renew(generation)
            except NotTaken:
                return False
            return True
        if head.status != 200:
            return False
        connection.deadline = None
        await self._follow(connection, self._tell)
        return True

    async def _tell(self, data: bytes) -> None:
        await self._pass_on(one_line(data))

    async def _show(self, connection: Connection, target: Target) -> bool:
        headers = self._caller.headers(target, accept=b"text/event-stream")
        path = f"{target.path.removesuffix('/mcp')}/api/v1/sessions/{self._caller.session}/presence"
        await connection.send(request("GET", path, headers))
        head = await connection.head()
        if head.status in (404, 405):
            raise StopHolding  # another server, or an older one
        if head.status != 200:
            return False
        connection.deadline = None
        await self._follow(connection, self._learn)
        return True

    async def _learn(self, data: bytes) -> None:
        names = read_object(data).get("calls_once")
        self.calls_once = frozenset(map(str, cast("list[object]", names) if isinstance(names, list) else []))

    async def _follow(self, connection: Connection, take: Callable[[bytes], Awaitable[None]]) -> None:
        events = EventParser(ANSWER_BYTES)
        while piece := await connection.piece():
            try:
                for data in events.feed(piece):
                    await take(data)
            except ValueError as error:
                raise Broken(f"the server's stream can't be read: {error}") from None


class StopHolding(Exception):
    """This server has no such stream."""
