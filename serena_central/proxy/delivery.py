"""Brings one message to the server and its answer back: what is repeated when the connection or the server fails, what
is not, and what is told instead.

A message is repeated if the server can't have acted on it (it was never complete), or if acting twice is acting once:
reads, notifications, and calls that this server answers once by their call id. What something before the server refused
may have reached it.
"""

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from serena_central.proxy.backpressure import Turn
from serena_central.proxy.caller import Caller, modern_headers
from serena_central.proxy.event_loop import Lock, Loop
from serena_central.proxy.handshake import Handshake, NotTaken
from serena_central.proxy.http1 import AWAY, Broken, Connection, Head, request
from serena_central.proxy.link import Link, Unreachable
from serena_central.proxy.messages import (
    Message,
    answered_id,
    key_of,
    one_line,
    read_object,
)
from serena_central.proxy.sse import EventParser
from serena_central.standalone.backoff import Backoff
from serena_central.standalone.home import Unusable

ANSWER_BYTES = 64 * 1024 * 1024

REPEATS = 4
"""After this many attempts that reached the server, the message itself counts as the cause."""

PAUSES_S = (0.05, 2.0)

AWAY_S = 20.0
"""How long a server may be away, or have too much to do."""

DRAIN_S = 5.0
"""The end of a stream follows its answer at once; the connection is kept only then."""


class Call:
    """One message on its way."""

    def __init__(self, message: Message, version: str | None, call_id: str) -> None:
        self.message = message
        self.version = version
        """The protocol version of a modern message; None in the handshake era."""
        self.call_id = call_id
        self.key = key_of(message.id) if message.is_request else None
        self.answered = False
        self.cancelled = False
        self.sent = False
        """The server may have begun to work on it."""
        self.opens = version is None and message.method == "initialize"
        self.has_gate = False
        """Its sender keeps the handshake's gate closed until it is delivered."""


class Undelivered(Exception):
    """There will be no answer of the server. The text tells why, and what to do."""


class Knowledge(Protocol):
    """What is known about tools and the server when a message might be repeated."""

    def repeats_safely(self, message: Message) -> bool: ...


class Delivery:
    """Delivers for one proxy. `pass_on` writes a message of the server to the client."""

    def __init__(
        self,
        loop: Loop,
        link: Link,
        caller: Caller,
        handshake: Handshake,
        knowledge: Knowledge,
        pass_on: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._loop = loop
        self._link = link
        self._caller = caller
        self._handshake = handshake
        self._knowledge = knowledge
        self._pass_on = pass_on
        self._large = Lock(loop)

    async def deliver(self, call: Call, answer: Callable[[bytes], Awaitable[None]]) -> None:
        """Returns when the message was taken and, if it is a request, `answer` was called.

        Raises:
            Undelivered: the server's answer can't be had.
        """
        tries = _Tries()
        while True:
            generation = self._handshake.generation
            try:
                refusal = await self._attempt(call, answer)
            except (Broken, TimeoutError) as error:
                if call.answered or call.cancelled:
                    return
                why = str(error) or "it did not answer in time"
                self._check_repeat(call, why)
                tries.count(why)
            except (Unreachable, Unusable) as error:
                self._check_repeat(call, str(error).rstrip("."))
                raise Undelivered(str(error)) from None
            else:
                if refusal is None:
                    return
                await self._after_refusal(call, refusal, tries, generation)
            await self._loop.sleep(tries.backoff.next_s())

    async def _after_refusal(self, call: Call, refusal: tuple[int, str], tries: "_Tries", generation: int) -> None:
        """Returns when another attempt makes sense.

        Raises:
            Undelivered
        """
        status, text = refusal
        if status == 404 and call.version is None and self._handshake.session is not None:
            tries.count(await self._renew(call, generation) or text)
        elif status == 401 and not tries.token_read_again:
            tries.token_read_again = True
            self._link.forget_token()
        else:
            if status in AWAY:
                self._check_repeat(call, text)
            if status not in AWAY or time.monotonic() > tries.away_until:
                raise Undelivered(text)

    async def _renew(self, call: Call, generation: int) -> str | None:
        """Why it failed: the next attempt is then refused as this one was, and tries again."""
        try:
            await (self._handshake.renew_inside if call.has_gate else self._handshake.renew)(generation)
        except (NotTaken, Unreachable, Unusable) as error:
            raise Undelivered(str(error)) from None
        except (Broken, TimeoutError) as error:
            return str(error)
        return None

    def _check_repeat(self, call: Call, why: str) -> None:
        """Raises Undelivered for a message that may not be sent again."""
        if call.sent and not self._knowledge.repeats_safely(call.message):
            raise Undelivered(
                f"The answer to this call was lost ({why}). It may have been executed: check its effects "
                "before repeating it."
            )

    async def _attempt(self, call: Call, answer: Callable[[bytes], Awaitable[None]]) -> tuple[int, str] | None:
        """One attempt: None when all is done, or the status and text of a refusal."""
        if call.opens:  # it belongs to no session, nor to one that an earlier attempt has begun
            self._handshake.session = self._handshake.version = None
        connection, target = await self._link.connection()
        connection.in_silence = self._link.check_alive
        try:
            headers = self._caller.headers(target)
            if call.version is not None:
                headers |= modern_headers(call.message, call.version)
            else:
                headers |= self._handshake.headers() | {"content-type": b"application/json"}
            if call.message.is_request:
                headers["x-serena-call"] = call.call_id.encode("ascii")
            await connection.send(request("POST", target.path, headers, call.message.raw))
            call.sent = call.sent or connection.sent_all
            head = await connection.head()
            refusal = await self._receive(call, connection, head, answer)
        except (Broken, TimeoutError):
            connection.close()
            raise
        except BaseException:
            connection.close()  # cancelled: for the modern era, and for ours, that is how the server learns of it
            raise
        self._link.give_back(connection)
        return refusal

    async def _receive(
        self, call: Call, connection: Connection, head: Head, answer: Callable[[bytes], Awaitable[None]]
    ) -> tuple[int, str] | None:
        if head.status == 200 and call.opens:
            self._handshake.session = head.headers.get("mcp-session-id")
        if head.status == 200 and head.media_type == "text/event-stream":
            await self._stream(call, connection, answer)
            return None
        async with Turn(self._large) as turn:
            body = await connection.body(ANSWER_BYTES, turn.at)
            # Some refusals are answers: the modern era sends errors with a status, under the request's id.
            if call.message.is_request and _is_answer(body, call):
                await self._answer(call, body, answer)
                return None
        if head.status >= 300:
            return head.status, _explained(head.status, body)
        if call.message.is_request:
            raise Broken(f"status {head.status} came without an answer")
        return None

    async def _stream(self, call: Call, connection: Connection, answer: Callable[[bytes], Awaitable[None]]) -> None:
        events = EventParser(ANSWER_BYTES)
        async with Turn(self._large) as turn:
            while piece := await connection.piece():
                try:
                    for data in events.feed(piece):
                        await self._event(call, data, answer)
                except ValueError as error:
                    raise Broken(f"the server's stream can't be read: {error}") from None
                await turn.at(events.held_bytes)
                if call.answered:
                    connection.deadline = time.monotonic() + DRAIN_S
        if call.message.is_request and not call.answered:
            raise Broken("the stream ended without an answer")

    async def _event(self, call: Call, data: bytes, answer: Callable[[bytes], Awaitable[None]]) -> None:
        key = answered_id(data)
        if key is None:
            await self._pass_on(one_line(data))
        elif key == call.key:
            await self._answer(call, data, answer)
        else:
            print("serena-proxy: dropped a response without a pending request", file=sys.stderr)

    async def _answer(self, call: Call, data: bytes, answer: Callable[[bytes], Awaitable[None]]) -> None:
        if not call.answered:
            call.answered = True
            await answer(one_line(data))


class _Tries:
    """What was tried for one message."""

    def __init__(self) -> None:
        self.made = 0
        self.backoff = Backoff(*PAUSES_S)
        self.away_until = time.monotonic() + AWAY_S
        self.token_read_again = False

    def count(self, why: str) -> None:
        """Raises Undelivered: there were enough of them."""
        self.made += 1
        if self.made > REPEATS:
            raise Undelivered(f"The server failed on each attempt ({why}). See its log.")


def _is_answer(body: bytes, call: Call) -> bool:
    try:
        return answered_id(body) == call.key
    except ValueError:
        return False


def _explained(status: int, body: bytes) -> str:
    """The text of a refusal: a JSON-RPC error's or /api's, else the status."""
    try:
        error = read_object(body).get("error")
    except ValueError:
        error = None
    match error:
        case {"message": str(text)} if text:
            return text
        case _ if status in AWAY:
            return f"The server, or a proxy in front of it, is not available (status {status})."
        case _:
            return f"The server rejected the request with status {status}."
