"""The handshake era's state: how the client began, under which id the server knows it, and beginning again.

A server that was restarted without memory of us answers 404; the client's own `initialize` is then sent once more, and
the client never learns of it.
"""

import time

from serena_central.proxy.caller import Caller
from serena_central.proxy.event_loop import Loop
from serena_central.proxy.http1 import AWAY, Broken, Connection, Head, request
from serena_central.proxy.link import Link, Target
from serena_central.proxy.messages import read_object
from serena_central.proxy.sse import EventParser

OPENING_BYTES = 4 * 1024 * 1024
OPENING_S = 60.0


class NotTaken(Exception):
    """The server does not begin with this client again; the text tells why."""


class Handshake:
    """See the module. `gate` is open when messages may be sent: not while a handshake is under way."""

    def __init__(self, loop: Loop, link: Link, caller: Caller) -> None:
        self._link = link
        self._caller = caller
        self.gate = loop.event()
        self.gate.set()
        self.opening: bytes | None = None
        """The client's own `initialize`."""
        self.initialized: bytes | None = None
        """The client's own `initialized`, once it has been sent."""
        self.session: str | None = None
        self.version: str | None = None
        self.generation = 0
        """Counts handshakes: who was refused under an older one need not begin another."""

    def headers(self) -> dict[str, bytes]:
        headers: dict[str, bytes] = {}
        if self.version is not None:
            headers["mcp-protocol-version"] = self.version.encode("latin-1", "replace")
        if self.session is not None:
            headers["mcp-session-id"] = self.session.encode("latin-1")
        return headers

    async def over(self) -> None:
        """Returns when no handshake is under way."""
        while not self.gate.is_set:
            await self.gate.wait()

    async def enter(self) -> None:
        """Waits for the gate and closes it; who entered opens it again."""
        await self.over()
        self.gate.clear()

    def learn(self, answer: bytes) -> None:
        """Takes the protocol's version from the answer to `initialize`."""
        match read_object(answer):
            case {"result": {"protocolVersion": str(version)}}:
                self.version = version
                self.generation += 1
            case _:
                self.session = None

    async def renew(self, generation: int) -> None:
        """Begins again, unless that was done since `generation`.

        Raises:
            NotTaken: the server refused.
            Broken, Unreachable, Unusable, TimeoutError: it could not be asked.
        """
        await self.enter()
        try:
            await self.renew_inside(generation)
        finally:
            self.gate.set()

    async def renew_inside(self, generation: int) -> None:
        """The same for who has entered. Raises as `renew` does."""
        if self.generation != generation or self.opening is None:
            return
        connection, target = await self._link.connection()
        try:
            connection.deadline = time.monotonic() + OPENING_S
            await self._open(connection, target, self.opening)
        except BaseException:
            connection.close()
            raise
        self._link.give_back(connection)

    async def _open(self, connection: Connection, target: Target, opening: bytes) -> None:
        common = self._caller.headers(target) | {"content-type": b"application/json"}
        head, body = await _post(connection, request("POST", target.path, common, opening))
        if head.status in AWAY:
            raise Broken(f"the server is not available (status {head.status})")
        answer = next(EventParser(OPENING_BYTES).feed(body), b"") if head.media_type == "text/event-stream" else body
        try:
            said = read_object(answer)
        except ValueError:
            raise Broken("the answer to initialize can't be read") from None
        match said:
            case {"result": {"protocolVersion": str(version)}} if head.status == 200:
                self.session, self.version = head.headers.get("mcp-session-id"), version
                self.generation += 1
            case {"error": {"message": str(text)}}:
                raise NotTaken(text)
            case _:
                raise NotTaken(f"The server refused a new session (status {head.status}).")
        if self.initialized is not None:
            await _post(connection, request("POST", target.path, common | self.headers(), self.initialized))


async def _post(connection: Connection, message: bytes) -> tuple[Head, bytes]:
    await connection.send(message)
    head = await connection.head()
    return head, await connection.body(OPENING_BYTES)
