"""The event streams that a client of the handshake era opens by GET: the one outside of calls, and those of calls that
it takes up again. They follow the log of what the client is sent, whichever lane sent it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Set
from functools import partial
from itertools import count
from typing import Any

import anyio
import msgspec
from starlette.types import Receive, Send

from serena_central.core.decoding import from_json
from serena_central.core.errors import ClientCannotAnswer
from serena_central.mcp_server.event_log import STANDING, EventLog
from serena_central.mcp_server.protocol import CANCELLED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED
from serena_central.mcp_server.sse import Message, Write, encoded, event_of, kept_open, send_stream

logger = logging.getLogger(__name__)

CANCELLING_S = 1.0
"""For the news that an answer is not waited for any longer."""

Tell = Callable[[Message], Awaitable[None]]
"""Sends a message on the stream of a call."""

MOST_UNSENT = 2000
"""Messages that wait for the client to open its stream, each once: more than a client has reason to subscribe to."""

_ASKED = "ask-"
"""Begins the ids of questions. Those of the SDK are numbers."""


class Streams:
    """Those of one conversation. Belongs to the event loop's thread."""

    def __init__(self, subscribed: Set[str] = frozenset()) -> None:
        """`subscribed`: URIs of resources of whose changes the client is told, now and later."""
        self.log = EventLog()
        self._subscribed = subscribed
        self._open: dict[str, anyio.CancelScope] = {}
        self._unsent: dict[bytes, None] = {}
        """Messages outside of calls that no stream has carried yet, oldest first."""
        self._news = anyio.Event()
        self._questions = count(1)
        self._asked: dict[str, _Question] = {}

    @property
    def stands(self) -> bool:
        """Whether the stream outside of calls is open."""
        return STANDING in self._open

    def say(self, message: Message) -> None:
        """Sends a message outside of calls: at once, or when the client opens its stream. One that waits already is
        not repeated."""
        self._unsent[encoded(message)] = None
        if len(self._unsent) > MOST_UNSENT:
            self.miss()
        self._news.set()

    def miss(self) -> None:
        """Makes good for notices that the client has missed, or will: it is told that everything has changed."""
        lists = [{"jsonrpc": "2.0", "method": method} for method in (TOOLS_CHANGED, RESOURCES_CHANGED)]
        updated = [
            {"jsonrpc": "2.0", "method": RESOURCE_UPDATED, "params": {"uri": uri}} for uri in sorted(self._subscribed)
        ]
        self._unsent = dict.fromkeys(map(encoded, (*lists, *updated)))

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, tell: Tell | None = None
    ) -> dict[str, Any]:
        """Asks the client and waits for its result: by `tell` on the stream of a call, or outside of calls.

        Raises:
            ClientCannotAnswer: it answered with an error.
        """
        key = f"{_ASKED}{next(self._questions)}"
        question = self._asked[key] = _Question()
        asked = {"jsonrpc": "2.0", "id": key, "method": method, **({"params": params} if params else {})}
        try:
            if tell is None:
                self.say(asked)
                await question.is_answered.wait()
            else:
                await self._ask_beside(asked, question, tell)
        finally:
            del self._asked[key]
            self._unsent.pop(encoded(asked), None)
        try:
            return from_json(question.result or b"", dict[str, Any])
        except msgspec.DecodeError as error:
            raise ClientCannotAnswer(method, _refusal_in(question.error)) from error

    async def _ask_beside(self, asked: Message, question: "_Question", tell: Tell) -> None:
        """A client whose answer is not waited for any longer is told, so that it can close its dialog."""
        try:
            await tell(asked)
            await question.is_answered.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CANCELLING_S, shield=True):
                params = {"requestId": asked["id"], "reason": "the call does not wait for it any longer"}
                await tell({"jsonrpc": "2.0", "method": CANCELLED, "params": params})
            raise

    def take(self, key: Any, result: msgspec.Raw | None, error: msgspec.Raw | None) -> bool:
        """The client's answer to a question of this id: a result or an error. One that comes too late is dropped. False
        if the id is none of ours."""
        if not isinstance(key, str) or not key.startswith(_ASKED):
            return False
        question = self._asked.get(key)
        if question is None:
            logger.debug("an answer came too late, or twice: %.20s", key)
            return True
        question.result, question.error = result, error
        question.is_answered.set()
        return True

    async def serve(
        self, stream: str, after: int | None, receive: Receive, send: Send, headers: list[tuple[bytes, bytes]]
    ) -> None:
        """Sends what comes on a stream after an event's number, until the stream ends or is closed, or the client
        leaves. Without a number, on the stream outside of calls: what was not sent yet. Takes the place of who followed
        the stream before."""
        self.close(stream)
        scope = self._open[stream] = anyio.CancelScope()

        async def follow(write: Write) -> None:
            with scope:
                if stream == STANDING:
                    await self._stand(after, write)
                else:
                    await self._follow(stream, after or 0, write)

        try:
            await send_stream(receive, send, headers, follow)
        finally:
            if self._open.get(stream) is scope:
                del self._open[stream]

    def close(self, stream: str) -> None:
        """Ends what the client follows of a stream; it may come back for the rest."""
        scope = self._open.pop(stream, None)
        if scope is not None:
            scope.cancel()

    def close_all(self) -> None:
        for stream in list(self._open):
            self.close(stream)

    async def _stand(self, number: int | None, write: Write) -> None:
        """The stream outside of calls: once more what came after an event, then what was not sent yet."""
        if number is not None:
            if self.log.lost > number:
                self.miss()
            for event in self.log.after(number, STANDING):
                if event.data is not None:
                    await write(event_of(event.data, self.log.id_of(event)))
        while True:
            self._news = anyio.Event()
            while self._unsent:
                data = next(iter(self._unsent))
                del self._unsent[data]  # before it is sent: what is said meanwhile is news
                try:
                    await write(event_of(data, self.log.add(STANDING, data)))
                except BaseException:
                    self._unsent = {data: None} | self._unsent
                    self._news.set()
                    raise
            await kept_open(write, self._news.wait)

    async def _follow(self, stream: str, number: int, write: Write) -> None:
        while True:
            newest = self.log.newest
            events = self.log.after(number, stream)
            for event in events:
                number = event.number
                if event.data is not None:
                    await write(event_of(event.data, self.log.id_of(event)))
                if event.is_last:
                    return
            if events:
                continue  # more may have come while the client read
            if self.log.has_ended(stream, number):
                return
            await kept_open(write, partial(self.log.wait, newest))


class _Question:
    def __init__(self) -> None:
        self.is_answered = anyio.Event()
        self.result: msgspec.Raw | None = None
        self.error: msgspec.Raw | None = None


def _refusal_in(error: msgspec.Raw | None) -> str:
    """What an error says, if it is one of JSON-RPC."""
    try:
        return from_json(error or b"", _Error).message
    except msgspec.DecodeError:
        return "its answer is neither a result nor an error"


class _Error(msgspec.Struct):
    message: str
